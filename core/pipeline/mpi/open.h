/* The world over MPI, for who opens worlds. */
#ifndef PL_PIPELINE_MPI_OPEN_H
#define PL_PIPELINE_MPI_OPEN_H

#include "core/pipeline/world.h"

/* All processes that were launched together. Collective, once in a process. Only in builds that have MPI. */
PL_MUST_CHECK pl_status pl_world_mpi(pl_world **out, pl_err *e);

#endif
