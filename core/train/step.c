#include "core/train/step.h"

#include <math.h>

#include "core/train/learning_rate.h"

static size_t stage_count(const pl_step *s) { return (size_t)s->config->pipeline.stages; }

/* Both uses of a tied matrix get the sum of the two gradients, always added as head + embedding. */
static void sum_tied(const pl_step *s) {
  if (!s->tied) return;
  const pl_tie *tie = &s->tie;
  pl_real *embedding = s->stages[0].grad + tie->embedding, *head = s->stages[tie->head_stage].grad + tie->head;
  s->device->ops->axpby(s->device, tie->count, 1, head, 1, embedding);
  if (tie->head_stage > 0) s->device->ops->copy(s->device, head, embedding, tie->count * sizeof *head);
}

static double factor(double clip, double norm) { return clip > 0 ? fmin(1.0, clip / (norm + 1e-6)) : 1.0; }

/* g *= min(1, C / (|g| + 1e-6)) by the norm of all stages or of each. Nothing is scaled when the norm is not finite. */
static void clip(const pl_step *s, pl_update *u) {
  const pl_train_config *train = &s->config->train;
  double total = 0, scale[PL_MAX_STAGES];
  for (size_t p = 0; p < stage_count(s); p++) {
    double own = 0;
    pl_stage_add_squares(&s->stages[p], s->stages[p].grad, &total);
    if (train->clip_scope == PL_CLIP_STAGE) pl_stage_add_squares(&s->stages[p], s->stages[p].grad, &own);
    scale[p] = factor(train->clip, sqrt(own));
  }
  u->grad_norm = sqrt(total);
  u->clip_scale = 1;
  u->finite = isfinite(u->loss) && isfinite(u->grad_norm);
  if (!u->finite) return;
  for (size_t p = 0; p < stage_count(s); p++) {
    if (train->clip_scope == PL_CLIP_GLOBAL) scale[p] = factor(train->clip, u->grad_norm);
    u->clip_scale = fmin(u->clip_scale, scale[p]);
    pl_stage *stage = &s->stages[p];
    if (scale[p] < 1) s->device->ops->axpby(s->device, stage->layout->size, 0, stage->grad, scale[p], stage->grad);
  }
}

/* Weight decay as part of the gradient, from x_t. */
static void add_l2(const pl_step *s, const pl_stage *stage) {
  const pl_train_config *train = &s->config->train;
  if (train->weight_decay_form != PL_DECAY_L2 || !(train->weight_decay > 0)) return;
  const pl_real *x = pl_ring_newest(&stage->ring);
  for (size_t i = 0; i < stage->layout->count; i++) {
    const pl_segment *g = &stage->layout->segments[i];
    if (g->decay)
      s->device->ops->axpby(s->device, g->rows * g->cols, train->weight_decay, x + g->offset, 1,
                            stage->grad + g->offset);
  }
}

static void displace(const pl_step *s, const pl_stage *stage, double lr) {
  const pl_section *section = &s->config->optimizer;
  const pl_optimizer_call call = {.device = s->device,
                                  .layout = stage->layout,
                                  .t = s->counters->applied,
                                  .lr = lr,
                                  .x = pl_ring_newest(&stage->ring),
                                  .g = stage->grad,
                                  .state = stage->state,
                                  .scratch = stage->scratch,
                                  .u = stage->u};
  ((const pl_optimizer_type *)section->type)->displace(section->config, &call);
}

static pl_correction_call correction_call(const pl_step *s, const pl_stage *stage, size_t c) {
  const pl_section *section = &s->config->corrections[c];
  const pl_correction_type *type = (const pl_correction_type *)section->type;
  bool always = type->at_zero && type->at_zero(section->config);
  return (pl_correction_call){.device = s->device,
                              .n = stage->layout->size,
                              .k = stage->delay,
                              .calls = always ? s->counters->applied : s->counters->delayed,
                              .state = stage->correction_state[c],
                              .v = stage->u};
}

/* u_t -> v_t. Before delay_start the delay is 0, so only what stays on at delay 0 works. */
static void correct(const pl_step *s, const pl_stage *stage) {
  bool delayed = s->counters->step >= s->config->root.delay_start;
  for (size_t c = 0; c < s->config->correction_count; c++) {
    const pl_section *section = &s->config->corrections[c];
    const pl_correction_type *type = (const pl_correction_type *)section->type;
    if (!pl_correction_active(s->config, c, delayed ? stage->delay : 0)) continue;
    const pl_correction_call call = correction_call(s, stage, c);
    type->displace(section->config, &call);
  }
}

