/* The trainer on the CUDA device, which runs on the host here: the curve of the CPU, the same bits twice. */
#include "tests/conform/train_rig.h"

static void train(const char *device, const char *rest, rig *r) {
  char json[RIG_TEXT];
  snprintf(json, sizeof json,
           "{'data': {'type': 'synthetic', 'vocab': 16}, 'train': {'steps': 3, 'batch_tokens': 16, 'warmup': 0, "
           "'val_tokens': 16, 'clip': 0.5}, %s}",
           rest);
  rig_open_on(r, device, NULL, json);
  rig_train(r);
}

#define LLAMA "'model': {'type': 'transformer', 'layers': 2, 'd_model': 16, 'heads': 2, 'kv_heads': 1, 'context': 8}"
#define GPT2                                                                                                           \
  "'model': {'type': 'transformer', 'layers': 1, 'd_model': 8, 'heads': 2, 'context': 8, 'norm': 'layernorm', "        \
  "'activation': 'gelu', 'positions': 'learned', 'bias': true, 'tied': true}"
#define MLP "'model': {'type': 'mlp', 'layers': 1, 'hidden': 12, 'embedding': 6, 'window': 2, 'context': 8}"

static const char *const runs[] = {
    LLAMA ", 'optimizer': 'adamw', 'delay': 1, 'correction': 'ef'",
    LLAMA ", 'optimizer': 'muon', 'delay': 2, 'correction': 'lookahead', 'pipeline': {'stages': 2, 'microbatches': 2}",
    GPT2 ", 'optimizer': 'sgd', 'pipeline': {'schedule': '2bw', 'stages': 1, 'microbatches': 2}",
    MLP ", 'optimizer': 'muon'",
};

static double weight_distance(const rig *a, const rig *b) {
  double worst = 0;
  assert_true(a->count == b->count && a->count > 0);
  for (size_t i = 0; i < a->count; i++) worst = fmax(worst, fabs((double)a->weights[i] - (double)b->weights[i]));
  return worst;
}

static double loss_distance(const rig *a, const rig *b) {
  double worst = 0;
  assert_true(a->point_count == b->point_count && a->point_count > 1);
  for (size_t i = 0; i < a->point_count; i++) {
    const double x = a->points[i].values[PL_SERIES_train_loss], y = b->points[i].values[PL_SERIES_train_loss];
    assert_true(isnan(x) == isnan(y));
    if (!isnan(x)) worst = fmax(worst, fabs(x - y));
  }
  return fmax(worst, fabs(a->outcome.final_val_loss - b->outcome.final_val_loss));
}

/* Sums in another order: a few roundings of numbers near 1 in a step, three steps, with learning rate 1e-3. */
static bool is_near(const rig *a, const rig *b) { return loss_distance(a, b) < 2e-5 && weight_distance(a, b) < 2e-4; }

/* In whatever order the threads of a block go. */
static void the_curve_is_that_of_the_cpu_and_the_bits_are_the_same_twice(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
    rig cpu, cuda, again;
    train("cpu", runs[i], &cpu);
    train("cuda", runs[i], &cuda);
    setenv("PL_GRID_ORDER", "backward", 1);
    train("cuda", runs[i], &again);
    unsetenv("PL_GRID_ORDER");
    assert_true(is_near(&cpu, &cuda));
    assert_true(rig_same_weights(&cuda, &again));
    rig_close(&cpu);
    rig_close(&cuda);
    rig_close(&again);
  }
}

static void another_run_is_further_away(void **state) {
  (void)state;
  rig cpu, cuda;
  train("cpu", GPT2 ", 'optimizer': 'adamw', 'delay': 1, 'correction': 'ef'", &cpu);
  train("cuda", GPT2 ", 'optimizer': 'adamw', 'delay': 1", &cuda);
  assert_false(is_near(&cpu, &cuda));
  assert_false(rig_same_weights(&cpu, &cuda));
  rig_close(&cpu);
  rig_close(&cuda);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_curve_is_that_of_the_cpu_and_the_bits_are_the_same_twice),
      cmocka_unit_test(another_run_is_further_away),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
