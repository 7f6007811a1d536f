#include "analysis/reach.h"

#include <math.h>

#include "analysis/mean_curve.h"
#include "core/base/memory.h"

/* The validations of one run. */
typedef struct validations {
  int64_t seed, *steps, *tokens;
  double *losses, *seconds; /* seconds since the start, NaN when the run took several attempts */
  size_t count;
  bool done; /* finished */
  double final, whole_tokens;
} validations;

/* The curves of one cell. */
typedef struct cell_curves {
  const pl_arm_cell *cell;
  validations *runs;
  size_t count; /* runs with an outcome and a curve */
  double clipped, updates;
} cell_curves;

typedef struct reach_work {
  const pl_arms *arms;
  const pl_gap_options *options;
  const pl_speed_table *speed;
  pl_reach_table *table;
  cell_curves own, sync;
  double *a, *b, *c, *d;
} reach_work;

static void free_curves(cell_curves *c) {
  for (size_t i = 0; i < c->count; i++) {
    pl_free(c->runs[i].steps);
    pl_free(c->runs[i].tokens);
    pl_free(c->runs[i].losses);
    pl_free(c->runs[i].seconds);
  }
  pl_free(c->runs);
  *c = (cell_curves){0};
}

static pl_status keep_validations(const pl_curve *curve, validations *v, pl_err *e) {
  pl_status st = PL_OK;
  size_t n = 0;
  for (size_t i = 0; i < curve->count; i++)
    if (!isnan(curve->rows[i].point.values[PL_SERIES_val_loss])) n++;
  PL_TRY(pl_alloc(n, sizeof v->steps[0], "validations", &v->steps, e));
  PL_TRY(pl_alloc(n, sizeof v->tokens[0], "validations", &v->tokens, e));
  PL_TRY(pl_alloc(n, sizeof v->losses[0], "validations", &v->losses, e));
  PL_TRY(pl_alloc(n, sizeof v->seconds[0], "validations", &v->seconds, e));
  for (size_t i = 0; i < curve->count; i++) {
    const pl_point *p = &curve->rows[i].point;
    if (isnan(p->values[PL_SERIES_val_loss])) continue;
    v->steps[v->count] = p->step;
    v->tokens[v->count] = p->tokens;
    v->seconds[v->count] = curve->attempts == 1 ? p->values[PL_SERIES_seconds] : (double)NAN;
    v->losses[v->count++] = p->values[PL_SERIES_val_loss];
  }
out:
  return st;
}

static pl_status read_run(const pl_arm_run *r, cell_curves *out, pl_err *e) {
  pl_curve curve = {0};
  pl_status st = pl_arm_run_curve(r, &curve, e);
  if (st != PL_OK || curve.count == 0) goto out;
  validations *v = &out->runs[out->count++];
  *v = (validations){
      .seed = r->seed, .done = pl_arm_finished(r), .final = r->loss, .whole_tokens = pl_arm_run_tokens(r->run)};
  PL_TRY(keep_validations(&curve, v, e));
  for (size_t i = 0; i < curve.count; i++) {
    double scale = curve.rows[i].point.values[PL_SERIES_clip_scale];
    if (isnan(scale)) continue;
    out->updates++;
    out->clipped += scale < 1;
  }
out:
  pl_curve_free(&curve);
  return st;
}

/* Keeps what it has when it is the same cell: arms of one optimizer share their sync arm. */
static pl_status read_cell(const reach_work *w, const pl_arm_cell *cell, cell_curves *out, pl_err *e) {
  if (cell == out->cell) return PL_OK;
  free_curves(out);
  pl_status st = pl_alloc(cell->count, sizeof out->runs[0], "curves", &out->runs, e);
  if (st != PL_OK) return st;
  out->cell = cell;
  for (size_t i = 0; i < cell->count && st == PL_OK; i++) {
    const pl_arm_run *r = &cell->runs[i];
    if (isnan(r->loss) || (w->arms->select_on && r->seed == *w->arms->select_on)) continue;
    st = read_run(r, out, e);
  }
  return st;
}

