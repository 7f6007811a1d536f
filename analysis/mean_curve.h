/* The mean loss curve of an arm over its seeds. */
#ifndef PL_ANALYSIS_MEAN_CURVE_H
#define PL_ANALYSIS_MEAN_CURVE_H

#include "analysis/arms.h"
#include "results/journal.h"

/* Points at the steps that all finished seeds have; no interpolation. */
typedef struct pl_mean_curve {
  int64_t *steps;
  double *values;     /* nats per token */
  double *low, *high; /* the lowest and the highest seed */
  size_t count;
  size_t seeds;
} pl_mean_curve;

/* Reads one series (train or validation loss) of every finished run of the cell from its journal. No finished run gives
 * an empty curve. Released by pl_mean_curve_free. */
PL_MUST_CHECK pl_status pl_mean_curve_read(const pl_arm_cell *cell, pl_series series, pl_mean_curve *out, pl_err *e);

/* The same of curves that were each smoothed first (pl_smooth); weight 0: not at all. */
PL_MUST_CHECK pl_status pl_mean_curve_read_smooth(const pl_arm_cell *cell, pl_series series, double weight,
                                                  pl_mean_curve *out, pl_err *e);

/* A run's journal; a missing one is an empty curve. */
PL_MUST_CHECK pl_status pl_arm_run_curve(const pl_arm_run *r, pl_curve *out, pl_err *e);
void pl_mean_curve_free(pl_mean_curve *c);

#endif
