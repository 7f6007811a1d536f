/* Seconds of a step of Muon, and of AdamW, over the hidden matrices of a model, by the optimizers themselves, with the
 * products of Newton-Schulz in fp32 and in bf16. Usage: bench_muon [--rounds N] [SHAPE...]. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/train/optimizer.h"
#include "runners/registries.h"
#include "tests/bench/bench.h"

typedef struct step {
  const pl_optimizer_type *type;
  const void *config;
  pl_optimizer_call call;
} step;

static void run_step(void *self) {
  step *s = self;
  s->type->displace(s->config, &s->call);
  s->call.t++;
}

static pl_layout hidden_matrices(const bench_shape *s) {
  pl_layout l = {0};
  pl_err e = {0};
  bench_matrix m[BENCH_MATRICES];
  bench_matrices(s, m);
  for (size_t layer = 0; layer < s->layers; layer++)
    for (size_t i = 0; i < BENCH_MATRICES; i++) {
      pl_segment g = {.kind = PL_SEGMENT_MATRIX, .rows = m[i].rows, .cols = m[i].cols, .decay = true};
      snprintf(g.name, sizeof g.name, "layers.%zu.%s.%s", layer, i < 4 ? "attention" : "mlp", m[i].name);
      bench_must(pl_layout_add(&l, &g, &e), &e);
    }
  l.grad_size = l.size;
  return l;
}

/* A run's config that has the optimizer's; the rest is not used. */
static pl_json *document(const char *optimizer) {
  char text[256];
  pl_json *json = NULL;
  pl_err e = {0};
  snprintf(text, sizeof text,
           "{\"model\": \"quadratic\", \"optimizer\": {\"type\": \"%s\", \"lr\": 0.008}, \"train\": {\"steps\": 1, "
           "\"batch_tokens\": 1}}",
           optimizer);
  bench_must(pl_json_parse(text, strlen(text), "bench", &json, &e), &e);
  return json;
}

static step open_step(const pl_run_config *c, const pl_layout *l, pl_device *device) {
  step s = {.type = (const pl_optimizer_type *)c->optimizer.type, .config = c->optimizer.config};
  const size_t scratch = s.type->scratch_size ? s.type->scratch_size(s.config, l) : 0;
  pl_real **state = calloc(s.type->state_arrays + 1, sizeof *state);
  if (!state) abort();
  for (size_t i = 0; i < s.type->state_arrays; i++) {
    state[i] = bench_numbers(l->size);
    memset(state[i], 0, l->size * sizeof *state[i]);
  }
  s.call = (pl_optimizer_call){.device = device,
                               .layout = l,
                               .lr = 0.008,
                               .x = bench_numbers(l->size),
                               .g = bench_numbers(l->size),
                               .state = state,
                               .scratch = bench_numbers(scratch + 1),
                               .u = bench_numbers(l->size)};
  return s;
}

static void close_step(step *s) {
  for (size_t i = 0; i < s->type->state_arrays; i++) free(s->call.state[i]);
  free(s->call.state);
  free((void *)(uintptr_t)s->call.x);
  free((void *)(uintptr_t)s->call.g);
  free(s->call.scratch);
  free(s->call.u);
}

static const char *const optimizers[] = {"adamw", "muon"};
enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

static void measure(const bench_shape *shape, pl_device *const devices[2], size_t rounds, pl_json *rows) {
  pl_layout l = hidden_matrices(shape);
  pl_json *documents[OPTIMIZERS], *line = pl_json_new_object();
  pl_run_config configs[OPTIMIZERS];
  const pl_registries registries = pl_registries_all();
  pl_err e = {0};
  step steps[2 * OPTIMIZERS];
  bench_work works[2 * OPTIMIZERS];
  bench_time times[2 * OPTIMIZERS];
  char names[2 * OPTIMIZERS][32];
  size_t count = 0;
  for (size_t i = 0; i < OPTIMIZERS; i++) {
    documents[i] = document(optimizers[i]);
    bench_must(pl_run_config_from_json(&registries, documents[i], "bench", &configs[i], &e), &e);
    for (size_t d = 0; d < 2 && devices[d]; d++, count++) {
      steps[count] = open_step(&configs[i], &l, devices[d]);
      works[count] = (bench_work){run_step, &steps[count]};
      snprintf(names[count], sizeof names[count], "%s_%s", optimizers[i], d == 0 ? "fp32" : "bf16");
    }
  }
  bench_in_turn(works, count, rounds, 0.1, times);
  bench_text(line, "shape", shape->name);
  bench_set(line, "matrices", (double)l.count);
  bench_set(line, "parameters", (double)pl_layout_parameters(&l));
  printf("%-5s %zu matrices", shape->name, l.count);
  for (size_t i = 0; i < count; i++) {
    printf("  %s %.2f ms (%.2f)", names[i], 1e3 * times[i].median, 1e3 * times[i].best);
    bench_set(line, names[i], times[i].median);
    strcat(names[i], "_best");
    bench_set(line, names[i], times[i].best);
    close_step(&steps[i]);
  }
  printf("\n");
  bench_add(rows, line);
  for (size_t i = 0; i < OPTIMIZERS; i++) pl_json_release(documents[i]);
  pl_layout_free(&l);
}

int main(int argc, char **argv) {
  pl_device *devices[2] = {NULL, NULL};
  pl_err e = {0}, none = {0};
  bool any = false;
  const bench_peaks peaks = bench_measure_peaks();
  pl_json *rows = pl_json_new_array();
  bench_must(pl_device_open("cpu", PL_PRECISION_FP32, 1, &devices[0], &e), &e);
  if (pl_device_open("cpu", PL_PRECISION_BF16, 1, &devices[1], &none) != PL_OK) devices[1] = NULL;
  for (size_t i = 0; i < BENCH_SHAPES; i++) any = any || bench_asked(argc, argv, bench_shapes[i].name);
  for (size_t i = 0; i < BENCH_SHAPES; i++)
    if (any ? bench_asked(argc, argv, bench_shapes[i].name) : i < 2)
      measure(&bench_shapes[i], devices, bench_rounds(argc, argv, 5), rows);
  bench_print_result("muon", rows, (devices[1] ? devices[1] : devices[0])->kernel, &peaks);
  pl_device_close(devices[1]);
  pl_device_close(devices[0]);
  return 0;
}
