#include "analysis/mean_curve.h"

#include <math.h>
#include <string.h>

#include "analysis/stats.h"
#include "core/base/memory.h"

pl_status pl_arm_run_curve(const pl_arm_run *r, pl_curve *out, pl_err *e) { return pl_catalog_curve(r->run, out, e); }

/* One series of a run: the steps at which it has a value. */
typedef struct points {
  int64_t *steps;
  double *values;
  size_t count;
} points;

static void points_free(points *p) {
  pl_free(p->steps);
  pl_free(p->values);
  *p = (points){0};
}

static pl_status points_read(const pl_arm_run *r, pl_series series, double weight, points *out, pl_err *e) {
  pl_status st = PL_OK;
  pl_curve c = {0};
  PL_TRY(pl_arm_run_curve(r, &c, e));
  PL_TRY(pl_alloc(c.count, sizeof out->steps[0], "a curve", &out->steps, e));
  PL_TRY(pl_alloc(c.count, sizeof out->values[0], "a curve", &out->values, e));
  for (size_t i = 0; i < c.count; i++) {
    double value = c.rows[i].point.values[series];
    if (isnan(value)) continue;
    out->steps[out->count] = c.rows[i].point.step;
    out->values[out->count++] = value;
  }
  if (weight > 0) pl_smooth(out->values, out->count, weight);
out:
  pl_curve_free(&c);
  return st;
}

/* The first seed gives the steps. */
static pl_status start(pl_mean_curve *m, points *p, pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(pl_alloc(p->count, sizeof m->low[0], "a mean curve", &m->low, e));
  PL_TRY(pl_alloc(p->count, sizeof m->high[0], "a mean curve", &m->high, e));
  memcpy(m->low, p->values, p->count * sizeof m->low[0]);
  memcpy(m->high, p->values, p->count * sizeof m->high[0]);
  m->steps = p->steps;
  m->values = p->values;
  m->count = p->count;
  *p = (points){0};
out:
  return st;
}

/* Adds another seed and drops the steps that it does not have. */
static void add(pl_mean_curve *m, const points *p) {
  size_t kept = 0, j = 0;
  for (size_t i = 0; i < m->count; i++) {
    while (j < p->count && p->steps[j] < m->steps[i]) j++;
    if (j == p->count) break;
    if (p->steps[j] != m->steps[i]) continue;
    m->steps[kept] = m->steps[i];
    m->low[kept] = fmin(m->low[i], p->values[j]);
    m->high[kept] = fmax(m->high[i], p->values[j]);
    m->values[kept++] = m->values[i] + p->values[j];
  }
  m->count = kept;
}

pl_status pl_mean_curve_read(const pl_arm_cell *cell, pl_series series, pl_mean_curve *out, pl_err *e) {
  return pl_mean_curve_read_smooth(cell, series, 0, out, e);
}

pl_status pl_mean_curve_read_smooth(const pl_arm_cell *cell, pl_series series, double weight, pl_mean_curve *out,
                                    pl_err *e) {
  pl_status st = PL_OK;
  points p = {0};
  *out = (pl_mean_curve){0};
  for (size_t i = 0; i < cell->count; i++) {
    if (!pl_arm_finished(&cell->runs[i])) continue;
    PL_TRY(points_read(&cell->runs[i], series, weight, &p, e));
    if (out->seeds++ == 0)
      PL_TRY(start(out, &p, e));
    else
      add(out, &p);
    points_free(&p);
  }
  for (size_t i = 0; i < out->count; i++) out->values[i] /= (double)out->seeds;
out:
  points_free(&p);
  if (st != PL_OK) pl_mean_curve_free(out);
  return st;
}

void pl_mean_curve_free(pl_mean_curve *c) {
  pl_free(c->steps);
  pl_free(c->values);
  pl_free(c->low);
  pl_free(c->high);
  *c = (pl_mean_curve){0};
}
