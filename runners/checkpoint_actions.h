/* What `pipelag checkpoint` does, an action each: the arguments are its name, DIR and perhaps RUN. */
#ifndef PL_RUNNERS_CHECKPOINT_ACTIONS_H
#define PL_RUNNERS_CHECKPOINT_ACTIONS_H

#include "runners/options.h"

/* A new result directory with the same run on another number of stages, stopped where the newest whole checkpoint of
 * the given run is. The directory appears whole or not at all. */
PL_MUST_CHECK pl_status pl_checkpoint_repartition(const pl_options *o, pl_err *e);

/* The newest weights as one HDF5 file with a dataset for each segment. */
PL_MUST_CHECK pl_status pl_checkpoint_merge(const pl_options *o, pl_err *e);

/* A line for each checkpoint of the run, or of all runs: step, stages, bytes, whether it is whole. Reads all of it. */
PL_MUST_CHECK pl_status pl_checkpoint_show(const pl_options *o, pl_err *e);

#endif
