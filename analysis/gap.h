/* The gap: what delay costs an optimizer and what a correction wins back, from paired runs. */
#ifndef PL_ANALYSIS_GAP_H
#define PL_ANALYSIS_GAP_H

#include "analysis/arms.h"
#include "analysis/notes.h"
#include "analysis/pairs.h"
#include "analysis/stats.h"

/* Which learning rate stands for an arm. */
typedef enum pl_reading {
  PL_READING_BEST,        /* each arm at its own best */
  PL_READING_TRANSFERRED, /* every arm at the sync arm's best */
  PL_READING_FIXED        /* --at optimizer.lr=VALUE: arms without that value are left out */
} pl_reading;

#define PL_RESOLVE 0.005 /* nats: a difference that is worth telling apart, unless another is asked for */

typedef struct pl_gap_options {
  const char *at_key; /* dotted key of the fixed reading (a number, not the seed), NULL: no fixed reading. With another
                         key than optimizer.lr the arms that have the value are taken at their own best. */
  double at_value;
  bool all;                 /* also runs that are no longer part of the sweep file */
  const int64_t *select_on; /* this seed alone chooses learning rates and takes no part in what is compared at a chosen
                               one; NULL: the seeds common to all rates choose and are compared */
  double resolve;           /* difference for the number of pairs needed; 0: PL_RESOLVE */
  const double *target;     /* loss to be reached; NULL: what every synchronous run of a group reached */
  const char *const *against; /* keys, closed by NULL: the first is the axis of gaps, the others go along with it; NULL:
                                 none */
} pl_gap_options;

/* One line: an arm (optimizer x delay x correction x whatever else varies) in one reading. Texts are the arm's. */
typedef struct pl_gap_row {
  pl_reading reading;
  const pl_arm *arm;
  const pl_arm_cell *cell;      /* what stands for the arm */
  const pl_arm_cell *sync_cell; /* what it is measured against; NULL when there is none */
  const int64_t *left_out;      /* the seed that chose the rate and is not compared; NULL: all are */
  const char *group;            /* what the arm and its sync baseline share besides the optimizer: "" or
                                   "pipeline.stages=8" */
  const char *optimizer, *delay, *correction;
  bool sync;      /* the baseline itself */
  bool simulated; /* simulate_only was set */
  double lr;
  int lr_edge;      /* of the best reading: -1 the best is the lowest of several values tried, +1 the highest, else 0 */
  pl_estimate loss; /* final validation loss over the seeds that finished */
  double loss_median;   /* over all seeds with an outcome, diverged ones as +infinity; NaN when there are none */
  pl_estimate gap;      /* loss minus the paired sync run's, over seeds that both have */
  double correlation;   /* of the paired losses */
  double p, p_holm;     /* of the gap; adjusted for the arms with a gap in the same group and reading */
  size_t pairs_needed;  /* to resolve the difference asked for with a power of 80%; 0 unknown */
  pl_estimate won_back; /* part of the gap of the uncorrected arm that the correction wins back (ratio of means); NaN
                           where that gap is none; interval by Fieller when resolved */
  bool gap_resolved;
  double tokens;                                /* mean of the runs that finished */
  size_t finished, diverged, unfinished, total; /* unfinished: without an outcome */
  size_t failed, stopped;                       /* of the unfinished; stopped: also cancelled and lost */
} pl_gap_row;

typedef struct pl_gap_table {
  pl_gap_row *rows;
  size_t count;
  char *at_title; /* "At optimizer.lr = 0.008" of the fixed reading, or NULL */
  const char *at; /* its condition, or NULL */
  double resolve; /* the difference of pairs_needed */
} pl_gap_table;

/* Pairs runs that differ in delay, delay_start, simulate_only, correction (and the learning rate, by reading) and in
 * nothing else. PL_NOTHING when no run has a result or none has the fixed value, PL_BAD when at_key is no number of any
 * run. The arms must outlive the table. */
PL_MUST_CHECK pl_status pl_gap_compute(const pl_arms *arms, const pl_gap_options *o, pl_gap_table *out,
                                       pl_notes *warnings, pl_err *e);
void pl_gap_free(pl_gap_table *t);

/* What has to be said of the arms whatever the reading: losses at any rate, results that are missing, mixed machines.
 */
PL_MUST_CHECK pl_status pl_gap_warn(const pl_arms *arms, pl_notes *warnings, pl_err *e);

#endif
