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
                         .context = shape->context};
  size_t tape = 0, area = sequences * shape->context;
  for (size_t p = 0; p < stages; p++) {
    size_t bytes = model_type->tape_bytes(model, p);
    if (bytes > tape) tape = bytes;
  }
  PL_TRY(add_memory(out, tape, "activations of the validation", &out->tape, e));
  for (size_t i = 0; i < 2 && stages > 1; i++)
    PL_TRY(add_memory(out, model_type->boundary_size(model) * sizeof(pl_real), "activations of the validation",
                      &out->messages[i], e));
  if (out->dataset) {
    PL_TRY(add_memory(out, 2 * area * sizeof *out->tokens, "the tokens of the validation", &out->tokens, e));
    PL_TRY(pl_alloc(2 * area, sizeof *out->staging, "the tokens of the validation", &out->staging, e));
    PL_TRY(pl_alloc(out->context + 1, sizeof *out->window, "a window of tokens", &out->window, e));
  }
out:
  return st;
}

void pl_evaluation_free(pl_evaluation *v) {
  void *const memory[] = {v->tape, v->messages[0], v->messages[1], v->tokens};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
    if (memory[i]) v->device->ops->free(v->device, memory[i]);
  pl_free(v->staging);
  pl_free(v->window);
  *v = (pl_evaluation){0};
}

static void load(const pl_evaluation *v, size_t first, size_t sequences) {
  size_t area = sequences * v->context;
  for (size_t i = 0; i < sequences; i++) {
    v->type->val_window(v->dataset, first + i, v->window);
    pl_window_split(v->window, v->context, v->staging + i * v->context, v->staging + area + i * v->context);
  }
  v->device->ops->upload(v->device, v->tokens, v->staging, 2 * area * sizeof *v->staging);
}

static double loss_of(const pl_evaluation *v, const pl_real *const *weights, const pl_batch *batch) {
  for (size_t p = 0; p < v->stages; p++)
    v->model_type->forward(v->model, p, weights[p], batch, p > 0 ? v->messages[(p - 1) % 2] : NULL,
                           p + 1 < v->stages ? v->messages[p % 2] : NULL, v->tape);
  return v->model_type->loss(v->model, batch, v->tape);
}

double pl_evaluate(const pl_evaluation *v, const pl_real *const *weights) {
  size_t windows = v->dataset ? v->type->val_windows(v->dataset) : 1;
  double sum = 0;
  for (size_t first = 0; first < windows; first += v->sequences) {
    size_t sequences = windows - first < v->sequences ? windows - first : v->sequences;
    pl_batch batch = {.sequences = sequences, .context = v->context, .step = -1, .scale = 1};
    if (v->dataset) {
      load(v, first, sequences);
      batch.tokens = v->tokens;
      batch.targets = v->tokens + sequences * v->context;
    }
    sum += loss_of(v, weights, &batch);
  }
  return sum / (double)(windows * v->context);
}
