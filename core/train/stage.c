#include "core/train/stage.h"

#include "core/base/memory.h"

bool pl_correction_active(const pl_run_config *config, size_t c, int64_t delay) {
  const pl_section *section = &config->corrections[c];
  const pl_correction_type *type = (const pl_correction_type *)section->type;
  return delay > 0 || (type->at_zero && type->at_zero(section->config));
}

size_t pl_correction_arrays(const pl_run_config *config, size_t c, int64_t delay) {
  const pl_section *section = &config->corrections[c];
  const pl_correction_type *type = (const pl_correction_type *)section->type;
  return pl_correction_active(config, c, delay) ? type->state_arrays(section->config, delay) : 0;
}

static pl_status add_array(pl_stage *s, size_t n, const char *what, pl_real **out, pl_err *e) {
  void *array = NULL;
  pl_status st = s->device->ops->alloc(s->device, n * sizeof **out, what, &array, e);
  *out = array;
  return st;
}

static pl_status add_kept(pl_stage *s, const pl_run_config *config, size_t depth, pl_err *e) {
  const pl_optimizer_type *optimizer = (const pl_optimizer_type *)config->optimizer.type;
  pl_status st = PL_OK;
  size_t count = depth + optimizer->state_arrays;
  for (size_t c = 0; c < config->correction_count; c++) count += pl_correction_arrays(config, c, s->delay);
  PL_TRY(pl_alloc(count, sizeof *s->kept, "the list of a stage's arrays", &s->kept, e));
  for (; s->kept_count < count; s->kept_count++)
    PL_TRY(add_array(s, s->layout->size, "weights and optimizer state", &s->kept[s->kept_count], e));
  s->ring = (pl_ring){.slots = s->kept, .depth = depth, .start = config->root.delay_start};
  s->state = s->kept + depth;
  pl_real **next = s->state + optimizer->state_arrays;
  for (size_t c = 0; c < config->correction_count; c++) {
    s->correction_state[c] = next;
    next += pl_correction_arrays(config, c, s->delay);
  }
out:
  return st;
}

pl_status pl_stage_create(const pl_stage_args *args, pl_stage *out, pl_err *e) {
  pl_status st = PL_OK;
  const pl_section *section = &args->config->optimizer;
  const pl_optimizer_type *optimizer = (const pl_optimizer_type *)section->type;
  const pl_layout *layout = args->layout;
  size_t scratch = optimizer->scratch_size ? optimizer->scratch_size(section->config, layout) : 0;
  size_t grads = args->replicas * args->buffers;
  *out = (pl_stage){.device = args->device,
                    .layout = layout,
                    .delay = args->delay,
                    .parameters = pl_layout_parameters(layout),
                    .buffers = args->buffers,
                    .replicas = args->replicas};
  PL_TRY(add_kept(out, args->config, args->depth, e));
  PL_TRY(pl_alloc(grads, sizeof *out->grads, "the list of a stage's arrays", &out->grads, e));
  for (; out->grad_count < grads; out->grad_count++)
    PL_TRY(add_array(out, layout->grad_size, "gradients", &out->grads[out->grad_count], e));
  PL_TRY(add_array(out, layout->size, "displacements", &out->u, e));
  if (scratch > 0) PL_TRY(add_array(out, scratch, "the optimizer's scratch memory", &out->scratch, e));
out:
  return st;
}

static void free_list(pl_stage *s, pl_real **list, size_t count) {
  for (size_t i = 0; i < count; i++) s->device->ops->free(s->device, list[i]);
  pl_free(list);
}

void pl_stage_free(pl_stage *s) {
  if (s->u) s->device->ops->free(s->device, s->u);
  if (s->scratch) s->device->ops->free(s->device, s->scratch);
  free_list(s, s->grads, s->grad_count);
  free_list(s, s->kept, s->kept_count);
  *s = (pl_stage){0};
}

void pl_stage_drop_gradients(pl_stage *s) {
  for (size_t i = 0; i < s->grad_count; i++)
    s->device->ops->zero(s->device, s->grads[i], s->layout->grad_size * sizeof(pl_real));
}

void pl_stage_start(pl_stage *s, const pl_real *x) {
  const pl_ops *ops = s->device->ops;
  size_t bytes = s->layout->size * sizeof *x;
  for (size_t i = 0; i < s->kept_count; i++) ops->zero(s->device, s->kept[i], bytes);
  pl_stage_drop_gradients(s);
  ops->zero(s->device, s->u, bytes);
  s->ring.newest = s->applied = s->delayed = 0;
  ops->upload(s->device, pl_ring_newest(&s->ring), x, bytes);
}

void pl_stage_squares(const pl_stage *s, const pl_real *array, double *out) {
  for (size_t i = 0; i < s->layout->count; i++) {
    const pl_segment *g = &s->layout->segments[i];
    out[i] = g->tied_copy ? 0 : s->device->ops->sum_squares(s->device, g->rows * g->cols, array + g->offset);
  }
}
