#include "analysis/arms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/config/run_schedule.h"

/* A run with its sort keys. */
typedef struct arm_ref {
  uint64_t arm;
  double lr;
  size_t place;
  pl_arm_run run;
} arm_ref;

static bool has_delay(const pl_run_config *c) {
  int64_t delay[PL_MAX_STAGES];
  pl_run_config_delays(c, delay);
  for (int64_t s = 0; s < c->pipeline.stages; s++)
    if (delay[s] != 0) return true;
  return false;
}

static void set_synchronous(pl_root_config *root) {
  memset(&root->delay, 0, sizeof root->delay);
  root->delay.count = 1;
  root->delay.word = -1;
  root->delay_start = 0;
  root->simulate_only = false;
}

/* A schedule without delay has no say in the numbers: all of them are one synchronous training. */
static void drop_schedule(pl_pipeline_config *p) {
  p->schedule = 0;
  p->schedule_file = NULL;
  p->chunks = 0;
  p->allow_min_microbatches = false;
}

/* Identity of the arm: the run id of the same configuration at one seed and one learning rate, with what has no
 * meaning without delay taken out. Pairs found by it differ in nothing but what is dropped here. */
static uint64_t arm_id(const pl_run_config *config, bool drop_correction, bool drop_delay) {
  pl_run_config c = *config;
  const double lr = 1;
  memcpy(c.optimizer.config, &lr, sizeof lr);
  c.root.seed = 0;
  if (drop_correction) c.correction_count = 0;
  if (drop_delay || !has_delay(&c)) set_synchronous(&c.root);
  if (drop_delay) drop_schedule(&c.pipeline);
  return pl_run_config_id(&c);
}

static double loss_of(const pl_catalog_run *r) {
  if (!r->has_result) return NAN;
  switch (r->result.state) {
  case PL_RUN_DONE:
    return isfinite(r->result.outcome.final_val_loss) ? r->result.outcome.final_val_loss : (double)NAN;
  case PL_RUN_DIVERGED:
    return INFINITY;
  default:
    return NAN;
  }
}

bool pl_arm_finished(const pl_arm_run *r) { return isfinite(r->loss) != 0; }

double pl_arm_cell_rate(const pl_arm_cell *c) {
  return c->lr == 0 && c->count > 0 && c->runs[0].run->imported ? (double)NAN : c->lr;
}

double pl_arm_run_tokens(const pl_catalog_run *run) {
  int64_t tokens = run->result.outcome.tokens;
  return tokens == 0 && run->imported ? (double)NAN : (double)tokens;
}

/* Of two runs of the same arm, rate and seed the one with an outcome comes first, then the one listed first. */
static int by_arm(const void *a, const void *b) {
  const arm_ref *x = a, *y = b;
  if (x->arm != y->arm) return x->arm < y->arm ? -1 : 1;
  if (x->lr != y->lr) return x->lr < y->lr ? -1 : 1;
  if (x->run.seed != y->run.seed) return x->run.seed < y->run.seed ? -1 : 1;
  int open = (isnan(x->run.loss) != 0) - (isnan(y->run.loss) != 0);
  if (open != 0) return open;
  return x->place < y->place ? -1 : x->place > y->place;
}

static size_t collect(const pl_catalog *c, bool all, pl_arms *out, arm_ref *refs) {
  size_t n = 0;
  for (size_t i = 0; i < c->count; i++) {
    const pl_catalog_run *r = &c->runs[i];
    if (!r->current && !all) continue;
    double loss = loss_of(r);
    out->selected++;
    if (!isnan(loss)) out->with_result++;
    if (r->state == PL_RUN_FAILED) out->failed++;
    if (!r->document) continue;
    refs[n++] = (arm_ref){.arm = arm_id(r->config, false, false),
                          .lr = pl_run_config_lr(r->config),
                          .place = i,
                          .run = {.run = r, .seed = r->config->root.seed, .loss = loss}};
  }
  qsort(refs, n, sizeof refs[0], by_arm);
  return n;
}

/* Splits the sorted runs into arms and cells. */
static void split(pl_arms *out, const arm_ref *refs, size_t n) {
  size_t runs = 0, cells = 0;
  for (size_t i = 0; i < n; i++) {
    const arm_ref *r = &refs[i], *last = i > 0 ? r - 1 : NULL;
    bool new_arm = !last || last->arm != r->arm, new_cell = new_arm || last->lr != r->lr;
    if (!new_cell && last->run.seed == r->run.seed) continue;
    if (new_arm)
      out->arms[out->count++] =
          (pl_arm){.id = r->arm, .first = r->place, .config = r->run.run->config, .cells = &out->cells[cells]};
    pl_arm *arm = &out->arms[out->count - 1];
    if (new_cell) {
      out->cells[cells++] = (pl_arm_cell){.lr = r->lr, .runs = &out->runs[runs]};
      arm->cell_count++;
    }
    out->runs[runs++] = r->run;
    if (r->place < arm->first) {
      arm->first = r->place;
      arm->config = r->run.run->config;
    }
    if (++out->cells[cells - 1].count > out->max_runs) out->max_runs = out->cells[cells - 1].count;
  }
  out->run_count = runs;
}

