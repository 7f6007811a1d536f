/* The runs of a sweep sorted into arms: runs that differ in seed and learning rate alone. */
#ifndef PL_ANALYSIS_ARMS_H
#define PL_ANALYSIS_ARMS_H

#include "results/catalog.h"

typedef struct pl_arm_run {
  const pl_catalog_run *run; /* borrowed from the catalog */
  int64_t seed;
  double loss; /* final validation loss; +infinity when it diverged; NaN without an outcome (failed, or not finished
                  yet) */
} pl_arm_run;

/* An arm at one learning rate; seeds ascending, each once. */
typedef struct pl_arm_cell {
  double lr;
  const pl_arm_run *runs;
  size_t count;
} pl_arm_cell;

typedef struct pl_arm {
  uint64_t id, baseline_id, uncorrected_id; /* identities without seed and learning rate; baseline_id also without
                                               schedule: synchronous arms share it */
  size_t first;                             /* place in the catalog of its first run */
  const pl_run_config *config;              /* of that run; borrowed from the catalog */
  const pl_arm_cell *cells;                 /* learning rates ascending */
  size_t cell_count;
  const pl_arm_cell *best;          /* the learning rate that stands for the arm; NULL without outcomes to choose by */
  int edge;                         /* -1 best is the lowest of several rates, +1 the highest, else 0 */
  const struct pl_arm *baseline;    /* the sync arm it is measured against, itself for that; NULL when there is none */
  const struct pl_arm *uncorrected; /* the delayed arm without its correction; NULL when there is none */
  bool sync;                        /* no delay and no correction */
  char *group;                      /* what varies besides optimizer, delay and correction: "train.steps=600", or "" */
  char *optimizer, *delay, *correction; /* "adamw(beta1=0.9)", "1 from 100", "ef(lambda=0.5)"; where schedules vary
                                           the delay is "1 2bw", "0 1f1b" */
  char *name;                           /* all of it for messages: "adamw delay 1 ef (train.steps=600)" */
  /* Equal texts have equal ranks from 0. Groups and optimizers rank by first appearance, delays by size, corrections
   * by first appearance after "none". */
  size_t group_rank, optimizer_rank, delay_rank, correction_rank;
} pl_arm;

typedef struct pl_arms {
  const pl_catalog *catalog;
  pl_arm *arms; /* by group, optimizer, delay, correction */
  size_t count;
  const int64_t *select_on; /* the seed that alone chooses learning rates, NULL: the common seeds; borrowed */
  pl_arm_cell *cells;
  pl_arm_run *runs;
  size_t run_count;
  size_t max_runs;              /* of any cell */
  size_t selected, with_result; /* runs of the catalog that belong, and how many of them have an outcome */
  size_t failed;                /* how many ended without one */
} pl_arms;

/* Sorts the catalog's runs and chooses learning rates; `all` takes also runs that left the sweep file. The catalog and
 * *select_on (may be NULL) must outlive the arms. */
PL_MUST_CHECK pl_status pl_arms_build(const pl_catalog *c, bool all, const int64_t *select_on, pl_arms *out, pl_err *e);
void pl_arms_free(pl_arms *a);

/* Fills in the texts of every arm: type names, and those parameters that differ between arms. Part of pl_arms_build. */
PL_MUST_CHECK pl_status pl_arms_name(pl_arms *a, pl_err *e);

bool pl_arm_finished(const pl_arm_run *r);

/* The learning rate of a cell, and the tokens of a run with a result, as they are shown: NaN where an imported run
 * states none. */
double pl_arm_cell_rate(const pl_arm_cell *c);
double pl_arm_run_tokens(const pl_catalog_run *run);

/* The cell at a learning rate (to a relative 1e-9), or NULL. */
const pl_arm_cell *pl_arm_cell_at(const pl_arm *a, double lr);

/* The seeds with an outcome at every learning rate that has outcomes at all: seeds[max_runs], ascending. */
size_t pl_arm_common_seeds(const pl_arm *a, int64_t *seeds);

/* The seeds over which the arm's learning rates are compared: the selecting one, or the common ones; 0 stands for each
 * rate's own seeds, when none is common. seeds[max_runs]. */
size_t pl_arm_choosing_seeds(const pl_arms *arms, const pl_arm *a, int64_t *seeds);

/* Mean loss of a cell over those of its seeds that finished, of the given ones or of all when count is 0; NaN when
 * there are none. *bad counts those that diverged. */
double pl_arm_cell_mean(const pl_arm_cell *c, const int64_t *seeds, size_t count, size_t *bad);

/* Sets every arm's best, and whether it is at an edge: the learning rate with the fewest diverged runs, then the lowest
 * mean loss, over the choosing seeds. Part of pl_arms_build. */
PL_MUST_CHECK pl_status pl_arms_choose(pl_arms *a, pl_err *e);

#endif
