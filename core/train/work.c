/* What a stage does between the gradients of one update and those of the next: sum, decide with the others or alone,
 * make the new version, validate, save, tell. */
#include <math.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/device/profile.h"
#include "core/train/learning_rate.h"
#include "core/train/training.h"

static size_t last_stage(const pl_training *t) { return t->stages - 1; }

static pl_frame own_frame(const pl_training *t, int64_t round, size_t replica, size_t s) {
  return pl_board_frame(t->board, round, t->first_replica + replica, s);
}

static int64_t update_round(int64_t update) { return 2 * update + 1; }
static int64_t boundary_round(int64_t step) { return 2 * step; }

static void close_stage(const pl_training *t, const pl_replica *r, size_t s, int64_t update) {
  pl_frame f = own_frame(t, update_round(update), r->index, s);
  f.numbers[PL_FRAME_LOSS] = s == last_stage(t) ? pl_engine_loss(r->engine) : 0;
  f.numbers[PL_FRAME_DELAY] = (double)pl_engine_delay(r->engine, s);
}

pl_status pl_work_close(pl_replica *r, size_t stage, int64_t update, bool *passed, pl_err *e) {
  (void)e;
  pl_training *t = r->training;
  const uint64_t bit = UINT64_C(1) << r->index;
  *passed = update < t->stop_at;
  for (size_t s = stage; s < t->stages && update < t->stop_at; s += t->grid.stages) {
    pl_work *w = &t->work[s];
    int64_t newest = t->stage[s].ring.newest;
    if (newest > update) continue;
    *passed = *passed && newest == update && t->overlap;
    if (newest < update || (w->closed & bit)) continue;
    w->closed |= bit;
    close_stage(t, r, s, update);
  }
  return PL_OK;
}

/* Replicas of this process in their order, then those of others. */
static pl_status reduce(pl_training *t, size_t s, pl_err *e) {
  const pl_stage *stage = &t->stage[s];
  const pl_ops *ops = stage->device->ops;
  const size_t n = stage->layout->grad_size;
  pl_real *sum = pl_stage_grad(stage, stage->ring.newest, 0);
  for (size_t d = 1; d < t->replicas; d++) {
    pl_real *other = pl_stage_grad(stage, stage->ring.newest, d);
    ops->axpby(stage->device, n, 1, other, 1, sum);
    ops->zero(stage->device, other, n * sizeof *other);
  }
  t->work[s].phase = PL_WORK_REDUCING;
  return t->work[s].reduce ? t->world->type->sum_begin(t->work[s].reduce, sum, e) : PL_OK;
}

static pl_real *tied_part(const pl_training *t, size_t s, bool head) {
  const pl_stage *stage = &t->stage[s];
  return pl_stage_grad(stage, stage->ring.newest, 0) + (head ? t->tie.head : t->tie.embedding);
}

static bool is_tied(const pl_training *t, size_t s) { return t->tied && (s == 0 || s == t->tie.head_stage); }

static pl_status tie(pl_training *t, size_t s, pl_err *e) {
  pl_work *w = &t->work[s];
  w->phase = PL_WORK_TYING;
  return w->tie ? t->world->type->sum_begin(w->tie, tied_part(t, s, s > 0), e) : PL_OK;
}

/* Whichever of two ends in one process comes last does it for both. */
static pl_status tying(pl_training *t, size_t s, bool *done, pl_err *e) {
  const size_t head = t->tie.head_stage;
  pl_work *w = &t->work[s];
  if (!is_tied(t, s)) return PL_OK;
  if (w->tie) return t->world->type->sum_ready(w->tie, done, e);
  *done = t->work[0].phase == PL_WORK_TYING && t->work[head].phase == PL_WORK_TYING;
  if (*done) {
    pl_step_sum_tied(t->stage[0].device, t->tie.count, tied_part(t, head, true), tied_part(t, 0, false));
    t->work[0].phase = t->work[head].phase = PL_WORK_SUMMED;
  }
  return PL_OK;
}

/* How far the weights went since the gradient's forward; u is free until the update is made. The version that forward
 * read is gone where backward read a newer one. */
static void measure_drift(const pl_stage *stage, const pl_frame *f) {
  const size_t lag = (size_t)f->numbers[PL_FRAME_DELAY];
  const pl_real *x = pl_ring_newest(&stage->ring);
  pl_stage_squares(stage, x, f->weights);
  for (size_t i = 0; lag >= stage->ring.depth && i < f->segments; i++) f->change[i] = (double)NAN;
  if (lag == 0 || lag >= stage->ring.depth) return;
  pl_stage_distances(stage, x, pl_ring_at(&stage->ring, stage->ring.newest - (int64_t)lag), f->change);
}

