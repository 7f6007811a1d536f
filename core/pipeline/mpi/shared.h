/* What the parts of the MPI world share. MPI is included here alone.
 *
 * Open MPI moves nothing large outside of its calls, and any call moves everything; so whoever waits here keeps calling
 * pl_mpi_progress, and no rank's waiting stops another's sum. While the program computes, a thread of its own calls
 * every half millisecond and moves sums on, adding included; the lock lets one of the two in at a time.
 *
 * MPI is not asked to reach a GPU's memory: what it sends and receives for a device that is not on the host are copies,
 * which this rank's own calls make; the thread never touches such a device.
 *
 * Every part has a communicator of its own that is never freed before the end: the id of a freed one could be given to
 * the next while a message that nobody received is still on its way. */
#ifndef PL_PIPELINE_MPI_SHARED_H
#define PL_PIPELINE_MPI_SHARED_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>

#include "core/pipeline/world.h"

typedef struct pl_mpi {
  pl_world base;
  MPI_Comm control;           /* agreeing, sharing, reports of failures */
  MPI_Request report;         /* waits for one; also on ranks that never get any, so that there is something to test */
  char sentence[PL_ERR_TEXT]; /* of the report */
  pl_err failure;             /* nothing goes on after it */
  pl_sum *sums;               /* that are open */
  const struct pl_peers_type *peers; /* between GPUs (core/pipeline/nccl); NULL: by the hosts */
  bool chosen;                       /* that was decided */
  bool deserted;                     /* others did not come when groups of theirs were closed */
  size_t depth;                      /* of calls in calls */
  double entered;
  pthread_mutex_t lock; /* held from the outermost enter to its leave */
  pthread_t thread;
  bool threaded;
  atomic_bool ending;
  /* What blocking calls send and get: not on their stack, which is gone when one of them gives up. */
  uint64_t number;
  pl_err verdict;
} pl_mpi;

/* Every call of a table begins with enter and ends with leave, which returns `st`: the thread stays out, and the time
 * between counts as waited. */
void pl_mpi_enter(pl_mpi *m);
pl_status pl_mpi_leave(pl_mpi *m, pl_status st);

/* PL_FAIL with MPI's own words unless `code` is success. */
PL_MUST_CHECK pl_status pl_mpi_check(int code, const char *what, pl_err *e);

/* The next three move on what is on its way and fail when another rank has reported a failure. */
PL_MUST_CHECK pl_status pl_mpi_progress(pl_mpi *m, pl_err *e);
PL_MUST_CHECK pl_status pl_mpi_wait(pl_mpi *m, MPI_Request *request, const char *what, pl_err *e);
/* pl_world_type's agree, among the ranks of `comm`. */
PL_MUST_CHECK pl_status pl_mpi_agree(pl_mpi *m, MPI_Comm comm, pl_status mine, pl_err *e);

/* Gives a request up. False: MPI may use its memory until the process ends, so that must not be freed. */
bool pl_mpi_drop(MPI_Request *request);

/* A communicator of those ranks alone, in that order. Collective over them. */
PL_MUST_CHECK pl_status pl_mpi_among(pl_mpi *m, const size_t *ranks, size_t count, MPI_Comm *out, pl_err *e);

/* Copies n elements between a device and the host, between an enter and its leave. The thread is let in meanwhile: the
 * copy waits for the device. fetch is PL_FAIL when something went wrong on the device. */
PL_MUST_CHECK pl_status pl_mpi_fetch(pl_mpi *m, pl_device *d, pl_real *to_host, const pl_real *from_device, size_t n,
                                     pl_err *e);
void pl_mpi_give(pl_mpi *m, pl_device *d, pl_real *to_device, const pl_real *from_host, size_t n);

pl_status pl_mpi_gather_open(pl_world *w, const size_t *count, size_t window, pl_gather **out, pl_err *e);
pl_status pl_mpi_gather_post(pl_gather *g, const double *own, pl_err *e);
const double *pl_mpi_gather_next(pl_gather *g);
void pl_mpi_gather_pop(pl_gather *g);
void pl_mpi_gather_close(pl_gather *g);

pl_status pl_mpi_sum_open(pl_world *w, pl_device *device, const size_t *ranks, size_t count, size_t size, pl_sum **out,
                          pl_err *e);
pl_status pl_mpi_sum_begin(pl_sum *s, pl_real *array, pl_err *e);
pl_status pl_mpi_sum_ready(pl_sum *s, bool *ready, pl_err *e);
void pl_mpi_sum_close(pl_sum *s);
/* Moves all open sums on, by a bounded piece of work in all. */
PL_MUST_CHECK pl_status pl_mpi_sums_move(pl_mpi *m, pl_err *e);

pl_status pl_mpi_transport(pl_world *w, const pl_grid *g, const pl_transport_args *args, pl_transport **out, pl_err *e);

#endif
