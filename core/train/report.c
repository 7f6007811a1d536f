/* What everybody has written is read here, round by round and in every process alike: losses and norms of an update,
 * whether it is made, the run's counters, the log, the manifests of checkpoints. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/device/profile.h"
#include "core/train/learning_rate.h"
#include "core/train/training.h"

static pl_frame frame_of(const pl_training *t, size_t replica, size_t s) { return pl_board_read(t->board, replica, s); }

static pl_frame read_last(const pl_training *t, size_t replica) { return frame_of(t, replica, t->stages - 1); }

typedef enum frame_list { SQUARES, WEIGHTS, CHANGE } frame_list;

/* Norm over all stages; the terms are added in the same order for every number of stages. */
static double norm_of(const pl_training *t, frame_list list) {
  double sum = 0;
  for (size_t s = 0; s < t->stages; s++) {
    pl_frame f = frame_of(t, 0, s);
    const double *const lists[] = {[SQUARES] = f.squares, [WEIGHTS] = f.weights, [CHANGE] = f.change};
    for (size_t i = 0; i < f.segments; i++) sum += lists[list][i];
  }
  return sqrt(sum);
}

static double ratio(double top, double bottom) { return bottom > 0 ? top / bottom : (double)NAN; }

/* What clips a stage's gradient. */
static double clip_of(const pl_training *t, size_t s, double norm) {
  const pl_train_config *train = &t->config->train;
  if (train->clip_scope == PL_CLIP_GLOBAL) return pl_clip_factor(train->clip, norm);
  pl_frame f = frame_of(t, 0, s);
  double sum = 0;
  for (size_t i = 0; i < f.segments; i++) sum += f.squares[i];
  return pl_clip_factor(train->clip, sqrt(sum));
}

static double smallest_clip(const pl_training *t, double norm) {
  double least = 1;
  for (size_t s = 0; s < t->stages; s++) least = fmin(least, clip_of(t, s, norm));
  return least;
}

static void measure_delay(const pl_training *t, pl_decision *d) {
  double sum = 0, parameters = 0;
  for (size_t s = 0; s < t->stages; s++) {
    double delay = frame_of(t, 0, s).numbers[PL_FRAME_DELAY], own = (double)pl_layout_parameters(t->layout[s]);
    d->delay = fmax(d->delay, delay);
    sum += delay * own;
    parameters += own;
  }
  d->delay_mean = sum / parameters;
}

static bool told_to_stop(const pl_training *t) {
  for (size_t d = 0; d < t->grid.replicas; d++)
    for (size_t s = 0; s < t->stages; s++)
      if (frame_of(t, d, s).numbers[PL_FRAME_STOP] != 0) return true;
  return false;
}

static pl_decision decision(const pl_training *t, int64_t update) {
  pl_decision d = {.lr = pl_learning_rate(t->config, update), .grad_norm = norm_of(t, SQUARES), .clip_scale = 1};
  for (size_t r = 0; r < t->grid.replicas; r++) d.loss += read_last(t, r).numbers[PL_FRAME_LOSS];
  d.loss /= (double)t->config->train.batch_tokens;
  d.finite = isfinite(d.loss) && isfinite(d.grad_norm);
  if (d.finite) d.clip_scale = smallest_clip(t, d.grad_norm);
  d.tied_scale = clip_of(t, 0, d.grad_norm);
  measure_delay(t, &d);
  d.drift = ratio(norm_of(t, CHANGE), norm_of(t, WEIGHTS));
  d.cosine = NAN;
  return d;
}

static void count(pl_training *t, const pl_decision *d) {
  pl_counters *c = &t->counters;
  if (d->finite) {
    c->applied++;
    c->delayed += c->step >= t->config->root.delay_start;
    c->skipped_in_row = 0;
  } else {
    c->skipped++;
    c->skipped_in_row++;
    if (c->first_bad_step < 0) c->first_bad_step = c->step;
  }
  pl_counters_train_loss(c, d->loss);
  c->step++;
}

static void stop_at(pl_training *t, int64_t step) {
  if (step < t->stop_at) t->stop_at = step;
}

static void probe(pl_training *t, int64_t update) {
  const double before = pl_clock_seconds();
  const pl_profile_part around = pl_profile_enter(t->args->device, PL_PROFILE_probe);
  t->decided[update % (t->horizon + 1)].cosine = pl_probe_cosine(t->probe, update);
  pl_profile_leave(t->args->device, around);
  t->aside += pl_clock_seconds() - before;
}

