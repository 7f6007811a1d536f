#include "core/train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/device/profile.h"
#include "core/train/rule_table.h"
#include "core/train/training.h"

static void say(const pl_trainer_args *a, const char *line) {
  if (a->say) a->say(a->say_self, line);
}

/* Restores a checkpoint, or starts with x_0. */
static pl_status begin(pl_training *t, int64_t *resumed_from, pl_err *e) {
  const pl_trainer_args *a = t->args;
  pl_status st = PL_OK;
  bool found = false;
  char line[128];
  PL_TRY(pl_checkpoints_resume(&t->checkpoints, t->world, &t->counters, a->sink, a->say, a->say_self, &found, e));
  *resumed_from = found ? t->counters.step : -1;
  if (found) {
    snprintf(line, sizeof line, "resumed from the checkpoint of step %lld", (long long)t->counters.step);
    say(a, line);
  } else {
    PL_TRY(pl_training_start(t, e));
  }
  pl_training_begin(t, t->counters.step, found);
  t->start = t->counters.step;
  if (found && t->world->size == 1 && a->stop && *a->stop) {
    t->told = true;
    t->stop_at = t->start;
  }
out:
  return st;
}

/* Everything that is to be made here is made, and everybody's figures were read. */
static bool is_over(const pl_training *t) {
  if (t->broken) return true;
  if (t->last_boundary < t->stop_at) return false;
  for (size_t s = 0; s < t->stages; s++)
    if (pl_training_owns(t, s) && t->stage[s].ring.newest < t->stop_at) return false;
  return true;
}

static pl_status go_on(pl_training *t, pl_err *e) {
  pl_status st = PL_OK;
  bool moved = false;
  const double waited = t->world->waited;
  for (size_t d = 0; d < t->replicas; d++) PL_TRY(pl_engine_step(t->replica[d].engine, &moved, e));
  PL_TRY(pl_work_advance(t, &moved, e));
  PL_TRY(pl_report_read(t, &moved, e));
  if (moved) {
    t->moved = pl_clock_seconds();
  } else if (!is_over(t)) {
    PL_TRY(pl_training_wait(t, e));
    t->polled += t->world->waited - waited;
  }
out:
  return st;
}

static void say_memory(const pl_trainer_args *a) {
  char line[1024];
  if (!a->device->ops->memory) return;
  a->device->ops->memory(a->device, line, sizeof line);
  say(a, line);
}

/* Who failed, where there are several; another rank's report says so already. */
static pl_status name_rank(const pl_training *t, pl_status st, pl_err *e) {
  if (st == PL_OK || e == NULL || t->world->size == 1 || strncmp(e->text, "rank ", 5) == 0) return st;
  return pl_err_prefix(e, "rank %zu", t->world->rank);
}

static pl_status close_traces(pl_training *t, pl_err *e) {
  pl_status st = PL_OK;
  for (size_t p = 0; p < PL_MAX_STAGES && st == PL_OK; p++) {
    st = pl_trace_close(t->trace[p], e);
    t->trace[p] = NULL;
  }
  return st;
}

static pl_status loop(pl_training *t, pl_outcome *out, pl_err *e) {
  pl_status st = PL_OK;
  const int64_t steps = t->config->train.steps;
  bool moved = false;
  PL_TRY(begin(t, &out->resumed_from, e));
  const pl_profile_part outside = pl_profile_enter(t->args->device, PL_PROFILE_other);
  const double before = pl_clock_seconds();
  /* The first version is validated before anything is in flight. */
  PL_TRY(name_rank(t, pl_work_advance(t, &moved, e), e));
  while (!is_over(t)) PL_TRY(name_rank(t, go_on(t, e), e));
  const double training = pl_clock_seconds() - before - t->aside;
  pl_profile_leave(t->args->device, outside);
  if (t->broken) PL_TRY(pl_report_drain(t, e));
  const bool halted = t->broken || t->counters.skipped_in_row >= PL_SKIPS_IN_A_ROW;
  const bool finished = t->counters.step == steps && !halted;
  if (!finished && !halted) {
    PL_TRY(name_rank(t, pl_report_save(t, e), e));
    out->end = PL_END_STOPPED;
  } else if (pl_counters_diverged(&t->counters, steps, finished, out->reason, sizeof out->reason)) {
    out->end = PL_END_DIVERGED;
  }
  if (finished) {
    out->final_val_loss = t->counters.val_loss;
    out->val_loss_y = t->val_loss_y;
  }
  double tokens = (double)((t->counters.step - t->start) * t->config->train.batch_tokens);
  if (training > 0 && tokens > 0) out->tokens_per_second = tokens / training;
  PL_TRY(close_traces(t, e));
out:
  return st;
}

static void fill_outcome(const pl_training *t, pl_outcome *out) {
  const pl_counters *c = &t->counters;
  out->steps = c->step;
  out->tokens = c->step * t->config->train.batch_tokens;
  out->first_bad_step = c->first_bad_step;
  out->skipped = c->skipped;
  out->initial_val_loss = c->initial_val_loss;
  out->best_val_loss = c->best_val_loss;
  out->final_train_loss = c->train_loss;
  out->seconds = pl_clock_seconds() - t->began;
}

static pl_status take_weights(const pl_training *t, pl_real **weights, size_t *count, pl_err *e) {
  pl_status st = PL_OK;
  size_t at = 0;
  *count = 0;
  for (size_t s = 0; s < t->stages; s++) *count += pl_training_owns(t, s) ? t->layout[s]->size : 0;
  PL_TRY(pl_alloc(*count, sizeof **weights, "the final weights", weights, e));
  for (size_t s = 0; s < t->stages; s++) {
    if (!pl_training_owns(t, s)) continue;
    size_t n = t->layout[s]->size;
    t->args->device->ops->download(t->args->device, *weights + at, pl_ring_newest(&t->stage[s].ring),
                                   n * sizeof **weights);
    at += n;
  }
out:
  return st;
}

pl_status pl_train_weights(const pl_trainer_args *args, pl_outcome *out, pl_real **weights, size_t *count, pl_err *e) {
  pl_status st = PL_OK;
  double began = pl_clock_seconds(), none = (double)NAN;
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
  t->began = began;
  say_memory(args);
  if (t->world->note[0] != '\0') say(args, t->world->note);
  if (args->say) PL_TRY(pl_rule_table_say(t->config, t->layout, t->stages, args->say, args->say_self, e));
  PL_TRY(loop(t, out, e));
  fill_outcome(t, out);
  if (weights) PL_TRY(take_weights(t, weights, count, e));
out:
  if (t) pl_training_close(t);
  pl_free(t);
  return st;
}

pl_status pl_train(const pl_trainer_args *args, pl_outcome *out, pl_err *e) {
  return pl_train_weights(args, out, NULL, NULL, e);
}
