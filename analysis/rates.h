/* Learning rates: how well the grid holds each arm's optimum. */
#ifndef PL_ANALYSIS_RATES_H
#define PL_ANALYSIS_RATES_H

#include "analysis/arms.h"
#include "analysis/notes.h"

typedef enum pl_rate_mark {
  PL_RATE_INSIDE,    /* between two others, and near the parabola's minimum */
  PL_RATE_OFF,       /* the parabola's minimum is more than half a grid step away */
  PL_RATE_FLAT,      /* the three best losses have no minimum */
  PL_RATE_EDGE_LOW,  /* the lowest rate tried */
  PL_RATE_EDGE_HIGH, /* the highest rate tried */
  PL_RATE_FEW        /* fewer than three rates to judge by */
} pl_rate_mark;

/* The optimum of one arm's learning rate: the best rate of the grid, and the minimum of the parabola in log2 lr through
 * the three best rates at which no run diverged, over the seeds that choose. */
typedef struct pl_rate_row {
  const pl_arm *arm;
  size_t rates, seeds;  /* rates with an outcome; seeds that choose, 0: each rate's own */
  double loss;          /* mean over these seeds at the best rate */
  double lr, predicted; /* the parabola's optimum and the loss there; NaN without one */
  double steps_off;     /* from the best rate, in grid steps */
  pl_rate_mark mark;
} pl_rate_row;

typedef struct pl_rate_table {
  pl_rate_row *rows; /* of the arms with a best rate */
  size_t count;
} pl_rate_table;

PL_MUST_CHECK pl_status pl_rates_check(const pl_arms *arms, pl_rate_table *out, pl_notes *warnings, pl_err *e);
void pl_rates_free(pl_rate_table *t);

/* The rate beyond the edge at which the arm's optimum lies, by the grid's own ratio there; NaN when it lies inside, and
 * when there are runs at that rate already (without an outcome yet). */
double pl_rate_beyond_edge(const pl_rate_row *r);

#endif
