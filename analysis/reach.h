/* What the curves tell: tokens to a loss, tokens more than synchronous training for the same loss, clipping. */
#ifndef PL_ANALYSIS_REACH_H
#define PL_ANALYSIS_REACH_H

#include "analysis/gap.h"
#include "analysis/speed.h"

enum { PL_LEAST_VALIDATIONS = 4 }; /* of a run, after the first: fewer tell nothing about when a loss was reached */

/* The first validation at or below a loss, without interpolation and smoothing. A run that diverged or never gets there
 * is a miss; a run without a curve does not count. */
typedef struct pl_reach_row {
  const pl_arm *arm;
  double lr, target;             /* NaN: the group has no target, or too few validations */
  size_t runs, reached;          /* with an outcome and a curve; of these */
  double tokens, steps, seconds; /* medians over these runs, misses as infinity; seconds of runs in one attempt */
  pl_estimate overhead;          /* tokens to the target over those of the sync run of the seed: ratio of means */
  pl_estimate at_own_end;        /* tokens of the whole run over those after which its sync run had the same loss */
  bool overhead_resolved, at_own_end_resolved; /* whether they have an interval */
  double schedule_gain; /* throughput of 2BW over 1F1B, (m+P-1)/m; NaN with one stage, fewer microbatches than stages,
                           or without delay */
  double measured_gain; /* tokens per second over those of the sync arm, see pl_speed_gain; NaN: not measured */
  double clipped;       /* share of the logged updates that were clipped; NaN when none was logged */
} pl_reach_row;

typedef struct pl_reach_table {
  pl_reach_row *rows; /* arms at their own best learning rate */
  size_t count;
} pl_reach_table;

/* Reads the journals of the runs at the best learning rates. The target is o->target, or for each group the highest
 * final loss of its synchronous runs, which all of them reached. No rows when there are no curves. */
PL_MUST_CHECK pl_status pl_reach_compute(const pl_arms *arms, const pl_gap_options *o, const pl_speed_table *speed,
                                         pl_reach_table *out, pl_notes *warnings, pl_err *e);
void pl_reach_free(pl_reach_table *t);

#endif
