#include "core/train/trainer.h"

#include <math.h>
#include <stdio.h>

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/train/rule_table.h"
#include "core/train/training.h"

static void say(const pl_trainer_args *a, const char *line) {
  if (a->say) a->say(a->say_self, line);
}

static bool stopping(const pl_trainer_args *a) { return a->stop && *a->stop; }

/* Is something due after `step` updates? Every `every` updates (0: never) and at the end. */
static bool due(int64_t every, int64_t step, int64_t steps) {
  return step == steps || (every > 0 && step % every == 0);
}

static pl_point new_point(const pl_training *t, double started) {
  pl_point p = {.step = t->counters.step, .tokens = t->counters.step * t->config->train.batch_tokens};
  for (size_t i = 0; i < PL_SERIES_COUNT; i++) p.values[i] = (double)NAN;
  p.values[PL_SERIES_seconds] = pl_clock_seconds() - started;
  return p;
}

static void validate(pl_training *t, pl_point *p) {
  pl_counters_val_loss(&t->counters, pl_training_validate(t));
  p->values[PL_SERIES_val_loss] = t->counters.val_loss;
  p->values[PL_SERIES_weight_norm] = pl_training_weight_norm(t);
}

static void add_update(const pl_training *t, pl_point *p) {
  p->values[PL_SERIES_train_loss] = t->update.loss;
  p->values[PL_SERIES_lr] = t->update.lr;
  p->values[PL_SERIES_grad_norm] = t->update.grad_norm;
  p->values[PL_SERIES_clip_scale] = t->update.clip_scale;
  p->values[PL_SERIES_update_norm] = t->update.update_norm;
  p->values[PL_SERIES_delay] = t->delay;
  p->values[PL_SERIES_delay_mean] = t->delay_mean;
}

static pl_status write_point(const pl_training *t, const pl_point *p, pl_err *e) {
  pl_log_sink *sink = t->args->sink;
  return sink ? sink->write(sink->self, p, e) : PL_OK;
}

/* Restores a checkpoint, or starts with x_0 and its validation loss, point 0. */
static pl_status begin(pl_training *t, double started, int64_t *resumed_from, pl_err *e) {
  const pl_trainer_args *a = t->args;
  pl_status st = PL_OK;
  bool found = false;
  char line[128];
  PL_TRY(pl_checkpoints_resume(&t->checkpoints, &t->counters, a->sink, a->say, a->say_self, &found, e));
  *resumed_from = found ? t->counters.step : -1;
  if (found) {
    snprintf(line, sizeof line, "resumed from the checkpoint of step %lld", (long long)t->counters.step);
    say(a, line);
  } else {
    pl_training_start(t);
    pl_point p = new_point(t, started);
    validate(t, &p);
    PL_TRY(write_point(t, &p, e));
  }
  pl_engine_start(t->engine, t->counters.step, t->config->train.steps);
out:
  return st;
}

static void report_skip(const pl_training *t) {
  char line[128];
  snprintf(line, sizeof line, "update %lld was skipped: its loss or gradient is not finite",
           (long long)(t->counters.step - 1));
  say(t->args, line);
}

/* One update and what follows it. *halted: the update was not made, or was the last of too many that were skipped. */
static pl_status advance(pl_training *t, double started, double *training, bool *halted, pl_err *e) {
  pl_status st = PL_OK;
  const pl_train_config *train = &t->config->train;
  int64_t next = t->counters.step + 1;
  bool validates = due(train->val_every, next, train->steps);
  bool logs = validates || due(train->log_every, next, train->steps);
  t->measure = logs;
  double before = pl_clock_seconds();
  PL_TRY(pl_engine_run(t->engine, next, halted, e));
  *training += pl_clock_seconds() - before;
  if (t->counters.step < next) goto out;
  if (!t->update.finite) report_skip(t);
  pl_point p = new_point(t, started);
  add_update(t, &p);
  if (validates) validate(t, &p);
  if (next == train->steps) p.values[PL_SERIES_val_loss_y] = t->val_loss_y = pl_training_validate_y(t);
  if (logs || *halted) PL_TRY(write_point(t, &p, e));
  if (t->args->progress)
    t->args->progress(t->args->progress_self, next, train->steps, t->update.loss, t->counters.val_loss);
  if (train->checkpoint_every > 0 && next % train->checkpoint_every == 0 && next < train->steps && !*halted)
    PL_TRY(pl_checkpoints_save(&t->checkpoints, &t->counters, t->args->sink, e));
out:
  return st;
}

