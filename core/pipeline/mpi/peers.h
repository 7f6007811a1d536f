/* The way between GPUs that NCCL has, inside the MPI world: which way is taken, and the messages and sums of this one.
 * MPI carries the small words that the ranks need to agree on what they begin. */
#ifndef PL_PIPELINE_MPI_PEERS_H
#define PL_PIPELINE_MPI_PEERS_H

#include "core/pipeline/mpi/shared.h"
#include "core/pipeline/nccl/peers.h"

/* Collective; decides once, for all ranks alike, and notes it in the world: m->peers is set where every rank has the
 * library, in the same version, and a GPU to itself. NULL on a device that is on the host. */
PL_MUST_CHECK pl_status pl_mpi_choose_peers(pl_mpi *m, pl_device *d, pl_err *e);

/* Opens a group of the ranks of `comm`. Collective over them. */
PL_MUST_CHECK pl_status pl_mpi_open_peers(pl_mpi *m, pl_device *d, MPI_Comm comm, size_t slots, pl_peers **out,
                                          pl_err *e);

/* Before groups are closed: lets the others finish what they still read from this GPU; not for long, since they may be
 * what is broken. */
void pl_mpi_part(pl_mpi *m, MPI_Comm comm);

/* The table's transport and sums. `comm`: of all ranks; of the sum's, in the order of the list. */
PL_MUST_CHECK pl_status pl_mpi_peer_transport(pl_mpi *m, const pl_grid *g, const pl_transport_args *args, MPI_Comm comm,
                                              pl_transport **out, pl_err *e);

typedef struct pl_peer_sum pl_peer_sum;
PL_MUST_CHECK pl_status pl_mpi_peer_sum_open(pl_mpi *m, pl_device *device, MPI_Comm comm, size_t size,
                                             pl_peer_sum **out, pl_err *e);
PL_MUST_CHECK pl_status pl_mpi_peer_sum_begin(pl_peer_sum *s, pl_real *array, pl_err *e);
PL_MUST_CHECK pl_status pl_mpi_peer_sum_ready(pl_peer_sum *s, bool *ready, pl_err *e);
void pl_mpi_peer_sum_close(pl_peer_sum *s); /* NULL allowed */

#endif
