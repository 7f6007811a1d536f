/* A run of an array task by several processes: srun or mpirun starts them, this process waits, passes signals on and
 * writes down how they ended where they could not. */
#ifndef PL_RUNNERS_LAUNCHERS_RANKS_RUN_H
#define PL_RUNNERS_LAUNCHERS_RANKS_RUN_H

#include "runners/plan.h"

typedef struct pl_ranks_run_args {
  const char *dir;
  int64_t submission, task;
  int64_t processes, cpus; /* cpus of each process */
  bool mpirun;             /* instead of srun */
} pl_ranks_run_args;

/* Starts `pipelag task` with the same numbers on all processes and waits until all have ended; the job's state is then
 * what the run's folder says. What ends before rank 0 has begun with the run is started again, twice at most. When they
 * ended badly without leaving a result, the run becomes failed (stopped, when it was told to stop) with the launcher's
 * own words. The caller has installed patient signals. PL_BAD when the launcher cannot be started. */
PL_MUST_CHECK pl_status pl_ranks_run(const pl_ranks_run_args *args, pl_job *job, pl_err *e);

#endif
