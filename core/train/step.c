#include "core/train/step.h"

#include <math.h>

#include "core/device/profile.h"

double pl_clip_factor(double clip, double norm) { return clip > 0 ? fmin(1.0, clip / (norm + 1e-6)) : 1.0; }

void pl_step_sum_tied(pl_device *device, size_t count, pl_real *head, pl_real *embedding) {
  device->ops->axpby(device, count, 1, head, 1, embedding);
  device->ops->copy(device, head, embedding, count * sizeof *head);
}

static const pl_correction_type *correction(const pl_run_config *config, size_t c) {
  return (const pl_correction_type *)config->corrections[c].type;
}

static void clip(const pl_stage *stage, const pl_decision *d, pl_real *grad) {
  const pl_profile_part before = pl_profile_enter(stage->device, PL_PROFILE_clip);
  for (size_t i = 0; i < stage->layout->count; i++) {
    const pl_segment *g = &stage->layout->segments[i];
    const double scale = g->tied_copy ? d->tied_scale : d->clip_scale;
    pl_real *at = grad + g->offset;
    if (scale < 1) stage->device->ops->axpby(stage->device, g->rows * g->cols, 0, at, scale, at);
  }
  pl_profile_leave(stage->device, before);
}

/* Weight decay as part of the gradient, from x_t. */
static void add_l2(const pl_train_config *train, const pl_stage *stage, pl_real *grad) {
  if (train->weight_decay_form != PL_DECAY_L2 || !(train->weight_decay > 0)) return;
  const pl_real *x = pl_ring_newest(&stage->ring);
  for (size_t i = 0; i < stage->layout->count; i++) {
    const pl_segment *g = &stage->layout->segments[i];
    if (g->decay)
      stage->device->ops->axpby(stage->device, g->rows * g->cols, train->weight_decay, x + g->offset, 1,
                                grad + g->offset);
  }
}

static void displace(const pl_section *section, const pl_stage *stage, const pl_real *grad, double lr) {
  const pl_optimizer_call call = {.device = stage->device,
                                  .layout = stage->layout,
                                  .t = stage->applied,
                                  .lr = lr,
                                  .x = pl_ring_newest(&stage->ring),
                                  .g = grad,
                                  .state = stage->state,
                                  .scratch = stage->scratch,
                                  .u = stage->u};
  const pl_profile_part before = pl_profile_enter(stage->device, PL_PROFILE_optimizer);
  ((const pl_optimizer_type *)section->type)->displace(section->config, &call);
  pl_profile_leave(stage->device, before);
}

static pl_correction_call correction_call(const pl_run_config *config, const pl_stage *stage, size_t c) {
  const pl_correction_type *type = correction(config, c);
  bool always = type->at_zero && type->at_zero(config->corrections[c].config);
  return (pl_correction_call){.device = stage->device,
                              .n = stage->layout->size,
                              .k = stage->delay,
                              .calls = always ? stage->applied : stage->delayed,
                              .state = stage->correction_state[c],
                              .v = stage->u};
}

/* u_t -> v_t. Before delay_start the delay is 0, so only what stays on at delay 0 works. */
static void correct(const pl_run_config *config, const pl_stage *stage) {
  bool delayed = stage->ring.newest >= config->root.delay_start;
  for (size_t c = 0; c < config->correction_count; c++) {
    if (!pl_correction_active(config, c, delayed ? stage->delay : 0)) continue;
    const pl_correction_call call = correction_call(config, stage, c);
    const pl_profile_part before = pl_profile_enter(stage->device, PL_PROFILE_correction);
    correction(config, c)->displace(config->corrections[c].config, &call);
    pl_profile_leave(stage->device, before);
  }
}

/* x_{t+1} = (1 - eta wd) x_t - v_t, the decay on decaying segments only and on x_t, not on what the gradient saw. */
static void move(const pl_run_config *config, pl_stage *stage, double lr) {
  const pl_train_config *train = &config->train;
  const pl_section *section = &config->optimizer;
  const pl_optimizer_type *optimizer = (const pl_optimizer_type *)section->type;
  const pl_real *x = pl_ring_newest(&stage->ring);
  pl_real *next = pl_ring_next(&stage->ring);
  const pl_profile_part before = pl_profile_enter(stage->device, PL_PROFILE_apply);
  for (size_t i = 0; i < stage->layout->count; i++) {
    const pl_segment *g = &stage->layout->segments[i];
    double shrink = 1;
    if (g->decay && train->weight_decay_form == PL_DECAY_DECOUPLED) {
      double scale = optimizer->lr_scale ? optimizer->lr_scale(section->config, g) : 1;
      shrink = 1 - lr * scale * train->weight_decay;
    }
    stage->device->ops->shrink_subtract(stage->device, g->rows * g->cols, shrink, x + g->offset, stage->u + g->offset,
                                        next + g->offset);
  }
  pl_profile_leave(stage->device, before);
}

