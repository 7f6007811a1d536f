/* The processes that train one run together: this one alone, or those that mpirun or srun started. What blocks is said
 * to; everything else begins something and asks later, so that computing goes on meanwhile. */
#ifndef PL_PIPELINE_WORLD_H
#define PL_PIPELINE_WORLD_H

#include "core/base/str.h"
#include "core/pipeline/transport.h"

typedef struct pl_world pl_world;
typedef struct pl_gather pl_gather;
typedef struct pl_sum pl_sum;

/* Where the stages are: `replicas` copies of the pipeline, each on `ranks` processes, rank = replica * ranks + place;
 * place i holds the stages i * stages / ranks .. (i + 1) * stages / ranks - 1. A world of one process holds them all.
 */
typedef struct pl_grid {
  size_t stages, replicas, ranks;
  size_t size; /* processes: 1, or replicas * ranks */
} pl_grid;

/* PL_BAD names the numbers when `size` processes cannot hold them: allowed are 1, and replicas * (1 to stages). */
PL_MUST_CHECK pl_status pl_grid_make(size_t size, size_t stages, size_t replicas, pl_grid *out, pl_err *e);
size_t pl_grid_rank(const pl_grid *g, size_t replica, size_t stage);
void pl_grid_stages(const pl_grid *g, size_t rank, size_t *first, size_t *end);

typedef struct pl_world_type {
  const char *name; /* "local", "mpi" */

  /* Collective, blocking. The lowest rank whose status is not PL_OK decides for all: they return its status, with its
   * sentence in *e. */
  pl_status (*agree)(pl_world *w, pl_status mine, pl_err *e);
  /* Collective, blocking. Rank 0's text takes the place of the others'. */
  pl_status (*share)(pl_world *w, pl_str *text, pl_err *e);

  /* Rounds in which rank r gives count[r] numbers and gets everybody's, in rank order. Opening is collective; every
   * rank posts the same rounds in the same order, at most `window` of them before it has popped the first. */
  pl_status (*gather_open)(pl_world *w, const size_t *count, size_t window, pl_gather **out, pl_err *e);
  pl_status (*gather_post)(pl_gather *g, const double *own, pl_err *e);
  /* The numbers of the oldest round that was not popped, valid until then; NULL: not all there, or nothing posted. */
  const double *(*gather_next)(pl_gather *g);
  void (*gather_pop)(pl_gather *g);
  void (*gather_close)(pl_gather *g); /* NULL allowed */

  /* Sums an array of `size` elements over `count` different ranks, in their order ((a0 + a1) + a2 ...), so that every
   * one of them has the same bits. Opened by those ranks alone, each with the same list, and by each in the same order
   * among its other sums. Between GPUs it goes the way that the first transport has chosen, before there is one by the
   * hosts. One sum at a time. */
  pl_status (*sum_open)(pl_world *w, pl_device *device, const size_t *ranks, size_t count, size_t size, pl_sum **out,
                        pl_err *e);
  pl_status (*sum_begin)(pl_sum *s, pl_real *array, pl_err *e); /* borrows it until the sum is ready */
  pl_status (*sum_ready)(pl_sum *s, bool *ready, pl_err *e);
  void (*sum_close)(pl_sum *s); /* NULL allowed */

  /* Messages between the stages of this rank's replica. Collective. Between GPUs directly where every rank can and has
   * one to itself, unless the environment variable PIPELAG_NCCL of any is "off" (PL_BAD unless on or off); else by the
   * hosts. */
  pl_status (*transport)(pl_world *w, const pl_grid *g, const pl_transport_args *args, pl_transport **out, pl_err *e);

  /* Moves on what is on its way; cheap when nothing is. PL_FAIL on rank 0 when another rank has reported a failure:
   * its sentence. */
  pl_status (*progress)(pl_world *w, pl_err *e);

  /* Ends all processes with that exit status, after rank 0 had a few seconds to learn the sentence and to end them
   * itself. Does not return where there are others. */
  void (*abort)(pl_world *w, int exit_status, const char *sentence);
  void (*close)(pl_world *w); /* collective; NULL allowed */
} pl_world_type;

enum { PL_WORLD_NOTE = 320 };

/* Implementations start with it. */
struct pl_world {
  const pl_world_type *type;
  size_t rank, size;
  double waited; /* seconds spent in progress, in the calls above and in those of its transports since the start, those
                    that block included */
  char note[PL_WORLD_NOTE]; /* how arrays travel between the ranks' GPUs, the same on all ranks, worth a log; "" before
                               the first transport of such a device */
};

/* This process alone. */
PL_MUST_CHECK pl_status pl_world_alone(pl_world **out, pl_err *e);

/* True when a launcher (mpirun, srun --mpi=pmix) started this process as one of several, or of one. */
bool pl_world_launched(void);

/* The same for one of several, as far as the launcher's environment tells; *rank is then its own. */
bool pl_world_launched_among(size_t *rank);

/* Whether this build can join others. */
bool pl_world_has_mpi(void);

/* The world of all processes that were launched together; this one alone when none was. Collective. PL_BAD when they
 * were launched together and this build has no MPI. */
PL_MUST_CHECK pl_status pl_world_open(pl_world **out, pl_err *e);

#endif
