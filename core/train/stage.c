#include "core/train/stage.h"

#include "core/base/memory.h"

bool pl_correction_active(const pl_run_config *config, size_t c, int64_t delay) {
  const pl_section *section = &config->corrections[c];
  const pl_correction_type *type = (const pl_correction_type *)section->type;
  return delay > 0 || (type->at_zero && type->at_zero(section->config));
}

static size_t correction_arrays(const pl_run_config *config, size_t c, int64_t delay) {
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

pl_status pl_stage_create(const pl_run_config *config, pl_device *device, const pl_layout *layout, int64_t delay,
                          size_t depth, pl_stage *out, pl_err *e) {
  pl_status st = PL_OK;
  const pl_optimizer_type *optimizer = (const pl_optimizer_type *)config->optimizer.type;
  size_t scratch = optimizer->scratch_size ? optimizer->scratch_size(config->optimizer.config, layout) : 0;
  *out = (pl_stage){.device = device, .layout = layout, .delay = delay, .parameters = pl_layout_parameters(layout)};
  size_t count = depth + optimizer->state_arrays;
  for (size_t c = 0; c < config->correction_count; c++) count += correction_arrays(config, c, delay);
  PL_TRY(pl_alloc(count, sizeof *out->kept, "the list of a stage's arrays", &out->kept, e));
  for (; out->kept_count < count; out->kept_count++)
    PL_TRY(add_array(out, layout->size, "weights and optimizer state", &out->kept[out->kept_count], e));
  out->ring = (pl_ring){.slots = out->kept, .depth = depth, .start = config->root.delay_start};
  out->state = out->kept + depth;
  pl_real **next = out->state + optimizer->state_arrays;
  for (size_t c = 0; c < config->correction_count; c++) {
    out->correction_state[c] = next;
    next += correction_arrays(config, c, delay);
  }
  PL_TRY(add_array(out, layout->grad_size, "gradients", &out->grad, e));
  PL_TRY(add_array(out, layout->size, "displacements", &out->u, e));
  if (scratch > 0) PL_TRY(add_array(out, scratch, "the optimizer's scratch memory", &out->scratch, e));
out:
  return st;
}

void pl_stage_free(pl_stage *s) {
  pl_real *const others[] = {s->grad, s->u, s->scratch};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (others[i]) s->device->ops->free(s->device, others[i]);
  for (size_t i = 0; i < s->kept_count; i++) s->device->ops->free(s->device, s->kept[i]);
  pl_free(s->kept);
  *s = (pl_stage){0};
}

void pl_stage_start(pl_stage *s, const pl_real *x) {
  const pl_ops *ops = s->device->ops;
  size_t bytes = s->layout->size * sizeof *x;
  for (size_t i = 0; i < s->kept_count; i++) ops->zero(s->device, s->kept[i], bytes);
  ops->zero(s->device, s->grad, s->layout->grad_size * sizeof *x);
  ops->zero(s->device, s->u, bytes);
  s->ring.newest = 0;
  ops->upload(s->device, pl_ring_newest(&s->ring), x, bytes);
}

void pl_stage_add_squares(const pl_stage *s, const pl_real *array, double *sum) {
  for (size_t i = 0; i < s->layout->count; i++) {
    const pl_segment *segment = &s->layout->segments[i];
    if (!segment->tied_copy)
      *sum += s->device->ops->sum_squares(s->device, segment->rows * segment->cols, array + segment->offset);
  }
}
