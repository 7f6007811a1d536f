#include "runners/run_one.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/fs.h"
#include "core/base/memory.h"
#include "core/train/checkpoint.h"
#include "results/curves.h"
#include "results/journal.h"
#include "results/provenance.h"
#include "runners/heartbeat.h"
#include "runners/launchers/slurm/holder.h"
#include "runners/preflight.h"
#include "runners/ranks.h"
#include "runners/registries.h"

/* Everything that one run holds open, and the sink that the trainer writes to. */
typedef struct run_state {
  const pl_run_one_args *args;
  pl_heartbeat *heartbeat;
  char *folder, *journal_path, *times_path, *curves_path, *checkpoints;
  pl_json *document;
  pl_run_config config;
  pl_journal *journal, *times; /* times: of the stages, from the first record on */
  FILE *log;
  const pl_dataset_type *dataset_type;
  pl_dataset *dataset;
  pl_device *device;
  pl_h5 *blank;          /* for the next curves.h5; NULL: it makes its own */
  double curves_written; /* clock */
  bool recorded;         /* in meta.json */
  bool led;              /* the other ranks were told what to do */
  int64_t start_step;    /* -1: not known yet */
  int64_t said;          /* tenths of the run already logged */
} run_state;

enum { CURVES_SECONDS = 60 };
static const double GATHER_SECONDS =
    0.005; /* of the journal: steps of a few microseconds need not each reach the file */

static void say(void *self, const char *line) {
  run_state *r = self;
  fprintf(r->log, "%s\n", line);
  fflush(r->log);
}

static pl_status write_curves(run_state *r, pl_err *e) {
  pl_curve curve;
  pl_status st = pl_curve_read(r->journal_path, &curve, e);
  if (st != PL_OK) return st;
  st = pl_times_read(r->times_path, &curve.times, e);
  if (st == PL_OK) {
    st = pl_curves_write_into(r->blank, r->curves_path, &curve, r->document, r->args->id, e);
    r->blank = NULL;
  }
  pl_curve_free(&curve);
  r->curves_written = pl_clock_seconds();
  return st;
}

/* Tells meta.json about this attempt, once. */
static pl_status record_attempt(run_state *r, pl_err *e) {
  if (r->recorded) return PL_OK;
  r->recorded = true;
  pl_attempt attempt = {.attempt = pl_journal_attempt(r->journal),
                        .start_step = r->start_step,
                        .device_kernel = r->device->kernel,
                        .data_fingerprint = r->dataset != NULL ? r->dataset_type->fingerprint(r->dataset) : 0,
                        .threads = (int)r->device->threads,
                        .origin = r->args->origin,
                        .note = r->args->note};
  char *difference = NULL;
  pl_status st = pl_provenance_add(r->folder, &attempt, &difference, e);
  if (difference != NULL) say(r, difference);
  pl_free(difference);
  return st;
}

/* An attempt starts with point 0 or with the update after a checkpoint, which not every log cadence has a point for. */
static void note_start(run_state *r, int64_t step) {
  if (r->start_step < 0) r->start_step = step > 0 ? step - 1 : 0;
}

static pl_status lost(pl_err *e) {
  return pl_fail(e, PL_FAIL, "another process took the run over; this one writes no more");
}

static bool is_owned(void *self) { return pl_heartbeat_owns_now(((run_state *)self)->heartbeat); }

static pl_status sink_write(void *self, const pl_point *p, pl_err *e) {
  run_state *r = self;
  if (!pl_heartbeat_owns(r->heartbeat)) return lost(e);
  note_start(r, p->step);
  pl_status st = record_attempt(r, e);
  return st != PL_OK ? st : pl_journal_write(r->journal, p, e);
}

static pl_status sink_times(void *self, int64_t step, size_t stages, const pl_stage_times *times, pl_err *e) {
  run_state *r = self;
  pl_status st = PL_OK;
  if (!pl_heartbeat_owns(r->heartbeat)) return lost(e);
  if (r->times == NULL) st = pl_times_open(r->times_path, stages, pl_journal_attempt(r->journal), &r->times, e);
  return st != PL_OK ? st : pl_times_write(r->times, step, times, e);
}

