#include "analysis/against.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/config_view.h"
#include "analysis/fits.h"
#include "core/base/memory.h"

/* A delayed arm with a gap. */
typedef struct member {
  uint64_t series;
  size_t order; /* of the gap table */
  double value;
  const pl_gap_row *row;
} member;

typedef struct against_work {
  const pl_arms *arms;
  const char *const *keys;
  pl_against_table *table;
  pl_pairs pairs;
  double *gaps; /* [values][seeds], of the common seeds */
  int64_t *seeds;
  double *x, *y, *weights, *slopes;
} against_work;

static bool is_momentum(const char *key) {
  const char *dot = strrchr(key, '.'), *name = dot ? dot + 1 : key;
  return strcmp(name, "beta1") == 0 || strcmp(name, "momentum") == 0;
}

/* The arm's number at the axis; a delay is one where all stages have the same. */
static bool axis_value(const pl_arm *a, const char *key, double *out) {
  int64_t delay[PL_MAX_STAGES];
  if (strcmp(key, "delay") != 0) return pl_config_number(a->config, key, out);
  pl_run_config_delays(a->config, delay);
  for (int64_t s = 1; s < a->config->pipeline.stages; s++)
    if (delay[s] != delay[0]) return false;
  *out = (double)delay[0];
  return true;
}

