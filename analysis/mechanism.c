#include "analysis/mechanism.h"

#include <math.h>

#include "analysis/mean_curve.h"
#include "core/base/memory.h"

/* One point's value, NaN: not measured. */
static double value_of(const pl_point *p, pl_mechanism m) {
  static const pl_series series[] = {[PL_MECHANISM_DRIFT] = PL_SERIES_drift,
                                     [PL_MECHANISM_DISPLACEMENT] = PL_SERIES_displacement_ratio,
                                     [PL_MECHANISM_COSINE] = PL_SERIES_gradient_cos,
                                     [PL_MECHANISM_CLIPPED] = PL_SERIES_clip_scale};
  const double value = p->values[series[m]];
  return m == PL_MECHANISM_CLIPPED && !isnan(value) ? value < 1 : value;
}

/* The mean over the second half of a curve. */
static double late_mean(const pl_curve *curve, int64_t steps, pl_mechanism m) {
  double sum = 0, count = 0;
  for (size_t i = 0; i < curve->count; i++) {
    const pl_point *p = &curve->rows[i].point;
    const double value = value_of(p, m);
    if (2 * p->step <= steps || isnan(value)) continue;
    sum += value;
    count++;
  }
  return sum / count;
}

/* values[PL_MECHANISMS * max_runs] takes the runs' means, each kind by itself. */
static pl_status fill(const pl_arms *arms, const pl_arm *a, double *values, pl_mechanism_row *row, pl_err *e) {
  size_t n[PL_MECHANISMS] = {0};
  *row = (pl_mechanism_row){.arm = a};
  for (size_t i = 0; i < a->best->count; i++) {
    const pl_arm_run *r = &a->best->runs[i];
    pl_curve curve = {0};
    if (!pl_arm_finished(r) || (arms->select_on && r->seed == *arms->select_on)) continue;
    pl_status st = pl_arm_run_curve(r, &curve, e);
    if (st != PL_OK) return st;
    row->runs += curve.count > 0;
    for (pl_mechanism m = 0; m < PL_MECHANISMS; m++) {
      const double mean = late_mean(&curve, a->config->train.steps, m);
      if (!isnan(mean)) values[m * arms->max_runs + n[m]++] = mean;
    }
    pl_curve_free(&curve);
  }
  for (pl_mechanism m = 0; m < PL_MECHANISMS; m++) row->of[m] = pl_estimate_of(values + m * arms->max_runs, n[m]);
  return PL_OK;
}

static bool has_more_than_clipping(const pl_mechanism_row *row) {
  for (pl_mechanism m = 0; m < PL_MECHANISM_CLIPPED; m++)
    if (row->of[m].n > 0) return true;
  return false;
}

pl_status pl_mechanism_compute(const pl_arms *arms, pl_mechanism_table *out, pl_err *e) {
  pl_status st = PL_OK;
  double *values = NULL;
  *out = (pl_mechanism_table){0};
  PL_TRY(pl_alloc(arms->count, sizeof out->rows[0], "the table of mechanisms", &out->rows, e));
  PL_TRY(pl_alloc(PL_MECHANISMS * arms->max_runs, sizeof values[0], "the table of mechanisms", &values, e));
  for (size_t i = 0; i < arms->count; i++) {
    pl_mechanism_row *row = &out->rows[out->count];
    if (!arms->arms[i].best) continue;
    PL_TRY(fill(arms, &arms->arms[i], values, row, e));
    if (!has_more_than_clipping(row)) continue;
    out->count++;
    for (pl_mechanism m = 0; m < PL_MECHANISMS; m++) out->logged[m] = out->logged[m] || row->of[m].n > 0;
  }
out:
  pl_free(values);
  if (st != PL_OK) pl_mechanism_free(out);
  return st;
}

void pl_mechanism_free(pl_mechanism_table *t) {
  pl_free(t->rows);
  *t = (pl_mechanism_table){0};
}
