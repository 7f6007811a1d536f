#include "core/base/memory.h"
#include "core/pipeline/mpi/shared.h"

pl_status pl_mpi_among(pl_mpi *m, const size_t *ranks, size_t count, MPI_Comm *out, pl_err *e) {
  pl_status st = PL_OK;
  MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
  int *list = NULL;
  PL_TRY(pl_alloc(count, sizeof *list, "a list of ranks", &list, e));
  for (size_t i = 0; i < count; i++) list[i] = (int)ranks[i];
  PL_TRY(pl_mpi_check(MPI_Comm_group(m->control, &all), "parting ranks", e));
  PL_TRY(pl_mpi_check(MPI_Group_incl(all, (int)count, list, &some), "parting ranks", e));
  PL_TRY(pl_mpi_check(MPI_Comm_create_group(m->control, some, 0, out), "parting ranks", e));
out:
  if (some != MPI_GROUP_NULL) MPI_Group_free(&some);
  if (all != MPI_GROUP_NULL) MPI_Group_free(&all);
  pl_free(list);
  return st;
}