/* Everybody has a gradient of the update. */
static void read_update(pl_training *t, int64_t update) {
  const pl_decision d = decision(t, update);
  t->decided[update % (t->horizon + 1)] = d;
  t->last_decided = update;
  if (!d.finite && t->config->train.nonfinite == PL_NONFINITE_STOP) {
    t->counters.first_bad_step = update;
    t->broken = true;
    stop_at(t, update);
    return;
  }
  if (told_to_stop(t)) {
    t->told = true;
    stop_at(t, update + t->horizon - 1);
    if (t->stop_at == update) return;
  }
  if (d.finite && pl_training_probes(t, update + 1)) probe(t, update);
  count(t, &d);
  if (t->counters.skipped_in_row >= PL_SKIPS_IN_A_ROW) stop_at(t, update + 1);
}

static pl_point new_point(const pl_training *t, int64_t step) {
  pl_point p = {.step = step, .tokens = step * t->config->train.batch_tokens};
  for (size_t i = 0; i < PL_SERIES_COUNT; i++) p.values[i] = (double)NAN;
  p.values[PL_SERIES_seconds] = pl_clock_seconds() - t->began;
  return p;
}

static void add_update(const pl_training *t, const pl_decision *d, pl_point *p) {
  p->values[PL_SERIES_train_loss] = d->loss;
  p->values[PL_SERIES_lr] = d->lr;
  p->values[PL_SERIES_grad_norm] = d->grad_norm;
  p->values[PL_SERIES_clip_scale] = d->clip_scale;
  p->values[PL_SERIES_delay] = d->delay;
  p->values[PL_SERIES_delay_mean] = d->delay_mean;
  p->values[PL_SERIES_drift] = d->drift;
  p->values[PL_SERIES_gradient_cos] = d->cosine;
  if (!pl_training_logs(t, p->step)) return;
  p->values[PL_SERIES_update_norm] = norm_of(t, SQUARES);
  p->values[PL_SERIES_displacement_ratio] = ratio(norm_of(t, SQUARES), norm_of(t, CHANGE));
}

static void add_validation(pl_training *t, pl_point *p) {
  const double *numbers = read_last(t, 0).numbers;
  pl_counters_val_loss(&t->counters, pl_evaluation_mean(&t->evaluation, numbers[PL_FRAME_VAL]));
  p->values[PL_SERIES_val_loss] = t->counters.val_loss;
  p->values[PL_SERIES_weight_norm] = norm_of(t, WEIGHTS);
  if (p->step == t->config->train.steps && t->has_y)
    p->values[PL_SERIES_val_loss_y] = t->val_loss_y = pl_evaluation_mean(&t->evaluation, numbers[PL_FRAME_VAL_Y]);
}

/* Of the stages of the schedule, replica by replica; what was measured since the last logged point is added up. */
static void add_times(pl_training *t) {
  for (size_t d = 0; d < t->grid.replicas; d++)
    for (size_t p = 0; p < t->grid.stages; p++) {
      const double *numbers = frame_of(t, d, p).numbers;
      pl_stage_times *sum = &t->times[d * t->grid.stages + p];
      sum->busy += numbers[PL_FRAME_BUSY];
      sum->communication += numbers[PL_FRAME_COMMUNICATION];
      sum->idle += numbers[PL_FRAME_IDLE];
    }
}

/* In one process the stages take turns: what one waits is not the schedule's doing. */
static pl_status write_times(pl_training *t, pl_point *p, pl_err *e) {
  pl_log_sink *sink = t->args->sink;
  const size_t count = t->grid.replicas * t->grid.stages;
  double busy = 0, all = 0;
  pl_status st = PL_OK;
  if (t->world->size == 1 || t->grid.stages == 1 || p->step == 0) return PL_OK;
  for (size_t i = 0; i < count; i++) {
    busy += t->times[i].busy;
    all += t->times[i].busy + t->times[i].communication + t->times[i].idle;
  }
  all *= (double)t->world->size / (double)count; /* of processes, not of stages */
  p->values[PL_SERIES_bubble] = all > 0 ? 1 - busy / all : (double)NAN;
  if (sink && sink->times) st = sink->times(sink->self, p->step, count, t->times, e);
  memset(t->times, 0, count * sizeof *t->times);
  return st;
}

static pl_status publish(pl_training *t, pl_err *e) {
  uint64_t checksums[PL_MAX_STAGES];
  const pl_device *device = t->args->device;
  if (t->world->rank > 0) return PL_OK;
  for (size_t s = 0; s < t->stages; s++)
    memcpy(&checksums[s], &frame_of(t, 0, s).numbers[PL_FRAME_CHECKSUM], sizeof *checksums);
  const pl_profile_part before = pl_profile_enter(device, PL_PROFILE_checkpoint);
  pl_status st = pl_checkpoints_publish(&t->checkpoints, &t->counters, checksums, t->args->sink, e);
  pl_profile_leave(device, before);
  return st;
}