static pl_status sync_contents(run_state *r, uint64_t *length, pl_err *e) {
  pl_status st = PL_OK;
  char *meta = NULL;
  if (r->recorded) {
    PL_TRY(pl_path_join(r->folder, "meta.json", &meta, e));
    PL_TRY(pl_path_sync(meta, e));
  }
  if (r->times != NULL) PL_TRY(pl_journal_sync(r->times, length, e));
  PL_TRY(pl_journal_sync(r->journal, length, e));
out:
  pl_free(meta);
  return st;
}

/* What a checkpoint counts on: its own folder and the other names too. */
static pl_status sink_sync(void *self, uint64_t *length, pl_err *e) {
  run_state *r = self;
  pl_status st = sync_contents(r, length, e);
  return st != PL_OK ? st : pl_path_sync(r->folder, e);
}

static uint64_t sink_length(void *self) { return pl_journal_length(((run_state *)self)->journal); }

static pl_status sink_checkpointed(void *self, pl_err *e) {
  run_state *r = self;
  if (pl_clock_seconds() - r->curves_written < CURVES_SECONDS) return PL_OK;
  return write_curves(r, e);
}

static void on_progress(void *self, int64_t step, int64_t steps, double train_loss, double val_loss) {
  run_state *r = self;
  note_start(r, step);
  if (r->args->progress != NULL) r->args->progress(r->args->progress_self, step, steps, train_loss, val_loss);
  int64_t tenths = step * 10 / steps;
  if (tenths <= r->said) return;
  r->said = tenths;
  fprintf(r->log, "step %" PRId64 "/%" PRId64 " train %.4f val %.4f\n", step, steps, train_loss, val_loss);
  fflush(r->log);
}

static pl_status open_log(run_state *r, pl_err *e) {
  char name[64];
  char *path = NULL;
  snprintf(name, sizeof name, "log.%" PRId64 ".txt", pl_journal_attempt(r->journal));
  pl_status st = pl_path_join(r->folder, name, &path, e);
  if (st != PL_OK) return st;
  r->log = fopen(path, "a");
  if (r->log == NULL) st = pl_fail(e, PL_FAIL, "%s: cannot be written: %s", path, strerror(errno));
  if (r->log != NULL && r->args->own_log) {
    dup2(fileno(r->log), STDOUT_FILENO);
    dup2(fileno(r->log), STDERR_FILENO);
  }
  pl_free(path);
  return st;
}

/* An attempt that ends without a newer checkpoint than it began with is no progress. */
static pl_status check_progress(run_state *r, pl_err *e) {
  const pl_run_one_args *a = r->args;
  int64_t step = pl_checkpoints_newest(r->checkpoints), count;
  if (a->max_attempts <= 0) return PL_OK;
  pl_status st = pl_run_count_attempt(a->sweep_dir, a->id, step, &count, e);
  if (st != PL_OK || count <= a->max_attempts) return st;
  return pl_fail(e, PL_FAIL, "no progress in %" PRId64 " attempts (at step %" PRId64 "); retry after finding out why",
                 a->max_attempts, step < 0 ? 0 : step);
}

static pl_status open_config(run_state *r, pl_err *e) {
  const pl_run_one_args *a = r->args;
  char *path = NULL;
  pl_status st = PL_OK;
  PL_TRY(pl_run_path(a->sweep_dir, a->id, "", &r->folder, e));
  PL_TRY(pl_run_path(a->sweep_dir, a->id, "journal", &r->journal_path, e));
  PL_TRY(pl_run_path(a->sweep_dir, a->id, "times", &r->times_path, e));
  PL_TRY(pl_run_path(a->sweep_dir, a->id, "curves.h5", &r->curves_path, e));
  PL_TRY(pl_run_path(a->sweep_dir, a->id, "ckpt", &r->checkpoints, e));
  PL_TRY(pl_path_join(r->folder, "config.json", &path, e));
  PL_TRY(pl_json_read(path, &r->document, e));
  pl_registries registries = pl_registries_all();
  PL_TRY(pl_run_config_from_json(&registries, r->document, path, &r->config, e));
  if (pl_run_config_id(&r->config) != a->id)
    st = pl_fail(e, PL_FAIL, "%s: belongs to another run than its folder says; allowed: an unchanged file", path);
out:
  pl_free(path);
  return st;
}