static pl_status publish_gradient(pl_training *t, size_t s, pl_err *e) {
  pl_work *w = &t->work[s];
  const pl_stage *stage = &t->stage[s];
  const int64_t update = stage->ring.newest;
  double sum = 0;
  pl_frame f = own_frame(t, update_round(update), 0, s);
  pl_stage_squares(stage, pl_stage_grad(stage, update, 0), f.squares);
  for (size_t i = 0; i < f.segments; i++) sum += f.squares[i];
  if (pl_training_logs(t, update + 1)) measure_drift(stage, &f);
  f.numbers[PL_FRAME_STOP] = t->args->stop && *t->args->stop;
  w->norm = sqrt(sum);
  w->finite = isfinite(w->norm) && isfinite(f.numbers[PL_FRAME_LOSS]);
  w->phase = PL_WORK_READY;
  const pl_status st = stage->device->ops->check(stage->device, e);
  return st == PL_OK ? pl_board_written(t->board, update_round(update), e) : st;
}

/* A tied copy on another delay than its original follows that: it counts. */
static bool follows(const pl_training *t, size_t s) {
  return t->tied && s > 0 && s == t->tie.head_stage && t->stage[0].device && t->stage[0].delay != t->stage[s].delay;
}

/* False: the update cannot be made yet, or not at all. */
static bool decide(const pl_training *t, size_t s, pl_decision *d) {
  const pl_work *w = &t->work[s];
  const pl_train_config *train = &t->config->train;
  const int64_t update = t->stage[s].ring.newest;
  if (update >= t->stop_at || t->last_decided < update - t->horizon + 1) return false;
  if (follows(t, s) && t->stage[0].ring.newest == update) return false;
  *d = (pl_decision){.finite = w->finite, .grad_norm = w->norm, .lr = pl_learning_rate(t->config, update)};
  if (t->lockstep) *d = t->decided[update % (t->horizon + 1)];
  d->clip_scale = pl_clip_factor(train->clip, train->clip_scope == PL_CLIP_STAGE ? w->norm : d->grad_norm);
  return d->finite || train->nonfinite == PL_NONFINITE_SKIP;
}

static void make_version(pl_training *t, size_t s, const pl_decision *d) {
  pl_work *w = &t->work[s];
  pl_stage *stage = &t->stage[s];
  const int64_t next = stage->ring.newest + 1;
  const pl_frame f = own_frame(t, boundary_round(next), 0, s);
  const bool logs = pl_training_logs(t, next);
  double before = pl_clock_seconds();
  pl_step_apply(t->config, stage, d, logs ? f.change : NULL, logs ? f.squares : NULL);
  if (follows(t, s))
    stage->device->ops->copy(stage->device, pl_ring_newest(&stage->ring) + t->tie.head,
                             pl_ring_newest(&t->stage[0].ring) + t->tie.embedding, t->tie.count * sizeof(pl_real));
  double after = pl_clock_seconds();
  w->busy += after - before;
  pl_training_trace(t, s % t->grid.stages,
                    &(pl_trace_row){.update = next - 1, .op = PL_OP_UPDATE, .start = before, .end = after});
  w->closed = 0;
  w->batch = 0;
  w->val[0] = w->val[1] = 0;
  w->phase = PL_WORK_BOUNDARY;
}

/* The next batch, as far as messages allow; *done when all are through. */
static pl_status validate_one(pl_training *t, size_t s, size_t batches, bool *done, bool *moved, pl_err *e) {
  pl_work *w = &t->work[s];
  pl_stage *stage = &t->stage[s];
  pl_transport *transport = t->replica[0].transport;
  const size_t P = t->grid.stages;
  pl_message m = {.kind = PL_MESSAGE_VALIDATION, .update = stage->ring.newest};
  bool passed = true;
  pl_status st = PL_OK;
  if (w->unsent) {
    m.link = s % P;
    m.chunk = s / P;
    m.microbatch = w->batch - 1;
    PL_TRY(transport->type->send(transport, &m, &w->out, &passed, e));
    w->unsent = !passed;
  } else if (w->batch < batches) {
    m.microbatch = w->batch;
    if (s > 0) {
      m.link = (s - 1) % P;
      m.chunk = (s - 1) / P;
      PL_TRY(transport->type->receive(transport, &m, &w->in, &passed, e));
    }
    if (passed) {
      const size_t pass = w->batch / t->evaluation.batches, i = w->batch % t->evaluation.batches;
      if (pass == 1 && i == 0) pl_step_y(t->config, stage);
      w->val[pass] += pl_evaluation_pass(&t->evaluation, s, pass == 0 ? pl_ring_newest(&stage->ring) : stage->u, i,
                                         s > 0 ? w->in : NULL, s < last_stage(t) ? w->out : NULL);
      PL_TRY(stage->device->ops->check(stage->device, e));
      w->batch++;
      w->unsent = s < last_stage(t);
    }
  }
  *moved = *moved || passed;
  *done = w->batch == batches && !w->unsent;
out:
  return st;
}

