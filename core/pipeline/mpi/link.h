/* Where the links between stages lead, for the transports of the MPI world. */
#ifndef PL_PIPELINE_MPI_LINK_H
#define PL_PIPELINE_MPI_LINK_H

#include "core/pipeline/mpi/shared.h"

typedef struct pl_link {
  bool inside;  /* both ends are on this rank */
  bool crosses; /* one of them is */
  bool nearer;  /* it is the one nearer to the input */
  size_t peer;  /* the other one's rank */
} pl_link;

/* The last stage's next one is stage 0. */
static inline pl_link pl_link_of(const pl_mpi *m, const pl_grid *g, size_t link) {
  const size_t me = m->base.rank, replica = me / g->ranks;
  const size_t from = pl_grid_rank(g, replica, link), to = pl_grid_rank(g, replica, (link + 1) % g->stages);
  return (pl_link){.inside = from == me && to == me,
                   .crosses = (from == me) != (to == me),
                   .nearer = from == me,
                   .peer = from == me ? to : from};
}

/* Whether this rank's end sends messages of that kind. */
static inline bool pl_link_sends(const pl_link *l, size_t kind) { return l->nearer == (kind != PL_MESSAGE_GRADIENT); }

static inline size_t pl_link_messages(const pl_schedule_facts *facts, size_t link, size_t kind) {
  return kind == PL_MESSAGE_VALIDATION ? PL_VALIDATION_MESSAGES : facts->messages[link];
}

#endif
