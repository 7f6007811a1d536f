#include "analysis/mean_curve.h"

#include <math.h>

#include "core/base/memory.h"

pl_status pl_arm_run_curve(const pl_arm_run *r, pl_curve *out, pl_err *e) {
  char *path = NULL;
  *out = (pl_curve){0};
  pl_status st = pl_run_path(r->run->dir, r->run->id, "journal", &path, e);
  if (st == PL_OK) st = pl_curve_read(path, out, e);
  pl_free(path);
  return st;
}

/* The first seed gives the steps. */
static pl_status start(pl_mean_curve *m, const pl_curve *c, pl_series series, pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(pl_alloc(c->count, sizeof m->steps[0], "a mean curve", &m->steps, e));
  PL_TRY(pl_alloc(c->count, sizeof m->values[0], "a mean curve", &m->values, e));
  for (size_t i = 0; i < c->count; i++) {
    double value = c->rows[i].point.values[series];
    if (isnan(value)) continue;
    m->steps[m->count] = c->rows[i].point.step;
    m->values[m->count++] = value;
  }
out:
  return st;
}

/* Adds another seed and drops the steps that it does not have. */
static void add(pl_mean_curve *m, const pl_curve *c, pl_series series) {
  size_t kept = 0, j = 0;
  for (size_t i = 0; i < m->count; i++) {
    while (j < c->count && c->rows[j].point.step < m->steps[i]) j++;
    if (j == c->count) break;
    if (c->rows[j].point.step != m->steps[i] || isnan(c->rows[j].point.values[series])) continue;
    m->steps[kept] = m->steps[i];
    m->values[kept++] = m->values[i] + c->rows[j].point.values[series];
  }
  m->count = kept;
}

pl_status pl_mean_curve_read(const pl_arm_cell *cell, pl_series series, pl_mean_curve *out, pl_err *e) {
  pl_status st = PL_OK;
  pl_curve curve = {0};
  *out = (pl_mean_curve){0};
  for (size_t i = 0; i < cell->count; i++) {
    if (!pl_arm_finished(&cell->runs[i])) continue;
    PL_TRY(pl_arm_run_curve(&cell->runs[i], &curve, e));
    if (out->seeds++ == 0)
      PL_TRY(start(out, &curve, series, e));
    else
      add(out, &curve, series);
    pl_curve_free(&curve);
    curve = (pl_curve){0};
  }
  for (size_t i = 0; i < out->count; i++) out->values[i] /= (double)out->seeds;
out:
  pl_curve_free(&curve);
  if (st != PL_OK) pl_mean_curve_free(out);
  return st;
}

void pl_mean_curve_free(pl_mean_curve *c) {
  pl_free(c->steps);
  pl_free(c->values);
  *c = (pl_mean_curve){0};
}
