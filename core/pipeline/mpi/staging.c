#include "core/pipeline/mpi/shared.h"

pl_status pl_mpi_fetch(pl_mpi *m, pl_device *d, pl_real *to_host, const pl_real *from_device, size_t n, pl_err *e) {
  (void)pl_mpi_leave(m, PL_OK);
  d->ops->download(d, to_host, from_device, n * sizeof *to_host);
  pl_mpi_enter(m);
  return d->ops->check(d, e);
}

void pl_mpi_give(pl_mpi *m, pl_device *d, pl_real *to_device, const pl_real *from_host, size_t n) {
  (void)pl_mpi_leave(m, PL_OK);
  d->ops->upload(d, to_device, from_host, n * sizeof *to_device);
  pl_mpi_enter(m);
}
