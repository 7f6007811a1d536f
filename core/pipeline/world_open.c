#include <stdlib.h>

#include "core/pipeline/mpi/open.h"
#include "core/pipeline/world.h"

bool pl_world_launched(void) { return getenv("PMIX_RANK") || getenv("OMPI_COMM_WORLD_RANK"); }

bool pl_world_launched_among(size_t *rank) {
  const char *place = getenv("OMPI_COMM_WORLD_RANK"), *count = getenv("OMPI_COMM_WORLD_SIZE");
  if (!place) place = getenv("PMIX_RANK");
  if (!count) count = getenv("SLURM_STEP_NUM_TASKS");
  if (!place || !count || strtoul(count, NULL, 10) < 2) return false;
  *rank = strtoul(place, NULL, 10);
  return true;
}

bool pl_world_has_mpi(void) {
#ifdef PL_HAVE_MPI
  return true;
#else
  return false;
#endif
}

pl_status pl_world_open(pl_world **out, pl_err *e) {
  if (!pl_world_launched()) return pl_world_alone(out, e);
#ifdef PL_HAVE_MPI
  return pl_world_mpi(out, e);
#else
  *out = NULL;
  return pl_fail(e, PL_BAD,
                 "mpirun or srun started this process (PMIX_RANK or OMPI_COMM_WORLD_RANK is set), but this pipelag was "
                 "built without MPI; start it alone, or build it where CMake finds MPI");
#endif
}
