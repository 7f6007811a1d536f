#include "core/train/evaluate.h"

#include <string.h>

#include "core/base/memory.h"
#include "core/train/batch.h"

/* `out` points to a pointer of any kind. */
static pl_status add_memory(pl_evaluation *v, size_t bytes, const char *what, void *out, pl_err *e) {
  void *memory = NULL;
  pl_status st = v->device->ops->alloc(v->device, bytes, what, &memory, e);
  memcpy(out, &memory, sizeof memory);
  return st;
}

pl_status pl_evaluation_create(const pl_model_shape *shape, const pl_model_type *model_type, pl_model *model,
                               size_t stages, size_t sequences, pl_device *device, const pl_dataset_type *type,
                               const pl_dataset *dataset, pl_evaluation *out, pl_err *e) {
  pl_status st = PL_OK;
  *out = (pl_evaluation){.device = device,
                         .model_type = model_type,
                         .model = model,
                         .stages = stages,
                         .type = type,
                         .dataset = shape->reads_tokens ? dataset : NULL,
                         .sequences = sequences,
                         .context = shape->context,
                         .windows = 1,
                         .loaded = SIZE_MAX};
  size_t area = sequences * shape->context;
  for (size_t p = 0; p < stages; p++) {
    size_t bytes = model_type->tape_bytes(model, p);
    if (bytes > out->tape_bytes) out->tape_bytes = bytes;
  }
  PL_TRY(add_memory(out, out->tape_bytes, "activations of the validation", &out->tape, e));
  if (out->dataset) {
    out->windows = type->val_windows(dataset);
    PL_TRY(add_memory(out, 2 * area * sizeof *out->tokens, "the tokens of the validation", &out->tokens, e));
    PL_TRY(pl_alloc(2 * area, sizeof *out->staging, "the tokens of the validation", &out->staging, e));
    PL_TRY(pl_alloc(out->context + 1, sizeof *out->window, "a window of tokens", &out->window, e));
  }
  out->batches = (out->windows + sequences - 1) / sequences;
out:
  return st;
}

void pl_evaluation_free(pl_evaluation *v) {
  void *const memory[] = {v->tape, v->tokens};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
    if (memory[i]) v->device->ops->free(v->device, memory[i]);
  pl_free(v->staging);
  pl_free(v->window);
  *v = (pl_evaluation){0};
}

static void load(pl_evaluation *v, size_t i, size_t sequences) {
  size_t area = sequences * v->context;
  if (v->loaded == i) return;
  v->loaded = i;
  for (size_t j = 0; j < sequences; j++) {
    v->type->val_window(v->dataset, i * v->sequences + j, v->window);
    pl_window_split(v->window, v->context, v->staging + j * v->context, v->staging + area + j * v->context);
  }
  v->device->ops->upload(v->device, v->tokens, v->staging, 2 * area * sizeof *v->staging);
}

double pl_evaluation_pass(pl_evaluation *v, size_t stage, const pl_real *weights, size_t i, const pl_real *in,
                          pl_real *out) {
  const size_t left = v->windows - i * v->sequences;
  pl_batch batch = {
      .sequences = left < v->sequences ? left : v->sequences, .context = v->context, .step = -1, .scale = 1};
  if (v->dataset) {
    load(v, i, batch.sequences);
    batch.tokens = v->tokens;
    batch.targets = v->tokens + batch.sequences * v->context;
  }
  v->model_type->forward(v->model, stage, weights, &batch, in, out, v->tape);
  return stage + 1 == v->stages ? v->model_type->loss(v->model, &batch, v->tape) : 0;
}

double pl_evaluation_mean(const pl_evaluation *v, double sum) { return sum / (double)(v->windows * v->context); }