/* The first validation at or below the loss; SIZE_MAX for a miss. */
static size_t first_below(const validations *v, double loss) {
  for (size_t i = 0; v->done && i < v->count; i++)
    if (v->losses[i] <= loss) return i;
  return SIZE_MAX;
}

static void fill_target(reach_work *w, pl_reach_row *row) {
  size_t n = 0, timed = 0;
  bool stated = true;
  for (; n < w->own.count; n++) {
    const validations *v = &w->own.runs[n];
    size_t at = first_below(v, row->target);
    stated = stated && !isnan(v->whole_tokens);
    bool miss = at == SIZE_MAX;
    row->reached += !miss;
    w->a[n] = miss ? (double)INFINITY : (double)v->tokens[at];
    w->b[n] = miss ? (double)INFINITY : (double)v->steps[at];
    if (miss || !isnan(v->seconds[at])) w->c[timed++] = miss ? (double)INFINITY : v->seconds[at];
  }
  row->runs = n;
  row->tokens = stated ? pl_median(w->a, n) : (double)NAN;
  row->steps = pl_median(w->b, n);
  row->seconds = pl_median(w->c, timed);
}

static const validations *of_seed(const cell_curves *c, int64_t seed) {
  for (size_t i = 0; i < c->count; i++)
    if (c->runs[i].seed == seed) return &c->runs[i];
  return NULL;
}

/* The paired tokens to a loss in both curves; false when one of them misses it. */
static bool add_pair(double tokens, const validations *sync, double loss, double *top, double *bottom) {
  size_t at = first_below(sync, loss);
  if (at == SIZE_MAX || sync->tokens[at] <= 0) return false;
  *top = tokens;
  *bottom = (double)sync->tokens[at];
  return true;
}

/* The ratio of means; pairs that all have the same one, as coarse validations give it, say nothing about its spread. */
static pl_estimate ratio(const double *top, const double *bottom, size_t n, bool *resolved) {
  pl_estimate out = pl_ratio_of_means(top, bottom, n, resolved);
  if (!*resolved || out.low < out.high) return out;
  *resolved = false;
  out.low = out.high = NAN;
  return out;
}

/* Ratios over the pairs, none when any pair misses: what is left of them would flatter the arm. */
static void fill_overheads(reach_work *w, pl_reach_row *row) {
  size_t n = 0, m = 0, pairs = 0;
  for (size_t i = 0; i < w->own.count; i++) {
    const validations *v = &w->own.runs[i], *s = of_seed(&w->sync, v->seed);
    if (!s) continue;
    pairs++;
    size_t at = first_below(v, row->target);
    if (at != SIZE_MAX) n += add_pair((double)v->tokens[at], s, row->target, &w->a[n], &w->b[n]);
    if (v->done) m += add_pair(v->whole_tokens, s, v->final, &w->c[m], &w->d[m]);
  }
  if (n == pairs) row->overhead = ratio(w->a, w->b, n, &row->overhead_resolved);
  if (m == pairs) row->at_own_end = ratio(w->c, w->d, m, &row->at_own_end_resolved);
}

/* 2BW does not exist with fewer microbatches than stages. */
static double schedule_gain(const pl_arm *a) {
  double stages = (double)a->config->pipeline.stages, parts = (double)a->config->pipeline.microbatches;
  return stages > 1 && parts >= stages && !a->sync ? (parts + stages - 1) / parts : (double)NAN;
}

static bool enough_validations(const pl_arm *a) {
  const pl_train_config *t = &a->config->train;
  return t->val_every > 0 && t->steps / t->val_every >= PL_LEAST_VALIDATIONS;
}

static pl_status add_row(reach_work *w, const pl_arm *a, double target, pl_err *e) {
  pl_status st = PL_OK;
  const pl_estimate none = pl_estimate_of(NULL, 0);
  PL_TRY(read_cell(w, a->best, &w->own, e));
  if (w->own.count == 0) goto out;
  pl_reach_row *row = &w->table->rows[w->table->count++];
  *row = (pl_reach_row){.arm = a,
                        .lr = pl_arm_cell_rate(a->best),
                        .target = enough_validations(a) ? target : (double)NAN,
                        .tokens = NAN,
                        .steps = NAN,
                        .seconds = NAN,
                        .overhead = none,
                        .at_own_end = none,
                        .schedule_gain = schedule_gain(a),
                        .measured_gain = pl_speed_gain(w->speed, a),
                        .clipped = w->own.updates > 0 ? w->own.clipped / w->own.updates : (double)NAN};
  if (isnan(row->target)) goto out;
  fill_target(w, row);
  if (a->sync || !a->baseline || !a->baseline->best) goto out;
  PL_TRY(read_cell(w, a->baseline->best, &w->sync, e));
  fill_overheads(w, row);
out:
  return st;
}

