/* Training over several processes, in one process, and the oracle: the same bits. Rank 0 has the others' weights and
 * compares; they sleep meanwhile. */
#ifndef PL_TESTS_MPI_EQUALITY_H
#define PL_TESTS_MPI_EQUALITY_H

#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include "tests/conform/pipelines_rig.h"
#include "tests/mpi/mpi_rig.h"

enum { EQUALITY_RANKS = 8 };

static inline bool is_first(void) { return world->rank == 0; }

/* count[r] numbers of every rank r, in rank order; the caller frees them. */
static inline double *gather(const double *own, const size_t *count) {
  const struct timespec pause = {.tv_nsec = 300000};
  pl_err e = {0};
  pl_gather *g = NULL;
  const double *there = NULL;
  size_t all = 0;
  must(world->type->gather_open(world, count, 1, &g, &e), &e);
  must(world->type->gather_post(g, own, &e), &e);
  while (!(there = world->type->gather_next(g))) {
    must(world->type->progress(world, &e), &e);
    nanosleep(&pause, NULL);
  }
  for (size_t rank = 0; rank < world->size; rank++) all += count[rank];
  double *copy = take(all + 1, sizeof *copy);
  memcpy(copy, there, all * sizeof *copy);
  world->type->gather_close(g);
  return copy;
}

static inline double *gather_same(const double *own, size_t each) {
  size_t count[EQUALITY_RANKS];
  for (size_t i = 0; i < EQUALITY_RANKS; i++) count[i] = each;
  return gather(own, count);
}

/* Waits for everybody without using a core. */
static inline void rest(void) { pl_free(gather_same(&(double){0}, 1)); }

/* All got the same outcome. */
static inline void expect_one_outcome(const pl_outcome *o) {
  const double own[] = {(double)o->end,          (double)o->steps, (double)o->first_bad_step, (double)o->skipped,
                        (double)o->resumed_from, o->best_val_loss, o->final_train_loss,       o->final_val_loss};
  double *all = gather_same(own, sizeof own / sizeof *own);
  for (size_t rank = 1; rank < world->size; rank++)
    assert_true(rig_same(all, all + rank * (sizeof own / sizeof *own), sizeof own));
  pl_free(all);
}

/* Rank 0 alone has the log. */
static inline void join(rig *r) {
  r->args.world = world;
  r->args.sink = is_first() ? &r->sink : NULL;
}

/* The rank that gets everybody's figures late, long after the messages of the pipeline; SIZE_MAX: none. */
static size_t late_rank = SIZE_MAX;
static const pl_world_type *in_time;

static inline const double *gather_next_late(pl_gather *g) {
  static size_t asked;
  return ++asked % 2000 == 0 ? in_time->gather_next(g) : NULL;
}

static inline void train(rig *r) {
  pl_world_type late = *world->type;
  in_time = world->type;
  late.gather_next = gather_next_late;
  if (world->rank == late_rank && r->args.world) world->type = &late;
  rig_train(r);
  world->type = in_time;
}

static inline void train_together(rig *r) {
  train(r);
  expect_one_outcome(&r->outcome);
}

/* Everybody's weights, rank after rank. The caller frees them. */
static inline pl_real *gather_weights(const rig *r, size_t *all) {
  size_t count[EQUALITY_RANKS];
  double *counts = gather_same(&(double){(double)r->count}, 1), *own = take(r->count + 1, sizeof *own);
  *all = 0;
  for (size_t rank = 0; rank < world->size; rank++) *all += count[rank] = (size_t)counts[rank];
  for (size_t i = 0; i < r->count; i++) own[i] = (double)r->weights[i];
  double *gathered = gather(own, count);
  pl_real *weights = take(*all + 1, sizeof *weights);
  for (size_t i = 0; i < *all; i++) weights[i] = (pl_real)gathered[i];
  pl_free(counts);
  pl_free(own);
  pl_free(gathered);
  return weights;
}

/* The weights of every replica, each stage where it belongs. */
static inline bool has_weights(const oracle *o, const pl_real *weights, size_t count) {
  pl_grid grid;
  pl_err e = {0};
  size_t at = 0;
  bool same = true;
  must(pl_grid_make(world->size, o->P, o->replicas, &grid, &e), &e);
  for (size_t rank = 0; rank < world->size; rank++) {
    size_t first, end;
    pl_grid_stages(&grid, rank, &first, &end);
    for (size_t s = 0; s < o->stages; s++)
      if (s % o->P >= first && s % o->P < end) same = oracle_has_stage(o, s, weights, &at) && same;
  }
  return same && at == count;
}

/* On rank 0: what the processes made of the case is what the oracle makes of it, its points the last `points` ones. */
static inline bool agrees(const oracle *o, const rig *r, size_t points) {
  size_t count = 0;
  pl_real *weights = gather_weights(r, &count);
  bool same = !is_first() || (has_weights(o, weights, count) && oracle_has_points(o, r->points, r->point_count) &&
                              r->point_count == points && r->outcome.steps == r->config.train.steps);
  pl_free(weights);
  return same;
}

static inline void expect(bool as_wanted, const pipeline_case *c, const char *what) {
  char json[RIG_TEXT];
  pipeline_text(c, json);
  if (!as_wanted) fail_msg("%zu processes, %s: %s", world->size, what, json);
}

/* Rank 0 trains alone and has the points of a whole run, or of the part that was left. */
static inline void expect_alone(const oracle *o, const pipeline_case *c, rig *r, size_t points) {
  if (!is_first()) return;
  r->args.world = NULL;
  rig_train(r);
  expect(oracle_agrees(o, r) && r->point_count == points, c, "one process and the oracle differ");
  join(r);
}

