#include "core/train/probe.h"

#include <math.h>

#include "core/base/memory.h"
#include "core/train/step.h"

struct pl_probe {
  pl_probe_args args;
  void *tape[PL_MAX_STAGES];
  pl_real *in[PL_MAX_STAGES];    /* what the stage before sent; NULL for the first */
  pl_real *back[2];              /* gradients of messages, by turns */
  pl_real *fresh[PL_MAX_STAGES]; /* the gradient at the newest weights */
  pl_real *part[PL_MAX_STAGES];  /* another replica's; NULL with one */
};

static pl_status add_reals(const pl_probe *p, size_t count, const char *what, pl_real **out, pl_err *e) {
  void *memory = NULL;
  pl_status st = p->args.device->ops->alloc(p->args.device, count * sizeof **out, what, &memory, e);
  *out = memory;
  return st;
}

static pl_status add_stage(pl_probe *p, size_t s, pl_err *e) {
  const pl_probe_args *a = &p->args;
  const size_t size = a->stage[s].layout->grad_size;
  pl_status st = PL_OK;
  PL_TRY(a->device->ops->alloc(a->device, a->model_type->tape_bytes(a->model, s), "activations of the probe",
                               &p->tape[s], e));
  if (s > 0) PL_TRY(add_reals(p, a->model_type->boundary_size(a->model), "messages of the probe", &p->in[s], e));
  PL_TRY(add_reals(p, size, "gradients of the probe", &p->fresh[s], e));
  if (a->replicas > 1) PL_TRY(add_reals(p, size, "gradients of the probe", &p->part[s], e));
out:
  return st;
}

pl_status pl_probe_create(const pl_probe_args *args, pl_probe **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_probe *p = NULL;
  *out = NULL;
  PL_TRY(pl_alloc(1, sizeof *p, "the probe", &p, e));
  p->args = *args;
  for (size_t s = 0; s < args->stages; s++) PL_TRY(add_stage(p, s, e));
  for (size_t i = 0; i < 2 && args->stages > 1; i++)
    PL_TRY(add_reals(p, args->model_type->boundary_size(args->model), "messages of the probe", &p->back[i], e));
  *out = p;
out:
  if (st != PL_OK) pl_probe_free(p);
  return st;
}

static void release(pl_device *device, void *memory) {
  if (memory) device->ops->free(device, memory);
}

void pl_probe_free(pl_probe *p) {
  if (!p) return;
  for (size_t s = 0; s < p->args.stages; s++) {
    release(p->args.device, p->tape[s]);
    release(p->args.device, p->in[s]);
    release(p->args.device, p->fresh[s]);
    release(p->args.device, p->part[s]);
  }
  for (size_t i = 0; i < 2; i++) release(p->args.device, p->back[i]);
  pl_free(p);
}

/* Adds the gradient of one microbatch. */
static void pass(pl_probe *p, const pl_batch *batch, pl_real *const *grad) {
  const pl_probe_args *a = &p->args;
  const size_t last = a->stages - 1;
  for (size_t s = 0; s <= last; s++)
    a->model_type->forward(a->model, s, pl_ring_newest(&a->stage[s].ring), batch, p->in[s],
                           s < last ? p->in[s + 1] : NULL, p->tape[s]);
  for (size_t s = last + 1; s-- > 0;)
    a->model_type->backward(a->model, s, pl_ring_newest(&a->stage[s].ring), batch, p->in[s], p->tape[s],
                            s < last ? p->back[s % 2] : NULL, s > 0 ? p->back[(s + 1) % 2] : NULL, grad[s]);
}

/* Of each replica by itself, then summed in their order, as the training does it. */
static void take_fresh(pl_probe *p, int64_t update) {
  const pl_probe_args *a = &p->args;
  const pl_ops *ops = a->device->ops;
  const size_t each = a->batches->microbatches / a->replicas;
  for (size_t d = 0; d < a->replicas; d++) {
    pl_real *const *grad = d == 0 ? p->fresh : p->part;
    for (size_t s = 0; s < a->stages; s++) ops->zero(a->device, grad[s], a->stage[s].layout->grad_size * sizeof **grad);
    for (size_t j = 0; j < each; j++) pass(p, pl_batches_get(a->batches, update, d * each + j), grad);
    for (size_t s = 0; s < a->stages && d > 0; s++)
      ops->axpby(a->device, a->stage[s].layout->grad_size, 1, p->part[s], 1, p->fresh[s]);
  }
  if (a->tie)
    pl_step_sum_tied(a->device, a->tie->count, p->fresh[a->tie->head_stage] + a->tie->head,
                     p->fresh[0] + a->tie->embedding);
}

double pl_probe_cosine(pl_probe *p, int64_t update) {
  const pl_probe_args *a = &p->args;
  const pl_ops *ops = a->device->ops;
  double both = 0, stale = 0, fresh = 0;
  take_fresh(p, update);
  for (size_t s = 0; s < a->stages; s++) {
    const pl_layout *layout = a->stage[s].layout;
    for (size_t i = 0; i < layout->count; i++) {
      const pl_segment *g = &layout->segments[i];
      const pl_real *old = pl_stage_grad(&a->stage[s], update, 0) + g->offset, *new = p->fresh[s] + g->offset;
      if (g->tied_copy) continue;
      both += ops->dot(a->device, g->rows * g->cols, old, new);
      stale += ops->dot(a->device, g->rows * g->cols, old, old);
      fresh += ops->dot(a->device, g->rows * g->cols, new, new);
    }
  }
  return both / sqrt(stale * fresh); /* the root of a square is exact, the product of two roots is not */
}