static int by_series(const void *a, const void *b) {
  const member *x = a, *y = b;
  if (x->series != y->series) return x->series < y->series ? -1 : 1;
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

static int by_first_row(const void *a, const void *b) {
  const pl_against_series *x = a, *y = b;
  return x->first < y->first ? -1 : x->first > y->first;
}

static pl_status list_members(against_work *w, const pl_gap_table *gap, member *out, size_t *count, pl_err *e) {
  pl_str scratch = {0};
  bool any = false;
  *count = 0;
  for (size_t i = 0; i < gap->count; i++) {
    const pl_gap_row *r = &gap->rows[i];
    member m = {.order = i, .row = r, .value = NAN};
    if (r->reading != w->table->reading) continue;
    bool number = axis_value(r->arm, w->keys[0], &m.value);
    any = any || number;
    if (!number || r->sync || r->gap.n == 0) continue;
    m.series = pl_config_hash_without(r->arm->config, w->keys, &scratch);
    out[(*count)++] = m;
  }
  pl_status st = pl_str_check(&scratch, e);
  pl_str_free(&scratch);
  if (st == PL_OK && !any) st = pl_fail(e, PL_BAD, "--against %s: no run has a number of that name", w->keys[0]);
  if (st == PL_OK) qsort(out, *count, sizeof out[0], by_series);
  return st;
}

/* Narrows the common seeds, w->seeds[*common], to those of this value, and notes their gaps. */
static void narrow(against_work *w, const pl_gap_row *r, size_t value, size_t *common) {
  size_t kept = 0, most = w->arms->max_runs;
  pl_pairs *p = &w->pairs;
  pl_pairs_match(r->cell, r->sync_cell, NULL, r->left_out, p);
  if (value == 0) {
    memcpy(w->seeds, p->seeds, p->count * sizeof w->seeds[0]);
    *common = p->count;
  }
  for (size_t i = 0, j = 0; i < *common; i++) {
    while (j < p->count && p->seeds[j] < w->seeds[i]) j++;
    if (j == p->count || p->seeds[j] != w->seeds[i]) continue;
    for (size_t v = 0; v < value; v++) w->gaps[v * most + kept] = w->gaps[v * most + i];
    w->gaps[value * most + kept] = p->a[j] - p->b[j];
    w->seeds[kept++] = w->seeds[i];
  }
  *common = kept;
}

/* The mean line of the seeds, with the interval of their slopes. */
static void fit_seeds(against_work *w, size_t values, size_t seeds, pl_against_series *s) {
  size_t most = w->arms->max_runs;
  double intercept = 0;
  for (size_t v = 0; v < values; v++) w->weights[v] = 1;
  for (size_t i = 0; i < seeds; i++) {
    for (size_t v = 0; v < values; v++) w->y[v] = w->gaps[v * most + i];
    pl_line line = pl_line_fit(w->x, w->y, w->weights, values);
    w->slopes[i] = line.slope.mean;
    intercept += line.intercept / (double)seeds;
  }
  s->slope = pl_estimate_of(w->slopes, seeds);
  s->slope.n = values;
  s->intercept = intercept;
  s->seeds = seeds;
}

static void fit(against_work *w, pl_against_series *s) {
  const pl_against_point *points = &w->table->points[s->begin];
  size_t values = s->end - s->begin, common = 0;
  s->slope = pl_estimate_of(NULL, 0);
  s->intercept = NAN;
  if (values < 3) return;
  for (size_t v = 0; v < values; v++) {
    w->x[v] = points[v].x;
    narrow(w, points[v].row, v, &common);
  }
  if (common >= 3) {
    fit_seeds(w, values, common, s);
    return;
  }
  for (size_t v = 0; v < values; v++) {
    w->y[v] = points[v].row->gap.mean;
    w->weights[v] = (double)points[v].row->gap.n;
  }
  pl_line line = pl_line_fit(w->x, w->y, w->weights, values);
  s->slope = line.slope;
  s->intercept = line.intercept;
}

static pl_status split(against_work *w, const member *m, size_t count, pl_notes *warnings, pl_err *e) {
  pl_against_table *t = w->table;
  pl_status st = PL_OK;
  for (size_t i = 0; i < count; i++) {
    const pl_gap_row *r = m[i].row;
    bool same = i > 0 && m[i].series == m[i - 1].series;
    if (same && m[i].value == m[i - 1].value) {
      PL_TRY(pl_note(warnings, e,
                     "--against %s: \"%s\" has the value of \"%s\" and differs in keys that go along; it is "
                     "left out",
                     t->key, r->arm->name, m[i - 1].row->arm->name));
      continue;
    }
    if (!same) t->series[t->count++] = (pl_against_series){.first = r, .begin = t->point_count};
    double x = t->inverted ? 1 / (1 - m[i].value) : m[i].value;
    t->points[t->point_count++] = (pl_against_point){.value = m[i].value, .x = x, .row = r};
    t->series[t->count - 1].end = t->point_count;
  }
out:
  return st;
}

static pl_status prepare(against_work *w, size_t rows, pl_err *e) {
  pl_status st = PL_OK;
  size_t seeds = w->arms->max_runs, largest = 1, length = 0;
  pl_against_table *t = w->table;
  for (size_t i = 0; i < t->count; i++) {
    length = t->series[i].end - t->series[i].begin;
    if (length > largest) largest = length;
  }
  PL_TRY(pl_pairs_alloc(seeds, &w->pairs, e));
  PL_TRY(pl_alloc(largest * seeds, sizeof w->gaps[0], "gaps", &w->gaps, e));
  PL_TRY(pl_alloc(seeds, sizeof w->seeds[0], "seeds", &w->seeds, e));
  PL_TRY(pl_alloc(seeds, sizeof w->slopes[0], "slopes", &w->slopes, e));
  PL_TRY(pl_alloc(rows, sizeof w->x[0], "values", &w->x, e));
  PL_TRY(pl_alloc(rows, sizeof w->y[0], "values", &w->y, e));
  PL_TRY(pl_alloc(rows, sizeof w->weights[0], "values", &w->weights, e));
out:
  return st;
}

pl_status pl_against_compute(const pl_gap_table *gap, const pl_arms *arms, const pl_gap_options *o,
                             pl_against_table *out, pl_notes *warnings, pl_err *e) {
  pl_status st = PL_OK;
  member *members = NULL;
  size_t count = 0, lines = 0;
  *out = (pl_against_table){0};
  if (!o->against) return PL_OK;
  out->key = o->against[0];
  out->inverted = is_momentum(out->key);
  out->reading = gap->at ? PL_READING_FIXED : PL_READING_BEST;
  against_work w = {.arms = arms, .keys = o->against, .table = out};
  PL_TRY(pl_alloc(gap->count, sizeof members[0], "gaps", &members, e));
  PL_TRY(list_members(&w, gap, members, &count, e));
  PL_TRY(pl_alloc(count, sizeof out->points[0], "gaps", &out->points, e));
  PL_TRY(pl_alloc(count, sizeof out->series[0], "gaps", &out->series, e));
  PL_TRY(split(&w, members, count, warnings, e));
  qsort(out->series, out->count, sizeof out->series[0], by_first_row);
  PL_TRY(prepare(&w, count, e));
  for (size_t i = 0; i < out->count; i++) {
    fit(&w, &out->series[i]);
    if (!isnan(out->series[i].slope.mean)) lines++;
  }
  if (lines == 0)
    PL_TRY(pl_note(warnings, e, "--against %s: no arm has gaps at three values, so there is no line", out->key));
out:
  pl_free(w.gaps);
  pl_free(w.seeds);
  pl_free(w.slopes);
  pl_free(w.x);
  pl_free(w.y);
  pl_free(w.weights);
  pl_pairs_free(&w.pairs);
  pl_free(members);
  if (st != PL_OK) pl_against_free(out);
  return st;
}

void pl_against_free(pl_against_table *t) {
  pl_free(t->points);
  pl_free(t->series);
  *t = (pl_against_table){0};
}
