#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/train/optimizer.h"
#include "runners/registries.h"
#include "tests/gpu/bench.h"

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

static void wait_step(void *self) { gpu_wait(((step *)self)->call.device); }

/* The hidden matrices: query, key, value, output, up, down. */
static pl_layout hidden_matrices(size_t layers, size_t width) {
  const size_t shapes[][2] = {{width, width}, {width, width},     {width, width},
                              {width, width}, {4 * width, width}, {width, 4 * width}};
  pl_layout l = {0};
  pl_err e = {0};
  for (size_t layer = 0; layer < layers; layer++)
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
      pl_segment g = {.kind = PL_SEGMENT_MATRIX, .rows = shapes[i][0], .cols = shapes[i][1], .decay = true};
      snprintf(g.name, sizeof g.name, "layers.%zu.matrix.%zu", layer, i);
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

static double step_seconds(const gpu_sizes *s, pl_device *d, const char *optimizer, const pl_layout *l) {
  pl_json *json = document(optimizer);
  const pl_registries registries = pl_registries_all();
  pl_run_config config;
  pl_err e = {0};
  bench_must(pl_run_config_from_json(&registries, json, "bench", &config, &e), &e);
  step t = {.type = (const pl_optimizer_type *)config.optimizer.type, .config = config.optimizer.config};
  pl_real **state = calloc(t.type->state_arrays + 1, sizeof *state);
  if (!state) abort();
  for (size_t i = 0; i < t.type->state_arrays; i++) state[i] = gpu_array(d, l->size * sizeof **state);
  t.call =
      (pl_optimizer_call){.device = d,
                          .layout = l,
                          .lr = 0.008,
                          .x = gpu_numbers(d, l->size),
                          .g = gpu_numbers(d, l->size),
                          .state = state,
                          .scratch = gpu_numbers(d, (t.type->scratch_size ? t.type->scratch_size(t.config, l) : 0) + 1),
                          .u = gpu_numbers(d, l->size)};
  const gpu_work work = {run_step, wait_step, &t};
  const double seconds = gpu_seconds(&work, s->least);
  pl_json_release(json);
  free(state);
  return seconds;
}

pl_json *gpu_bench_muon(const gpu_sizes *s) {
  static const char *const optimizers[] = {"adamw", "muon"}, *const precisions[] = {"fp32", "bf16"};
  pl_layout l = hidden_matrices(s->small ? 1 : 12, s->small ? 16 : 768);
  pl_json *found = pl_json_new_object();
  pl_err e = {0};
  bench_set(found, "parameters", (double)pl_layout_parameters(&l));
  for (int p = 0; p < 2; p++) {
    pl_device *d = NULL;
    bench_must(pl_device_open("cuda", (pl_precision)p, 1, &d, &e), &e);
    for (size_t i = 0; i < 2; i++) {
      char name[32];
      const double seconds = step_seconds(s, d, optimizers[i], &l);
      snprintf(name, sizeof name, "%s_%s_ms", optimizers[i], precisions[p]);
      bench_set(found, name, 1e3 * seconds);
      fprintf(stderr, "step of %s, %s: %.3f ms\n", optimizers[i], precisions[p], 1e3 * seconds);
    }
    pl_device_close(d);
  }
  pl_layout_free(&l);
  return found;
}