static pl_status loop(pl_training *t, double started, pl_outcome *out, pl_err *e) {
  pl_status st = PL_OK;
  const int64_t steps = t->config->train.steps;
  double training = 0;
  bool halted = false;
  PL_TRY(begin(t, started, &out->resumed_from, e));
  int64_t first = t->counters.step;
  while (t->counters.step < steps && !halted && !stopping(t->args)) PL_TRY(advance(t, started, &training, &halted, e));
  bool finished = t->counters.step == steps && !halted;
  if (!finished && !halted) {
    PL_TRY(pl_checkpoints_save(&t->checkpoints, &t->counters, t->args->sink, e));
    out->end = PL_END_STOPPED;
  } else if (pl_counters_diverged(&t->counters, steps, finished, out->reason, sizeof out->reason)) {
    out->end = PL_END_DIVERGED;
  }
  if (finished) {
    out->final_val_loss = t->counters.val_loss;
    out->val_loss_y = t->val_loss_y;
  }
  double tokens = (double)((t->counters.step - first) * t->config->train.batch_tokens);
  if (training > 0) out->tokens_per_second = tokens / training;
out:
  return st;
}

static void fill_outcome(const pl_training *t, double started, pl_outcome *out) {
  const pl_counters *c = &t->counters;
  out->steps = c->step;
  out->tokens = c->step * t->config->train.batch_tokens;
  out->first_bad_step = c->first_bad_step;
  out->skipped = c->skipped;
  out->initial_val_loss = c->initial_val_loss;
  out->best_val_loss = c->best_val_loss;
  out->final_train_loss = c->train_loss;
  out->seconds = pl_clock_seconds() - started;
}

static pl_status take_weights(const pl_training *t, pl_real **weights, size_t *count, pl_err *e) {
  pl_status st = PL_OK;
  size_t at = 0;
  *count = 0;
  for (size_t p = 0; p < t->stages; p++) *count += t->stage[p].layout->size;
  PL_TRY(pl_alloc(*count, sizeof **weights, "the final weights", weights, e));
  for (size_t p = 0; p < t->stages; p++) {
    size_t n = t->stage[p].layout->size;
    t->args->device->ops->download(t->args->device, *weights + at, pl_ring_newest(&t->stage[p].ring),
                                   n * sizeof **weights);
    at += n;
  }
out:
  return st;
}

pl_status pl_train_weights(const pl_trainer_args *args, pl_outcome *out, pl_real **weights, size_t *count, pl_err *e) {
  pl_status st = PL_OK;
  double started = pl_clock_seconds(), none = (double)NAN;
  pl_training *t = NULL;
  *out = (pl_outcome){.end = PL_END_DONE,
                      .first_bad_step = -1,
                      .resumed_from = -1,
                      .final_val_loss = none,
                      .val_loss_y = none,
                      .tokens_per_second = none};
  if (weights) *weights = NULL;
  PL_TRY(pl_alloc(1, sizeof *t, "the training", &t, e));
  PL_TRY(pl_training_open(args, t, e));
  if (args->say) PL_TRY(pl_rule_table_say(t->config, t->stage, t->stages, args->say, args->say_self, e));
  PL_TRY(loop(t, started, out, e));
  fill_outcome(t, started, out);
  if (weights) PL_TRY(take_weights(t, weights, count, e));
out:
  if (t) pl_training_close(t);
  pl_free(t);
  return st;
}

pl_status pl_train(const pl_trainer_args *args, pl_outcome *out, pl_err *e) {
  return pl_train_weights(args, out, NULL, NULL, e);
}
