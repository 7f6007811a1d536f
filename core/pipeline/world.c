#include "core/pipeline/world.h"

pl_status pl_grid_make(size_t size, size_t stages, size_t replicas, pl_grid *out, pl_err *e) {
  *out = (pl_grid){.stages = stages, .replicas = replicas, .ranks = 1, .size = size};
  if (stages == 0 || replicas == 0)
    return pl_fail(e, PL_BAD, "%zu replicas of %zu stages: at least one of each is needed", replicas, stages);
  if (size == 1) return PL_OK;
  out->ranks = size / replicas;
  if (size % replicas == 0 && out->ranks >= 1 && out->ranks <= stages) return PL_OK;
  if (replicas == 1)
    return pl_fail(e, PL_BAD, "%zu processes for a pipeline of %zu stages; allowed: 1 to %zu", size, stages, stages);
  return pl_fail(e, PL_BAD,
                 "%zu processes for %zu replicas of a pipeline of %zu stages; allowed: 1, and %zu times 1 to %zu", size,
                 replicas, stages, replicas, stages);
}

size_t pl_grid_rank(const pl_grid *g, size_t replica, size_t stage) {
  if (g->size == 1) return 0;
  size_t place = ((stage + 1) * g->ranks - 1) / g->stages; /* the last one that begins at the stage or before it */
  return replica * g->ranks + place;
}

void pl_grid_stages(const pl_grid *g, size_t rank, size_t *first, size_t *end) {
  size_t place = rank % g->ranks;
  *first = place * g->stages / g->ranks;
  *end = (place + 1) * g->stages / g->ranks;
}
