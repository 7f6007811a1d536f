/* The gap as a function of a number of the configuration: delay, momentum, batch size, width, ... */
#ifndef PL_ANALYSIS_AGAINST_H
#define PL_ANALYSIS_AGAINST_H

#include "analysis/gap.h"

/* One value of the axis in one series. */
typedef struct pl_against_point {
  double value, x;       /* as configured, and as fitted */
  const pl_gap_row *row; /* of the gap table, which must outlive this */
} pl_against_point;

/* Delayed arms that differ in the axis alone (and in the keys that go along). */
typedef struct pl_against_series {
  const pl_gap_row *first; /* of its first point; series are in the order of the gap table */
  size_t begin, end;       /* of its points, values ascending */
  /* Least squares of the gap's mean against x, from three values on. When at least three seeds have a gap at every
   * value, the line is fitted over these alone and the slope's interval is the t interval over the slopes of the
   * single seeds, which is right also where the values share a sync arm. Otherwise values are weighted by their number
   * of pairs and the interval is from their scatter about the line, values - 2 degrees of freedom. */
  double intercept;
  pl_estimate slope; /* n: values; NaN without a line */
  size_t seeds;      /* over which the interval is, 0: from the scatter */
} pl_against_series;

typedef struct pl_against_table {
  const char *key;    /* "optimizer.beta1"; NULL for an empty table */
  bool inverted;      /* x is 1/(1-value) */
  pl_reading reading; /* the fixed one where there is one, else each arm's best */
  pl_against_point *points;
  pl_against_series *series;
  size_t count, point_count;
} pl_against_table;

/* Empty without o->against. x is the value itself, or 1/(1-value) for momenta (beta1, momentum); a delay counts where
 * it is the same in all stages. PL_BAD when no run has a number at the axis. */
PL_MUST_CHECK pl_status pl_against_compute(const pl_gap_table *gap, const pl_arms *arms, const pl_gap_options *o,
                                           pl_against_table *out, pl_notes *warnings, pl_err *e);
void pl_against_free(pl_against_table *t);

#endif