/* By the first replica alone: the others have the same weights. */
static pl_status validate(pl_training *t, size_t s, bool *done, bool *moved, pl_err *e) {
  const int64_t step = t->stage[s].ring.newest;
  const size_t passes = step == t->config->train.steps && t->has_y ? 2 : 1;
  pl_status st = PL_OK;
  *done = t->first_replica > 0 || !pl_training_validates(t, step);
  if (*done) return PL_OK;
  const pl_profile_part before = pl_profile_enter(t->stage[s].device, PL_PROFILE_validation);
  for (bool went = true; went && !*done;) {
    went = false;
    PL_TRY(validate_one(t, s, passes * t->evaluation.batches, done, &went, e));
    *moved = *moved || went;
  }
out:
  pl_profile_leave(t->stage[s].device, before);
  return st;
}

static pl_status save(pl_training *t, size_t s, const pl_frame *f, pl_err *e) {
  if (!pl_training_saves(t, t->stage[s].ring.newest) || t->first_replica > 0) return PL_OK;
  uint64_t checksum = 0;
  const pl_profile_part before = pl_profile_enter(t->stage[s].device, PL_PROFILE_checkpoint);
  pl_status st = pl_checkpoints_write(&t->checkpoints, s, &checksum, e);
  pl_profile_leave(t->stage[s].device, before);
  memcpy(&f->numbers[PL_FRAME_CHECKSUM], &checksum, sizeof checksum);
  return st;
}

static void tell_times(pl_training *t, size_t s, const pl_frame *f) {
  pl_work *w = &t->work[s];
  const double now = pl_clock_seconds(), so_far = t->world->waited - t->polled, waited = so_far - w->waited;
  const double idle = now - w->since - w->busy - waited;
  if (s < t->grid.stages) {
    f->numbers[PL_FRAME_BUSY] = w->busy;
    f->numbers[PL_FRAME_COMMUNICATION] = waited;
    f->numbers[PL_FRAME_IDLE] = idle > 0 ? idle : 0;
  } else {
    t->work[s % t->grid.stages].busy += w->busy; /* a chunk's time is its stage's */
  }
  w->busy = 0;
  w->waited = so_far;
  w->since = now;
}

static pl_status at_boundary(pl_training *t, size_t s, bool *moved, pl_err *e) {
  pl_work *w = &t->work[s];
  const pl_stage *stage = &t->stage[s];
  const int64_t step = stage->ring.newest;
  pl_status st = PL_OK;
  bool done = true;
  double before = pl_clock_seconds();
  PL_TRY(validate(t, s, &done, moved, e));
  t->aside += pl_clock_seconds() - before;
  if (!done) goto out;
  pl_frame f = own_frame(t, boundary_round(step), 0, s);
  before = pl_clock_seconds();
  PL_TRY(save(t, s, &f, e));
  t->aside += pl_clock_seconds() - before;
  if (pl_training_validates(t, step)) pl_stage_squares(stage, pl_ring_newest(&stage->ring), f.weights);
  f.numbers[PL_FRAME_VAL] = w->val[0];
  f.numbers[PL_FRAME_VAL_Y] = w->val[1];
  tell_times(t, s, &f);
  w->phase = PL_WORK_OPEN;
  *moved = true;
  PL_TRY(pl_board_written(t->board, boundary_round(step), e));
out:
  return st;
}

static bool is_closed(const pl_training *t, size_t s) {
  const uint64_t all = t->replicas < 64 ? (UINT64_C(1) << t->replicas) - 1 : UINT64_MAX;
  return t->work[s].closed == all && t->stage[s].ring.newest < t->stop_at;
}

/* One step of a stage; *went = false: it has to wait. */
static pl_status step(pl_training *t, size_t s, bool *went, pl_err *e) {
  pl_work *w = &t->work[s];
  pl_decision d;
  bool done = true;
  pl_status st = PL_OK;
  *went = false;
  switch (w->phase) {
  case PL_WORK_OPEN:
    *went = is_closed(t, s);
    return *went ? reduce(t, s, e) : PL_OK;
  case PL_WORK_REDUCING:
    if (w->reduce) PL_TRY(t->world->type->sum_ready(w->reduce, &done, e));
    *went = done;
    return done ? tie(t, s, e) : PL_OK;
  case PL_WORK_TYING:
    PL_TRY(tying(t, s, &done, e));
    if (done) w->phase = PL_WORK_SUMMED;
    *went = done;
    return PL_OK;
  case PL_WORK_SUMMED:
    *went = true;
    return publish_gradient(t, s, e);
  case PL_WORK_READY:
    *went = decide(t, s, &d);
    if (*went) make_version(t, s, &d);
    return PL_OK;
  case PL_WORK_BOUNDARY:
    return at_boundary(t, s, went, e);
  }
out:
  return st;
}

pl_status pl_work_advance(pl_training *t, bool *moved, pl_err *e) {
  pl_status st = PL_OK;
  for (size_t s = 0; s < t->stages; s++) {
    bool went = pl_training_owns(t, s);
    while (went) {
      PL_TRY(step(t, s, &went, e));
      *moved = *moved || went;
    }
  }
out:
  return st;
}