/* The entropy of a language that is known, as no model can go below it. */
static void say_floor(run_state *r) {
  char line[96];
  double floor = r->dataset_type->loss_floor(r->dataset);
  if (!isfinite(floor)) return;
  snprintf(line, sizeof line, "the data's entropy, the lowest possible loss: %.4f nats per token", floor);
  say(r, line);
}

static pl_status open_parts(run_state *r, pl_err *e) {
  const pl_run_config *c = &r->config;
  pl_status st = PL_OK;
  PL_TRY(pl_journal_open(r->journal_path, &r->journal, e));
  PL_TRY(pl_journal_gather(r->journal, GATHER_SECONDS, e));
  PL_TRY(open_log(r, e));
  if (r->args->note != NULL) say(r, r->args->note);
  PL_TRY(pl_device_open(pl_device_name(c), (pl_precision)c->root.precision, (size_t)c->root.threads, &r->device, e));
  r->dataset_type = (const pl_dataset_type *)c->data.type;
  pl_model_shape shape;
  if (r->args->profile != NULL) pl_profile_open(r->args->profile, r->device);
  ((const pl_model_type *)c->model.type)->shape(c->model.config, &shape);
  PL_TRY(pl_data_open(c, r->args->data_root, shape.context, &r->dataset, e));
  if (r->dataset != NULL) say_floor(r);
out:
  return st;
}

static pl_status train(run_state *r, pl_outcome *out, pl_err *e) {
  pl_log_sink sink = {.self = r,
                      .write = sink_write,
                      .times = sink_times,
                      .sync = sink_sync,
                      .length = sink_length,
                      .checkpointed = sink_checkpointed};
  pl_trainer_args args = {.config = &r->config,
                          .world = r->args->world,
                          .root = r->args->data_root,
                          .trace_folder = r->folder,
                          .dataset_type = r->dataset_type,
                          .dataset = r->dataset,
                          .device = r->args->profile != NULL ? &r->args->profile->device : r->device,
                          .sink = &sink,
                          .checkpoint_folder = r->checkpoints,
                          .stop = r->args->stop,
                          .owned = is_owned,
                          .owned_self = r,
                          .progress = on_progress,
                          .progress_self = r,
                          .say = say,
                          .say_self = r};
  r->curves_written = pl_clock_seconds();
  return pl_train(&args, out, e);
}

static pl_run_state state_of_end(pl_end end) {
  switch (end) {
  case PL_END_DONE:
    return PL_RUN_DONE;
  case PL_END_DIVERGED:
    return PL_RUN_DIVERGED;
  case PL_END_STOPPED:
    break;
  }
  return PL_RUN_STOPPED;
}

static pl_status work(run_state *r, pl_run_one_result *out, pl_err *e) {
  const pl_run_one_args *a = r->args;
  pl_status st = PL_OK;
  uint64_t length;
  PL_TRY(open_config(r, e));
  PL_TRY(check_progress(r, e));
  PL_TRY(open_parts(r, e));
  r->led = true;
  PL_TRY(pl_ranks_lead(a->world, r->folder, a->data_root, e));
  PL_TRY(train(r, &out->outcome, e));
  if (!is_owned(r)) PL_TRY(lost(e));
  if (a->trained != NULL && strcmp(pl_device_name(&r->config), "cuda") != 0) a->trained(a->trained_self);
  PL_TRY(sync_contents(r, &length, e)); /* before there is a result; writing it syncs the folder */
  PL_TRY(write_curves(r, e));
  out->state = state_of_end(out->outcome.end);
  if (!is_owned(r)) PL_TRY(lost(e));
  PL_TRY(pl_run_write_result(a->sweep_dir, a->id, out->state, &out->outcome, NULL, e));
  if (a->profile != NULL) pl_profile_stop(a->profile);
  if (out->state == PL_RUN_STOPPED) {
    if (pl_run_is_cancelled(a->sweep_dir, a->id)) out->state = PL_RUN_CANCELLED;
    goto out;
  }
  rmdir(r->checkpoints); /* empty unless checkpoints are kept: fewer files */
  pl_run_clear_attempts(a->sweep_dir, a->id);
out:
  return st;
}

