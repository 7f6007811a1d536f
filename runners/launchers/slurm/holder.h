/* Whether Slurm knows that the holder of a claim is gone. */
#ifndef PL_RUNNERS_SLURM_HOLDER_H
#define PL_RUNNERS_SLURM_HOLDER_H

#include <stdbool.h>

/* `job` as in a claim, "CLUSTER:JOB/RESTARTS". True when this cluster is that one and says that the job has ended,
 * waits, runs for another time, or is not known any more. False whenever Slurm cannot be asked. */
bool pl_slurm_job_is_gone(const char *job);

#endif