static void say_skipped(const pl_training *t, int64_t update) {
  char line[128];
  snprintf(line, sizeof line, "update %lld was skipped: its loss or gradient is not finite", (long long)update);
  if (t->args->say) t->args->say(t->args->say_self, line);
}

/* Whoever watches the run gets the point of a boundary. */
static pl_status tell(pl_training *t, const pl_decision *d, pl_point *p, pl_err *e) {
  const pl_trainer_args *a = t->args;
  const pl_profile_part before = pl_profile_enter(a->device, PL_PROFILE_log);
  pl_status st = PL_OK;
  if (pl_training_logs(t, p->step) || p->step == t->stop_at) {
    PL_TRY(write_times(t, p, e));
    if (a->sink) PL_TRY(a->sink->write(a->sink->self, p, e));
  }
  if (p->step > 0 && a->progress)
    a->progress(a->progress_self, p->step, t->config->train.steps, d->loss, t->counters.val_loss);
out:
  pl_profile_leave(a->device, before);
  return st;
}

/* Everybody has passed the boundary. */
static pl_status read_boundary(pl_training *t, int64_t step, pl_err *e) {
  const pl_trainer_args *a = t->args;
  pl_point p = new_point(t, step);
  pl_status st = PL_OK;
  const pl_decision *d = &t->decided[(step + t->horizon) % (t->horizon + 1)]; /* of update step - 1 */
  t->last_boundary = step;
  if (step > 0) {
    if (!d->finite) say_skipped(t, step - 1);
    add_update(t, d, &p);
    add_times(t);
  }
  if (pl_training_validates(t, step)) add_validation(t, &p);
  PL_TRY(tell(t, d, &p, e));
  if (pl_training_saves(t, step)) PL_TRY(publish(t, e));
  /* With all stages in one process and in step nobody has gone on yet. */
  if (t->world->size == 1 && t->lockstep && a->stop && *a->stop && step < t->config->train.steps) {
    t->told = true;
    stop_at(t, step);
  }
out:
  return st;
}

pl_status pl_report_read(pl_training *t, bool *moved, pl_err *e) {
  pl_status st = PL_OK;
  int64_t round = 0;
  while (!t->broken && pl_board_next(t->board, &round)) {
    if (round % 2 == 0)
      st = read_boundary(t, round / 2, e);
    else
      read_update(t, round / 2);
    pl_board_read_on(t->board);
    *moved = true;
    if (st != PL_OK) break;
  }
  return st;
}

/* Takes in all rounds before `end`, those that are not written yet as they are. */
static pl_status take_in(pl_training *t, int64_t end, pl_err *e) {
  pl_status st = PL_OK;
  int64_t next = 0;
  PL_TRY(pl_board_finish(t->board, end, e));
  for (bool there = pl_board_next(t->board, &next); next < end; there = pl_board_next(t->board, &next))
    if (there)
      pl_board_read_on(t->board);
    else
      PL_TRY(pl_training_wait(t, e));
out:
  return st;
}

pl_status pl_report_save(pl_training *t, pl_err *e) {
  pl_status st = PL_OK;
  /* A stage that learned late of the stop may have told its gradient of the update that is not made. */
  const int64_t round = 2 * t->stop_at + 2;
  const pl_profile_part before = pl_profile_enter(t->args->device, PL_PROFILE_checkpoint);
  PL_TRY(take_in(t, round, e));
  for (size_t s = 0; s < t->stages && t->first_replica == 0; s++) {
    if (!pl_training_owns(t, s)) continue;
    uint64_t checksum = 0;
    PL_TRY(pl_checkpoints_write(&t->checkpoints, s, &checksum, e));
    memcpy(&pl_board_frame(t->board, round, 0, s).numbers[PL_FRAME_CHECKSUM], &checksum, sizeof checksum);
  }
  PL_TRY(pl_board_finish(t->board, round + 1, e));
  int64_t next = 0;
  while (!pl_board_next(t->board, &next)) PL_TRY(pl_training_wait(t, e));
  PL_TRY(publish(t, e));
  pl_board_read_on(t->board);
out:
  pl_profile_leave(t->args->device, before);
  return st;
}

pl_status pl_report_drain(pl_training *t, pl_err *e) { return take_in(t, 2 * (t->stop_at + t->horizon), e); }
