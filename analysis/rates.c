#include "analysis/rates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/fits.h"
#include "core/base/memory.h"

/* One learning rate with what the choosing seeds say of it. */
typedef struct rate {
  double lr, loss; /* loss: NaN when every run diverged */
  size_t bad;
} rate;

static size_t list_rates(const pl_arm *a, const int64_t *seeds, size_t count, rate *out) {
  size_t n = 0;
  for (size_t i = 0; i < a->cell_count; i++) {
    rate r = {.lr = a->cells[i].lr};
    r.loss = pl_arm_cell_mean(&a->cells[i], seeds, count, &r.bad);
    if (r.bad > 0 || !isnan(r.loss)) out[n++] = r;
  }
  return n;
}

static int by_loss(const void *a, const void *b) {
  const rate *x = a, *y = b;
  return (x->loss > y->loss) - (x->loss < y->loss);
}

/* The places of the best rate's neighbours are one off in `rates`, which ascends. */
static double grid_step(const rate *rates, size_t count, size_t best, double towards) {
  size_t other = towards < rates[best].lr ? best - 1 : best + 1;
  if (best == 0) other = 1;
  if (best + 1 == count) other = best - 1;
  return fabs(log2(rates[other].lr / rates[best].lr));
}

static void fit(const rate *rates, size_t count, size_t best, rate *sorted, pl_rate_row *row) {
  size_t usable = 0;
  double x[3], y[3], at = NAN;
  for (size_t i = 0; i < count; i++)
    if (rates[i].bad == 0) sorted[usable++] = rates[i];
  row->mark = PL_RATE_FEW;
  if (usable < 3) return;
  qsort(sorted, usable, sizeof sorted[0], by_loss);
  for (size_t i = 0; i < 3; i++) {
    x[i] = log2(sorted[i].lr);
    y[i] = sorted[i].loss;
  }
  row->mark = PL_RATE_FLAT;
  if (!pl_parabola_minimum(x, y, &at, &row->predicted)) return;
  row->lr = exp2(at);
  row->steps_off = (at - log2(rates[best].lr)) / grid_step(rates, count, best, row->lr);
  row->mark = fabs(row->steps_off) > 0.5 ? PL_RATE_OFF : PL_RATE_INSIDE;
}

static void check_arm(const pl_arms *arms, const pl_arm *a, int64_t *seeds, rate *rates, rate *sorted,
                      pl_rate_row *row) {
  *row = (pl_rate_row){.arm = a, .lr = NAN, .predicted = NAN, .steps_off = NAN, .mark = PL_RATE_FEW};
  size_t chosen_by = pl_arm_choosing_seeds(arms, a, seeds), best = 0;
  row->seeds = chosen_by;
  row->rates = list_rates(a, seeds, chosen_by, rates);
  for (size_t i = 0; i < row->rates; i++)
    if (rates[i].lr == a->best->lr) best = i;
  row->loss = rates[best].loss;
  if (row->rates < 2) return;
  fit(rates, row->rates, best, sorted, row);
  if (a->edge != 0) row->mark = a->edge < 0 ? PL_RATE_EDGE_LOW : PL_RATE_EDGE_HIGH;
}

static pl_status warn(const pl_rate_row *r, const rate *rates, pl_notes *warnings, pl_err *e) {
  char best[32], at[32], low[32], high[32];
  int edge = r->arm->edge;
  pl_format_number(r->arm->best->lr, best);
  if (edge != 0)
    return pl_note(warnings, e, "%s: the best optimizer.lr %s is the %s of %s .. %s; extend the axis %s", r->arm->name,
                   best, edge < 0 ? "lowest" : "highest", pl_format_number(rates[0].lr, low),
                   pl_format_number(rates[r->rates - 1].lr, high), edge < 0 ? "downwards" : "upwards");
  if (r->mark == PL_RATE_FLAT)
    return pl_note(warnings, e,
                   "%s: the losses at the three best of %zu rates have no minimum; the best optimizer.lr %s is one of "
                   "many",
                   r->arm->name, r->rates, best);
  if (r->mark != PL_RATE_OFF) return PL_OK;
  snprintf(at, sizeof at, "%.3g", r->lr);
  return pl_note(warnings, e,
                 "%s: the parabola through the three best rates has its minimum at optimizer.lr %s, %.1f grid steps "
                 "from the best one %s; refine the axis there",
                 r->arm->name, at, fabs(r->steps_off), best);
}

pl_status pl_rates_check(const pl_arms *arms, pl_rate_table *out, pl_notes *warnings, pl_err *e) {
  pl_status st = PL_OK;
  int64_t *seeds = NULL;
  rate *rates = NULL, *sorted = NULL;
  size_t most = 1;
  *out = (pl_rate_table){0};
  for (size_t i = 0; i < arms->count; i++)
    if (arms->arms[i].cell_count > most) most = arms->arms[i].cell_count;
  PL_TRY(pl_alloc(arms->max_runs + 1, sizeof seeds[0], "seeds", &seeds, e));
  PL_TRY(pl_alloc(most, sizeof rates[0], "learning rates", &rates, e));
  PL_TRY(pl_alloc(most, sizeof sorted[0], "learning rates", &sorted, e));
  PL_TRY(pl_alloc(arms->count, sizeof out->rows[0], "the table of learning rates", &out->rows, e));
  for (size_t i = 0; i < arms->count; i++) {
    if (!arms->arms[i].best) continue;
    pl_rate_row *row = &out->rows[out->count++];
    check_arm(arms, &arms->arms[i], seeds, rates, sorted, row);
    PL_TRY(warn(row, rates, warnings, e));
  }
out:
  pl_free(sorted);
  pl_free(rates);
  pl_free(seeds);
  if (st != PL_OK) pl_rates_free(out);
  return st;
}

void pl_rates_free(pl_rate_table *t) {
  pl_free(t->rows);
  *t = (pl_rate_table){0};
}

double pl_rate_beyond_edge(const pl_rate_row *r) {
  char text[32];
  double inside = NAN, best = r->arm->best->lr, beyond = NAN;
  if (r->arm->edge == 0) return NAN;
  for (size_t i = 0; i < r->arm->cell_count; i++) { /* the nearest on the inner side */
    double lr = r->arm->cells[i].lr;
    bool inner = r->arm->edge < 0 ? lr > best : lr < best;
    if (inner && (isnan(inside) || fabs(log(lr / best)) < fabs(log(inside / best)))) inside = lr;
  }
  snprintf(text, sizeof text, "%.12g", best * best / inside);
  bool known = pl_parse_real(text, &beyond) && pl_arm_cell_at(r->arm, beyond) != NULL;
  return known ? (double)NAN : beyond;
}
