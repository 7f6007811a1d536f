#include <limits.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/pipeline/mpi/shared.h"
#include "core/pipeline/rounds.h"

struct pl_gather {
  pl_mpi *m;
  MPI_Comm comm;
  pl_rounds rounds;
  MPI_Request *requests; /* [window] */
  int *count, *start;    /* of every rank's numbers in a round */
};

static pl_status open_buffers(pl_gather *g, const size_t *count, size_t window, pl_err *e) {
  pl_status st = PL_OK;
  const size_t ranks = g->m->base.size;
  size_t total = 0;
  PL_TRY(pl_alloc(ranks, sizeof *g->count, "a gather", &g->count, e));
  PL_TRY(pl_alloc(ranks, sizeof *g->start, "a gather", &g->start, e));
  PL_TRY(pl_alloc(window, sizeof *g->requests, "a gather", &g->requests, e));
  for (size_t i = 0; i < window; i++) g->requests[i] = MPI_REQUEST_NULL;
  for (size_t r = 0; r < ranks; r++) {
    if (count[r] > INT_MAX - total)
      return pl_fail(e, PL_BAD, "a gather of more than %d numbers, which is all that MPI counts", INT_MAX);
    g->count[r] = (int)count[r];
    g->start[r] = (int)total;
    total += count[r];
  }
  PL_TRY(pl_rounds_open(total, window, &g->rounds, e));
out:
  return st;
}

pl_status pl_mpi_gather_open(pl_world *w, const size_t *count, size_t window, pl_gather **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_mpi *m = (pl_mpi *)w;
  pl_gather *g = NULL;
  *out = NULL;
  pl_mpi_enter(m);
  st = pl_alloc(1, sizeof *g, "a gather", &g, e);
  if (st == PL_OK) {
    g->m = m;
    st = open_buffers(g, count, window, e);
  }
  PL_TRY(pl_mpi_agree(m, m->control, st, e));
  PL_TRY(pl_mpi_check(MPI_Comm_dup(m->control, &g->comm), "opening a gather", e));
  *out = g;
out:
  if (st != PL_OK) pl_mpi_gather_close(g);
  return pl_mpi_leave(m, st);
}

/* This rank's numbers are put where they will stand among all. */
static pl_status post(pl_gather *g, const double *own, pl_err *e) {
  pl_status st = PL_OK;
  size_t place = 0;
  const size_t rank = g->m->base.rank;
  PL_TRY(pl_rounds_post(&g->rounds, &place, e));
  double *all = pl_rounds_at(&g->rounds, place);
  if (g->count[rank] > 0) memcpy(all + g->start[rank], own, (size_t)g->count[rank] * sizeof *own);
  PL_TRY(pl_mpi_check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, g->count, g->start, MPI_DOUBLE, g->comm,
                                      &g->requests[place]),
                      "gathering", e));
out:
  return st;
}

pl_status pl_mpi_gather_post(pl_gather *g, const double *own, pl_err *e) {
  pl_mpi_enter(g->m);
  return pl_mpi_leave(g->m, post(g, own, e));
}

const double *pl_mpi_gather_next(pl_gather *g) {
  size_t place = 0;
  if (!pl_rounds_oldest(&g->rounds, &place)) return NULL;
  pl_mpi_enter(g->m);
  int done = 0;
  pl_status st = pl_mpi_check(MPI_Test(&g->requests[place], &done, MPI_STATUS_IGNORE), "gathering", &g->m->failure);
  return pl_mpi_leave(g->m, st) == PL_OK && done ? pl_rounds_at(&g->rounds, place) : NULL;
}

void pl_mpi_gather_pop(pl_gather *g) { pl_rounds_pop(&g->rounds); }

void pl_mpi_gather_close(pl_gather *g) {
  if (!g) return;
  int done = 1;
  for (size_t i = 0; g->requests && done && i < g->rounds.window; i++)
    MPI_Test(&g->requests[i], &done, MPI_STATUS_IGNORE);
  /* A round that others never join cannot be taken back: MPI uses its memory until the process ends. */
  if (!done) return;
  pl_rounds_close(&g->rounds);
  pl_free(g->requests);
  pl_free(g->count);
  pl_free(g->start);
  pl_free(g);
}
