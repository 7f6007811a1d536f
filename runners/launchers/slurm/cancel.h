/* Taking runs out of Slurm. */
#ifndef PL_RUNNERS_SLURM_CANCEL_H
#define PL_RUNNERS_SLURM_CANCEL_H

#include "runners/launchers/slurm/states.h"

typedef struct pl_slurm_cancelled {
  size_t tasks;  /* that scancel was told */
  size_t shared; /* chosen runs whose task also has runs that are neither chosen nor finished, so it was left alone */
} pl_slurm_cancelled;

/* Cancels the live array tasks whose runs are all chosen, finished or cancelled before. Tasks are named JOB_[LIST],
 * never by the job id alone, which is an array's and its last task's. PL_FAIL with scancel's sentence. */
PL_MUST_CHECK pl_status pl_slurm_cancel(const pl_states *s, const bool *chosen, pl_slurm_cancelled *out, pl_err *e);

#endif
