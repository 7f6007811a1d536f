/* Submits the open runs of a plan as job arrays. */
#ifndef PL_RUNNERS_SLURM_SUBMIT_H
#define PL_RUNNERS_SLURM_SUBMIT_H

#include "runners/plan.h"

typedef struct pl_submit_args {
  pl_plan *plan;      /* made; frozen here unless `frozen` */
  bool frozen;        /* pl_plan_freeze was called, so jobs have their index and state */
  const bool *chosen; /* [plan->count] only these runs, cancelled ones too, which are open again once all is checked;
                         those that Slurm does not get stay cancelled. NULL: all open runs */
  bool dry_run;       /* print argv and script of each array, write nothing */
  bool quiet;
  int verbose;
} pl_submit_args;

typedef struct pl_submit_result {
  size_t sent;    /* runs submitted now */
  size_t arrays;  /* that they are in */
  size_t queued;  /* open runs that Slurm has already */
  size_t left;    /* that could not be sent yet: limits, a refusal, an answer that is missing */
  size_t unknown; /* submissions whose answer is still missing */
} pl_submit_result;

/* Asks Slurm first, freezes the plan, settles earlier submissions whose answer was lost, then sends the rest and prints
 * what it did. PL_BAD when nothing was submitted; PL_FAIL when something was and not all could be; PL_OK otherwise,
 * also when there is nothing to do. */
PL_MUST_CHECK pl_status pl_submit(const pl_submit_args *args, pl_submit_result *out, pl_err *e);

#endif
