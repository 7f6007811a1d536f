#include "core/train/stage.h"

#include "core/base/memory.h"
#include "core/device/profile.h"

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
  PL_TRY(pl_alloc(count, sizeof *s->window, "the list of a stage's arrays", &s->window, e));
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

static pl_status add_spans(pl_stage *s, pl_err *e) {
  const size_t count = s->layout->count;
  if (!s->device->ops->sum_squares_parts) return PL_OK;
  pl_status st = pl_alloc(2 * count, sizeof *s->spans, "the list of a stage's segments", &s->spans, e);
  for (size_t i = 0; st == PL_OK && i < count; i++) {
    const pl_segment *g = &s->layout->segments[i];
    s->spans[i] = g->offset;
    s->spans[count + i] = g->tied_copy ? 0 : g->rows * g->cols;
  }
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
  PL_TRY(add_spans(out, e));
  PL_TRY(add_kept(out, args->config, args->depth, e));
  PL_TRY(pl_alloc(grads, sizeof *out->grads, "the list of a stage's arrays", &out->grads, e));
  for (; out->grad_count < grads; out->grad_count++)
    PL_TRY(add_array(out, layout->grad_size, "gradients", &out->grads[out->grad_count], e));
  out->u_size = layout->size;
  if (!args->whole_u && pl_stage_stretches(args->config, args->device) && args->device->ops->stretch < out->u_size)
    out->u_size = args->device->ops->stretch;
  PL_TRY(add_array(out, out->u_size, "displacements", &out->u, e));
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
  pl_free(s->window);
  pl_free(s->spans);
  *s = (pl_stage){0};
}

void pl_stage_drop_gradients(pl_stage *s) {
  for (size_t i = 0; i < s->grad_count; i++)
    s->device->ops->zero(s->device, s->grads[i], s->layout->grad_size * sizeof(pl_real));
}

void pl_stage_start(pl_stage *s) {
  const pl_ops *ops = s->device->ops;
  size_t bytes = s->layout->size * sizeof(pl_real);
  for (size_t i = 0; i < s->kept_count; i++) ops->zero(s->device, s->kept[i], bytes);
  pl_stage_drop_gradients(s);
  ops->zero(s->device, s->u, s->u_size * sizeof *s->u);
  s->ring.newest = s->applied = s->delayed = 0;
}

void pl_stage_view(const pl_stage *s, const pl_segment *segment, size_t at, size_t n, pl_segment *part,
                   pl_layout *layout, pl_stage *view) {
  const size_t first = segment->offset + at;
  *part = *segment;
  part->offset = 0;
  part->rows = 1;
  part->cols = n;
  *layout = (pl_layout){.segments = part, .count = 1, .size = n, .grad_size = n};
  *view = *s;
  view->layout = layout;
  view->spans = NULL;
  view->u = s->u_size == s->layout->size ? s->u + first : s->u;
  view->u_size = n;
  for (size_t i = 0; i < s->kept_count; i++) s->window[i] = s->kept[i] + first;
  view->ring.slots = s->window;
  view->state = s->window + (s->state - s->kept);
  for (size_t c = 0; c < PL_MAX_CORRECTIONS; c++)
    if (s->correction_state[c]) view->correction_state[c] = s->window + (s->correction_state[c] - s->kept);
}

bool pl_stage_stretches(const pl_run_config *config, const pl_device *d) {
  return ((const pl_optimizer_type *)config->optimizer.type)->elementwise && d->ops->stretch > 0;
}

static size_t stretch_of(const pl_device *d, size_t n) {
  return d->ops->stretch > 0 && d->ops->stretch < n ? d->ops->stretch : n;
}

static void squares_at_once(const pl_stage *s, const pl_real *array, double *out) {
  const size_t count = s->layout->count;
  s->device->ops->sum_squares_parts(s->device, count, s->spans, s->spans + count, array, out);
}

static void distances_at_once(const pl_stage *s, const pl_real *x, const pl_real *y, double *out) {
  const pl_ops *ops = s->device->ops;
  ops->copy(s->device, s->u, x, s->layout->size * sizeof *x);
  ops->axpby(s->device, s->layout->size, -1, y, 1, s->u);
  squares_at_once(s, s->u, out);
}

void pl_stage_distances(const pl_stage *s, const pl_real *x, const pl_real *y, double *out) {
  const pl_ops *ops = s->device->ops;
  if (s->spans) {
    distances_at_once(s, x, y, out);
    return;
  }
  for (size_t i = 0; i < s->layout->count; i++) {
    const pl_segment *g = &s->layout->segments[i];
    const size_t n = g->rows * g->cols, stretch = stretch_of(s->device, n);
    out[i] = 0;
    for (size_t at = 0; !g->tied_copy && at < n; at += stretch) {
      const size_t here = n - at < stretch ? n - at : stretch;
      ops->copy(s->device, s->u, x + g->offset + at, here * sizeof *x);
      ops->axpby(s->device, here, -1, y + g->offset + at, 1, s->u);
      out[i] += ops->sum_squares(s->device, here, s->u);
    }
  }
}

double pl_stage_square(pl_device *d, size_t n, const pl_real *x) {
  const size_t stretch = stretch_of(d, n);
  double sum = 0;
  for (size_t at = 0; at < n; at += stretch) sum += d->ops->sum_squares(d, n - at < stretch ? n - at : stretch, x + at);
  return sum;
}

void pl_stage_squares(const pl_stage *s, const pl_real *array, double *out) {
  const pl_profile_part before = pl_profile_enter(s->device, PL_PROFILE_clip);
  if (s->spans) squares_at_once(s, array, out);
  for (size_t i = 0; !s->spans && i < s->layout->count; i++) {
    const pl_segment *g = &s->layout->segments[i];
    out[i] = g->tied_copy ? 0 : pl_stage_square(s->device, g->rows * g->cols, array + g->offset);
  }
  pl_profile_leave(s->device, before);
}
