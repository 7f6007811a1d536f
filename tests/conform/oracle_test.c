/* Delay in one process, of every profile, against a loop written straight from the definitions. */
#include "tests/conform/oracle.h"

#define MLP "'model': {'type': 'mlp', 'layers': 4, 'hidden': 12, 'embedding': 6, 'window': 3, 'context': 8}"
#define LLAMA "'model': {'type': 'transformer', 'layers': 4, 'd_model': 16, 'heads': 2, 'context': 8, 'tied': %s}"
#define QUADRATIC "'model': {'type': 'quadratic', 'dim': 12, 'layers': 4, 'noise': 0.1, 'rotated': true}"
#define LANGUAGE "'data': {'type': 'synthetic', 'vocab': 16}"

/* Model and data; optimizer; then everything else. */
static void compare(const char *model, const char *optimizer, const char *rest, int64_t batch, const char *clip) {
  char json[RIG_TEXT];
  rig r;
  snprintf(json, sizeof json,
           "{%s, 'optimizer': %s, %s, 'train': {'steps': 9, 'batch_tokens': %lld, 'warmup': 3, 'lr_schedule': "
           "'constant', 'clip': %s, 'weight_decay': 0.1, 'val_tokens': 64, 'val_every': 4}}",
           model, optimizer, rest, (long long)batch, clip);
  rig_open(&r, NULL, json);
  rig_train(&r);
  if (!oracle_confirms(&r, (oracle_fault){0})) fail_msg("the trainer and the oracle differ: %s", json);
  bool delayed = false;
  int64_t delay[PL_MAX_STAGES];
  pl_run_config_delays(&r.config, delay);
  for (int64_t p = 0; p < r.config.pipeline.stages; p++) delayed = delayed || delay[p] > 0;
  if (delayed) assert_false(oracle_confirms(&r, (oracle_fault){.shift = 1}));
  rig_close(&r);
}

static const char *const delays[] = {
    "'delay': 0",
    "'delay': 1",
    "'delay': 3",
    "'delay': 1, 'correction': 'ef'",
    "'delay': 3, 'correction': 'ef'",
    "'delay': 2, 'correction': 'ef', 'delay_start': 4",
    "'delay': 2, 'correction': 'lookahead', 'delay_start': 1",
    "'delay': 1, 'pipeline': {'microbatches': 3}",
    "'delay': 1, 'correction': 'ef', 'pipeline': {'stages': 2, 'microbatches': 3}",
    "'delay': 2, 'pipeline': {'stages': 4, 'microbatches': 1}",
    "'delay': 1, 'correction': 'lookahead', 'pipeline': {'stages': 2, 'microbatches': 2, 'replicas': 2}",
    "'delay': 'pipedream', 'simulate_only': true, 'pipeline': {'stages': 4, 'microbatches': 3}",
    "'delay': [3, 0, 2, 1], 'simulate_only': true, 'correction': 'ef', 'delay_start': 2, 'pipeline': {'stages': 4}",
};
enum { DELAYS = sizeof delays / sizeof *delays };

static void quadratic(void **state) {
  (void)state;
  for (size_t i = 0; i < DELAYS; i++)
    compare(QUADRATIC ", 'data': 'none'", "{'type': 'sgd', 'lr': 0.05}", delays[i], 7, "0.5");
}

static void mlp(void **state) {
  (void)state;
  static const char *const optimizers[] = {"{'type': 'sgd', 'lr': 0.05, 'nesterov': true}",
                                           "{'type': 'adamw', 'lr': 0.01}", "{'type': 'muon', 'lr': 0.02}"};
  for (size_t o = 0; o < 3; o++)
    for (size_t i = 0; i < DELAYS; i++) compare(MLP ", " LANGUAGE, optimizers[o], delays[i], 40, "0.5");
}

static void transformer(void **state) {
  (void)state;
  static const char *const clips[] = {"0", "0.5", "0.5, 'clip_scope': 'stage'"};
  char model[RIG_TEXT];
  for (size_t tied = 0; tied < 2; tied++)
    for (size_t i = 0; i < DELAYS; i++)
      for (size_t c = 0; c < 3; c++) {
        snprintf(model, sizeof model, LLAMA ", " LANGUAGE, tied ? "true" : "false");
        compare(model, "{'type': 'adamw', 'lr': 0.01}", delays[i], 40, clips[c]);
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(quadratic), cmocka_unit_test(mlp), cmocka_unit_test(transformer)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