/* `rank` is told to stop when it has seen step `after`. */
static volatile sig_atomic_t told;
static int64_t tell_after;

static inline void tell_it(void *self, int64_t step, int64_t steps, double train_loss, double val_loss) {
  (void)self, (void)steps, (void)train_loss, (void)val_loss;
  if (step >= tell_after) told = 1;
}

static inline void train_until_told(rig *r, bool me, int64_t after) {
  told = 0;
  tell_after = after;
  r->args.stop = &told;
  r->args.progress = me ? tell_it : NULL;
  r->log_length = 0;
  train(r);
  r->args.stop = NULL;
  r->args.progress = NULL;
  r->log_length = 1000000;
}

static char folder[64];

static inline void empty_folder(void) {
  rest();
  DIR *d = is_first() ? opendir(folder) : NULL;
  for (struct dirent *entry = d ? readdir(d) : NULL; entry; entry = readdir(d))
    if (entry->d_name[0] != '.') assert_int_equal(unlinkat(dirfd(d), entry->d_name, 0), 0);
  if (d) closedir(d);
  rest();
}

static inline int make_folder(void **state) {
  (void)state;
  pl_err e = {0};
  pl_str name = {0};
  snprintf(folder, sizeof folder, "/tmp/pl_equality_test.XXXXXX");
  if (is_first() && !mkdtemp(folder)) return -1;
  pl_str_append(&name, folder);
  must(world->type->share(world, &name, &e), &e);
  snprintf(folder, sizeof folder, "%s", pl_str_text(&name));
  pl_str_free(&name);
  return 0;
}

static inline int remove_folder(void **state) {
  (void)state;
  rest();
  return is_first() ? rmdir(folder) : 0;
}

/* The part up to the stop has the oracle's points; says where it is. */
static inline int64_t expect_stopped(const oracle *o, const pipeline_case *c, const rig *r) {
  const int64_t steps = r->outcome.steps;
  expect(r->outcome.end == PL_END_STOPPED && steps > 0 && steps < c->steps, c, "did not stop on the way");
  if (is_first())
    expect(oracle_has_points(o, r->points, r->point_count) && r->point_count == (size_t)steps + 1, c,
           "differs from the oracle before the stop");
  return steps;
}

/* Stopped over MPI or in one process, and resumed from there in both. */
static inline void stop_and_resume(const oracle *o, const pipeline_case *c, rig *r, bool alone) {
  static size_t turn;
  const size_t teller = alone ? 0 : turn++ % world->size;
  int64_t at = 0;
  r->args.checkpoint_folder = folder;
  if (alone) r->args.world = NULL;
  if (!alone || is_first()) {
    train_until_told(r, world->rank == teller, pipeline_runs_free(c->schedule) ? 1 : c->steps / 2);
    at = expect_stopped(o, c, r);
  }
  join(r);
  rest();
  double *seen = gather_same(&(double){(double)at}, 1);
  at = (int64_t)seen[0];
  pl_free(seen);
  r->log_length = 1000000;
  train_together(r);
  if (r->outcome.resumed_from != at)
    fail_msg("rank %zu resumed from %lld, not from %lld: %s", world->rank, (long long)r->outcome.resumed_from,
             (long long)at, r->line);
  expect(agrees(o, r, (size_t)(c->steps - at)), c, "resumed over MPI it differs from the oracle");
  expect_alone(o, c, r, (size_t)(c->steps - at));
  if (is_first()) assert_int_equal(r->outcome.resumed_from, at);
  empty_folder();
  r->args.checkpoint_folder = NULL;
}

typedef struct equality_how {
  bool resume;        /* also stopped over MPI and resumed */
  bool resume_alone;  /* also stopped in one process and resumed */
  oracle_fault fault; /* one that must be seen; none: all zero */
} equality_how;

static inline bool is_fault(const oracle_fault *f) {
  return f->shift != 0 || f->newest || f->unstashed || f->swapped || f->mixed_up || f->untied || f->unclipped;
}

static inline void compare_how(const pipeline_case *c, const equality_how *how) {
  rig r;
  oracle *o = take(1, sizeof *o);
  const size_t points = (size_t)c->steps + 1;
  pipeline_open(c, &r);
  join(&r);
  if (is_first()) {
    oracle_open(o, &r, how->fault);
    oracle_run(o);
  }
  rest();
  train_together(&r);
  expect(agrees(o, &r, points) != (is_first() && is_fault(&how->fault)), c, "MPI and the oracle differ, or should");
  if (!is_fault(&how->fault)) expect_alone(o, c, &r, points);
  if (how->resume) stop_and_resume(o, c, &r, false);
  if (how->resume_alone) stop_and_resume(o, c, &r, true);
  rest();
  if (is_first()) oracle_close(o);
  pl_free(o);
  rig_close(&r);
}

static inline void compare(const pipeline_case *c) { compare_how(c, &(equality_how){0}); }

/* Free-running stages go on for as many updates as there are stages after one was told. */
static inline void compare_resumed(pipeline_case c, bool also_alone) {
  if (pipeline_runs_free(c.schedule)) c.steps = 4 + 2 * (int64_t)c.stages;
  compare_how(&c, &(equality_how){.resume = true, .resume_alone = also_alone});
}

/* The number of microbatches that a schedule is usually taken with. */
static inline size_t usual_microbatches(const char *schedule, size_t stages) {
  return strncmp(schedule, "pipedream", 9) == 0 ? 1 : stages;
}

#endif