static void stay(const pl_stage *stage) {
  const pl_real *x = pl_ring_newest(&stage->ring);
  pl_real *next = pl_ring_next(&stage->ring);
  if (next != x) stage->device->ops->copy(stage->device, next, x, stage->layout->size * sizeof *x);
}

/* The gradient becomes a displacement, and that the next version; squared norms of each segment's displacement. */
static void go(const pl_run_config *config, pl_stage *stage, const pl_decision *d, pl_real *grad, double *before,
               double *after) {
  clip(stage, d, grad);
  add_l2(&config->train, stage, grad);
  displace(&config->optimizer, stage, grad, d->lr);
  if (before) pl_stage_squares(stage, stage->u, before);
  correct(config, stage);
  if (after) pl_stage_squares(stage, stage->u, after);
  move(config, stage, d->lr);
}

/* The same on one stretch after the other, each of which is read from memory once. */
static void go_by_stretches(const pl_run_config *config, pl_stage *stage, const pl_decision *d, pl_real *grad,
                            double *before, double *after) {
  const size_t stretch = stage->device->ops->stretch;
  for (size_t i = 0; i < stage->layout->count; i++) {
    const pl_segment *g = &stage->layout->segments[i];
    const size_t n = g->rows * g->cols;
    if (before) before[i] = 0;
    if (after) after[i] = 0;
    for (size_t at = 0; at < n; at += stretch) {
      pl_segment part;
      pl_layout layout;
      pl_stage view;
      double squares[2] = {0, 0};
      pl_stage_view(stage, g, at, n - at < stretch ? n - at : stretch, &part, &layout, &view);
      go(config, &view, d, grad + g->offset + at, before ? &squares[0] : NULL, after ? &squares[1] : NULL);
      if (before) before[i] += squares[0];
      if (after) after[i] += squares[1];
    }
  }
}

void pl_step_apply(const pl_run_config *config, pl_stage *stage, const pl_decision *d, double *before, double *after) {
  const pl_ops *ops = stage->device->ops;
  pl_real *grad = pl_stage_grad(stage, stage->ring.newest, 0);
  if (d->finite) {
    (pl_stage_stretches(config, stage->device) ? go_by_stretches : go)(config, stage, d, grad, before, after);
    stage->applied++;
    stage->delayed += stage->ring.newest >= config->root.delay_start;
  } else {
    stay(stage);
  }
  pl_ring_commit(&stage->ring);
  ops->zero(stage->device, grad, stage->layout->grad_size * sizeof *grad);
}

/* The active correction that gives y, or the number of corrections. */
static size_t y_source(const pl_run_config *config, const pl_stage *stage) {
  size_t with_offset = 0, which = 0, last = 0;
  for (size_t c = 0; c < config->correction_count; c++) {
    if (!pl_correction_active(config, c, stage->delay)) continue;
    last = c;
    if (!correction(config, c)->offset) continue;
    with_offset++;
    which = c;
  }
  return with_offset == 1 && which == last ? which : config->correction_count;
}

bool pl_step_has_y(const pl_run_config *config, const pl_stage *stage) {
  return y_source(config, stage) < config->correction_count;
}

void pl_step_y(const pl_run_config *config, pl_stage *stage) {
  const size_t n = stage->layout->size, c = y_source(config, stage);
  const pl_real *x = pl_ring_newest(&stage->ring);
  if (c == config->correction_count) {
    stage->device->ops->copy(stage->device, stage->u, x, n * sizeof *x);
    return;
  }
  const pl_correction_call call = correction_call(config, stage, c);
  correction(config, c)->offset(config->corrections[c].config, &call, stage->u);
  stage->device->ops->axpby(stage->device, n, 1, x, 1, stage->u);
}