static int by_first(const void *a, const void *b) {
  const pl_arm *x = a, *y = b;
  return x->first < y->first ? -1 : x->first > y->first;
}

static int by_rank(const void *a, const void *b) {
  const pl_arm *x = a, *y = b;
  size_t xs[] = {x->group_rank, x->optimizer_rank, !x->sync, x->delay_rank, x->correction_rank, x->first};
  size_t ys[] = {y->group_rank, y->optimizer_rank, !y->sync, y->delay_rank, y->correction_rank, y->first};
  for (size_t i = 0; i < sizeof xs / sizeof xs[0]; i++)
    if (xs[i] != ys[i]) return xs[i] < ys[i] ? -1 : 1;
  return 0;
}

typedef struct arm_at {
  uint64_t id;
  const pl_arm *arm;
} arm_at;

static int by_id(const void *a, const void *b) {
  const arm_at *x = a, *y = b;
  if (x->id != y->id) return x->id < y->id ? -1 : 1;
  return x->arm < y->arm ? -1 : x->arm > y->arm;
}

static const arm_at *first_with(const arm_at *index, size_t count, uint64_t id) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (index[middle].id < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < count && index[low].id == id ? &index[low] : NULL;
}

/* How well a synchronous arm stands for others: simulated delay is measured against a run of the same kind, a real
 * pipeline against a real one. */
static int worth(const pl_arm *sync, const pl_arm *of) {
  if (sync->config->pipeline.schedule == of->config->pipeline.schedule) return 2;
  return pl_run_config_in_one_process(sync->config) == pl_run_config_in_one_process(of->config);
}

static const pl_arm *find_baseline(const arm_at *index, size_t count, const pl_arm *of) {
  const pl_arm *best = NULL;
  if (of->sync) return of;
  const arm_at *at = first_with(index, count, of->baseline_id);
  for (; at && at < index + count && at->id == of->baseline_id; at++)
    if (!best || worth(at->arm, of) > worth(best, of)) best = at->arm;
  return best;
}

/* Finds the baselines and the uncorrected arms; last, since it keeps pointers to arms. Synchronous arms are listed by
 * their baseline_id, which they share whatever their schedule. */
static pl_status link_arms(pl_arms *a, pl_err *e) {
  arm_at *index = NULL, *syncs;
  size_t sync_count = 0;
  pl_status st = pl_alloc(2 * a->count, sizeof index[0], "the index of arms", &index, e);
  if (st != PL_OK) return st;
  syncs = index + a->count;
  for (size_t i = 0; i < a->count; i++) {
    const pl_arm *arm = &a->arms[i];
    index[i] = (arm_at){arm->id, arm};
    if (arm->sync) syncs[sync_count++] = (arm_at){arm->baseline_id, arm};
  }
  qsort(index, a->count, sizeof index[0], by_id);
  qsort(syncs, sync_count, sizeof index[0], by_id);
  for (size_t i = 0; i < a->count; i++) {
    pl_arm *arm = &a->arms[i];
    arm->baseline = find_baseline(syncs, sync_count, arm);
    const arm_at *at = first_with(index, a->count, arm->uncorrected_id);
    if (at && at->arm != arm && !at->arm->sync) arm->uncorrected = at->arm;
  }
  pl_free(index);
  return PL_OK;
}

pl_status pl_arms_build(const pl_catalog *c, bool all, const int64_t *select_on, pl_arms *out, pl_err *e) {
  pl_status st = PL_OK;
  arm_ref *refs = NULL;
  *out = (pl_arms){.catalog = c, .select_on = select_on};
  PL_TRY(pl_alloc(c->count, sizeof refs[0], "the list of runs", &refs, e));
  PL_TRY(pl_alloc(c->count, sizeof out->arms[0], "the arms", &out->arms, e));
  PL_TRY(pl_alloc(c->count, sizeof out->cells[0], "the arms' learning rates", &out->cells, e));
  PL_TRY(pl_alloc(c->count, sizeof out->runs[0], "the arms' runs", &out->runs, e));
  split(out, refs, collect(c, all, out, refs));
  qsort(out->arms, out->count, sizeof out->arms[0], by_first);
  for (size_t i = 0; i < out->count; i++) {
    pl_arm *arm = &out->arms[i];
    arm->baseline_id = arm_id(arm->config, true, true);
    arm->uncorrected_id = arm_id(arm->config, true, false);
    arm->sync = !has_delay(arm->config) && arm->config->correction_count == 0;
  }
  PL_TRY(pl_arms_name(out, e));
  PL_TRY(pl_arms_choose(out, e));
  qsort(out->arms, out->count, sizeof out->arms[0], by_rank);
  PL_TRY(link_arms(out, e));
out:
  pl_free(refs);
  if (st != PL_OK) pl_arms_free(out);
  return st;
}

void pl_arms_free(pl_arms *a) {
  for (size_t i = 0; i < a->count; i++) {
    pl_free(a->arms[i].group);
    pl_free(a->arms[i].optimizer);
    pl_free(a->arms[i].delay);
    pl_free(a->arms[i].correction);
    pl_free(a->arms[i].name);
  }
  pl_free(a->arms);
  pl_free(a->cells);
  pl_free(a->runs);
  *a = (pl_arms){0};
}