static void close_parts(run_state *r) {
  if (r->dataset != NULL) r->dataset_type->close(r->dataset);
  pl_device_close(r->device);
  pl_journal_close(r->times);
  pl_journal_close(r->journal);
  if (r->log != NULL) fclose(r->log);
  pl_json_release(r->document);
  pl_free(r->folder);
  pl_free(r->journal_path);
  pl_free(r->times_path);
  pl_free(r->curves_path);
  pl_free(r->checkpoints);
}

/* A run that has its outcome is never touched again, a cancelled one not before it is revived. */
static bool is_settled(const pl_run_one_args *args, pl_run_one_result *out) {
  pl_result found;
  if (pl_run_is_cancelled(args->sweep_dir, args->id)) {
    out->state = PL_RUN_CANCELLED;
    return true;
  }
  if (pl_run_read_result(args->sweep_dir, args->id, &found, NULL) != PL_OK) return false;
  if (found.state != PL_RUN_DONE && found.state != PL_RUN_DIVERGED) return false;
  out->state = found.state;
  out->outcome = found.outcome;
  return true;
}

/* Under the claim. *led: the other ranks were told to train. */
static pl_status attempt(const pl_run_one_args *args, pl_run_one_result *out, bool *led, pl_err *e) {
  run_state r = {.args = args, .blank = args->blank, .start_step = -1};
  pl_status st = pl_heartbeat_start(args->sweep_dir, args->id, &r.heartbeat, e);
  if (st != PL_OK) return st;
  st = work(&r, out, e);
  *led = r.led;
  if (st != PL_OK) {
    pl_err ignored = {0};
    const bool owned = is_owned(&r);
    uint64_t length;
    out->state = PL_RUN_FAILED;
    if (!owned && e != NULL) { /* whatever it says: who took the run over may have removed what this one was writing */
      *e = (pl_err){0};
      st = lost(e);
    }
    if (r.log != NULL && e != NULL) say(&r, e->text);
    if (owned && r.journal != NULL) (void)!pl_journal_sync(r.journal, &length, &ignored);
    if (owned)
      (void)!pl_run_write_result(args->sweep_dir, args->id, PL_RUN_FAILED, NULL, e != NULL ? e->text : "", &ignored);
  }
  pl_heartbeat_stop(r.heartbeat);
  close_parts(&r);
  return st;
}

/* A holder of which nothing is known from here is watched, where that is asked for: one that counts on lives. */
static pl_status claim(const pl_run_one_args *args, bool *taken, pl_err *e) {
  pl_claim_rules rules = {.job_is_gone = pl_slurm_job_is_gone};
  pl_claim_watch watch = {0};
  const double pause = pl_claim_seconds() / 20;
  const struct timespec delay = {.tv_sec = (time_t)pause, .tv_nsec = (long)(1e9 * (pause - floor(pause)))};
  char *path = NULL;
  pl_status st = PL_OK;
  PL_TRY(pl_run_path(args->sweep_dir, args->id, "claim", &path, e));
  for (;;) {
    PL_TRY(pl_run_claim_by(args->sweep_dir, args->id, &rules, taken, e));
    if (*taken || !args->wait || (args->stop != NULL && *args->stop)) break;
    pl_claim_motion motion = pl_claim_watch_on(path, &watch);
    if (motion == PL_CLAIM_MOVES) break;
    rules.stood_still = motion == PL_CLAIM_STILL ? watch.line : NULL;
    if (motion != PL_CLAIM_STILL) nanosleep(&delay, NULL);
  }
out:
  pl_free(path);
  return st;
}

static pl_status claimed(const pl_run_one_args *args, pl_run_one_result *out, bool *led, pl_err *e) {
  bool taken = false;
  if (is_settled(args, out)) return PL_OK;
  pl_status st = claim(args, &taken, e);
  if (st != PL_OK) return st;
  out->elsewhere = !taken;
  if (!taken) return PL_OK;
  if (is_settled(args, out)) /* by another process meanwhile */
    pl_run_mark(args->sweep_dir, args->id, out->state);
  else
    st = attempt(args, out, led, e);
  pl_run_release(args->sweep_dir, args->id);
  return st;
}

pl_status pl_run_one(const pl_run_one_args *args, pl_run_one_result *out, pl_err *e) {
  bool led = false;
  *out = (pl_run_one_result){.state = PL_RUN_PENDING};
  pl_status st = claimed(args, out, &led, e);
  return pl_ranks_release(args->world, led, st, out, e);
}
