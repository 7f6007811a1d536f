/* The gap: what delay costs an optimizer and what a correction wins back, from paired runs. */
#ifndef PL_ANALYSIS_GAP_H
#define PL_ANALYSIS_GAP_H

#include "analysis/stats.h"
#include "results/catalog.h"

/* Which learning rate stands for an arm. */
typedef enum pl_reading {
  PL_READING_BEST,        /* each arm at its own best */
  PL_READING_TRANSFERRED, /* every arm at the sync arm's best */
  PL_READING_FIXED        /* --at optimizer.lr=VALUE: arms without that value are left out */
} pl_reading;

typedef struct pl_gap_options {
  const char *at_key; /* dotted key of the fixed reading (a number, not the seed), NULL: no fixed reading. With another
                         key than optimizer.lr the arms that have the value are taken at their own best. */
  double at_value;
  bool all; /* also runs that are no longer part of the sweep file */
} pl_gap_options;

/* One line: an arm (optimizer x delay x correction x whatever else varies) in one reading. */
typedef struct pl_gap_row {
  pl_reading reading;
  char *group; /* what the arm and its sync baseline share besides the optimizer: "" or "pipeline.stages=8" */
  char *optimizer, *delay, *correction;
  bool sync;      /* the baseline itself */
  bool simulated; /* simulate_only was set */
  double lr;
  int lr_edge;      /* of the best reading: -1 the best is the lowest of several values tried, +1 the highest, else 0 */
  pl_estimate loss; /* final validation loss over the seeds that finished */
  double loss_median;   /* over all seeds with an outcome, diverged ones as +infinity; NaN when there are none */
  pl_estimate gap;      /* loss minus the paired sync run's, over seeds that both have */
  pl_estimate won_back; /* part of the gap of the uncorrected arm that the correction wins back (ratio of means); NaN
                           where that gap is none; interval by Fieller when resolved */
  bool gap_resolved;
  size_t finished, diverged, unfinished, total;
} pl_gap_row;

typedef struct pl_gap_table {
  pl_gap_row *rows;
  size_t count;
  char *at;        /* "optimizer.lr = 0.008" of the fixed reading, or NULL */
  char **warnings; /* sentences */
  size_t warning_count;
} pl_gap_table;

/* Pairs runs that differ in delay, delay_start, simulate_only, correction (and the learning rate, by reading) and in
 * nothing else. PL_NOTHING when no run has a result or none has the fixed value, PL_BAD when at_key is no number of any
 * run. */
PL_MUST_CHECK pl_status pl_gap_compute(const pl_catalog *c, const pl_gap_options *o, pl_gap_table *out, pl_err *e);
void pl_gap_free(pl_gap_table *t);

#endif