/* The highest final loss of the synchronous runs of the group that starts at `first`. */
static double group_target(const reach_work *w, size_t first) {
  double worst = NAN;
  const pl_arm *arms = w->arms->arms;
  for (size_t i = first; i < w->arms->count && arms[i].group_rank == arms[first].group_rank; i++) {
    if (!arms[i].sync || !arms[i].best) continue;
    for (size_t k = 0; k < arms[i].best->count; k++) {
      const pl_arm_run *r = &arms[i].best->runs[k];
      if (pl_arm_finished(r) && !(w->arms->select_on && r->seed == *w->arms->select_on)) worst = fmax(worst, r->loss);
    }
  }
  return worst;
}

/* What a target that was given says nothing about. */
static pl_status warn_target(const reach_work *w, pl_notes *warnings, pl_err *e) {
  char text[32];
  size_t looked = 0, reached = 0, at_once = 0;
  if (!w->options->target || w->table->count == 0) return PL_OK;
  for (size_t i = 0; i < w->table->count; i++) {
    const pl_reach_row *r = &w->table->rows[i];
    if (!isnan(r->target)) looked++;
    reached += r->reached > 0;
    at_once += r->reached > 0 && r->steps == 0;
  }
  pl_format_number(*w->options->target, text);
  if (looked == 0)
    return pl_note(warnings, e,
                   "--target %s: no arm has the %d validations during training that it takes to say when a loss was "
                   "reached (train.val_every)",
                   text, PL_LEAST_VALIDATIONS);
  if (reached == 0) return pl_note(warnings, e, "no run reached the target loss %s", text);
  if (at_once == 0) return PL_OK;
  return pl_note(warnings, e, "the target loss %s is not below the loss before the first update, in %zu of %zu arms",
                 text, at_once, looked);
}

pl_status pl_reach_compute(const pl_arms *arms, const pl_gap_options *o, const pl_speed_table *speed,
                           pl_reach_table *out, pl_notes *warnings, pl_err *e) {
  pl_status st = PL_OK;
  double target = NAN;
  *out = (pl_reach_table){0};
  reach_work w = {.arms = arms, .options = o, .speed = speed, .table = out};
  PL_TRY(pl_alloc(arms->count, sizeof out->rows[0], "the table of tokens", &out->rows, e));
  PL_TRY(pl_alloc(arms->max_runs, sizeof w.a[0], "tokens", &w.a, e));
  PL_TRY(pl_alloc(arms->max_runs, sizeof w.b[0], "tokens", &w.b, e));
  PL_TRY(pl_alloc(arms->max_runs, sizeof w.c[0], "tokens", &w.c, e));
  PL_TRY(pl_alloc(arms->max_runs, sizeof w.d[0], "tokens", &w.d, e));
  for (size_t i = 0; i < arms->count; i++) {
    bool new_group = i == 0 || arms->arms[i].group_rank != arms->arms[i - 1].group_rank;
    if (new_group) target = o->target ? *o->target : group_target(&w, i);
    if (arms->arms[i].best) PL_TRY(add_row(&w, &arms->arms[i], target, e));
  }
  PL_TRY(warn_target(&w, warnings, e));
out:
  free_curves(&w.own);
  free_curves(&w.sync);
  pl_free(w.a);
  pl_free(w.b);
  pl_free(w.c);
  pl_free(w.d);
  if (st != PL_OK) pl_reach_free(out);
  return st;
}

void pl_reach_free(pl_reach_table *t) {
  pl_free(t->rows);
  *t = (pl_reach_table){0};
}