/* x_{t+1} = (1 - eta wd) x_t - v_t, the decay on decaying segments only and on x_t, not on what the gradient saw. */
static void move(const pl_step *s, pl_stage *stage, double lr) {
  const pl_train_config *train = &s->config->train;
  const pl_section *section = &s->config->optimizer;
  const pl_optimizer_type *optimizer = (const pl_optimizer_type *)section->type;
  const pl_real *x = pl_ring_newest(&stage->ring);
  pl_real *next = pl_ring_next(&stage->ring);
  for (size_t i = 0; i < stage->layout->count; i++) {
    const pl_segment *g = &stage->layout->segments[i];
    double shrink = 1;
    if (g->decay && train->weight_decay_form == PL_DECAY_DECOUPLED) {
      double scale = optimizer->lr_scale ? optimizer->lr_scale(section->config, g) : 1;
      shrink = 1 - lr * scale * train->weight_decay;
    }
    s->device->ops->shrink_subtract(s->device, g->rows * g->cols, shrink, x + g->offset, stage->u + g->offset,
                                    next + g->offset);
  }
  pl_ring_commit(&stage->ring);
}

static void stay(const pl_step *s, pl_stage *stage) {
  const pl_real *x = pl_ring_newest(&stage->ring);
  pl_real *next = pl_ring_next(&stage->ring);
  if (next != x) s->device->ops->copy(s->device, next, x, stage->layout->size * sizeof *x);
  pl_ring_commit(&stage->ring);
}

/* The copy of a tied matrix follows its original. With a uniform delay it has the same bits already; on a per-stage
 * profile this makes the original's delay and correction count. */
static void follow_tied(const pl_step *s) {
  if (!s->tied || s->tie.head_stage == 0) return;
  const pl_real *original = pl_ring_newest(&s->stages[0].ring) + s->tie.embedding;
  pl_real *copy = pl_ring_newest(&s->stages[s->tie.head_stage].ring) + s->tie.head;
  s->device->ops->copy(s->device, copy, original, s->tie.count * sizeof *copy);
}

static void count(const pl_step *s, const pl_update *u) {
  pl_counters *c = s->counters;
  if (u->finite) {
    c->applied++;
    c->delayed += c->step >= s->config->root.delay_start;
    c->skipped_in_row = 0;
  } else {
    c->skipped++;
    c->skipped_in_row++;
    if (c->first_bad_step < 0) c->first_bad_step = c->step;
  }
  pl_counters_train_loss(c, u->loss);
  c->step++;
}

void pl_step_apply(const pl_step *s, bool measure, pl_update *u) {
  double squares = 0;
  u->lr = pl_learning_rate(s->config, s->counters->step);
  sum_tied(s);
  clip(s, u);
  if (!u->finite && s->config->train.nonfinite == PL_NONFINITE_STOP) {
    s->counters->first_bad_step = s->counters->step;
    return;
  }
  for (size_t p = 0; p < stage_count(s); p++) {
    pl_stage *stage = &s->stages[p];
    if (u->finite) {
      add_l2(s, stage);
      displace(s, stage, u->lr);
      correct(s, stage);
      if (measure) pl_stage_add_squares(stage, stage->u, &squares);
      move(s, stage, u->lr);
    } else {
      stay(s, stage);
    }
    s->device->ops->zero(s->device, stage->grad, stage->layout->grad_size * sizeof *stage->grad);
  }
  follow_tied(s);
  u->update_norm = measure ? sqrt(squares) : (double)NAN;
  count(s, u);
}

bool pl_step_y(const pl_step *s, size_t p) {
  const pl_stage *stage = &s->stages[p];
  size_t n = stage->layout->size, with_offset = 0, which = 0, last = 0;
  for (size_t c = 0; c < s->config->correction_count; c++) {
    const pl_correction_type *type = (const pl_correction_type *)s->config->corrections[c].type;
    if (!pl_correction_active(s->config, c, stage->delay)) continue;
    last = c;
    if (!type->offset) continue;
    with_offset++;
    which = c;
  }
  const pl_real *x = pl_ring_newest(&stage->ring);
  if (with_offset != 1 || which != last) {
    s->device->ops->copy(s->device, stage->u, x, n * sizeof *x);
    return false;
  }
  const pl_section *section = &s->config->corrections[which];
  const pl_correction_call call = correction_call(s, stage, which);
  ((const pl_correction_type *)section->type)->offset(section->config, &call, stage->u);
  s->device->ops->axpby(s->device, n, 1, x, 1, stage->u);
  return true;
}
