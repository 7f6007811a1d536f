#include "runners/schedule_pieces.h"

#include "core/base/memory.h"
#include "core/train/partition.h"

void pl_pieces_free(pl_pieces *p) {
  pl_free(p->items);
  *p = (pl_pieces){0};
}

static void add(const pl_piece *piece, pl_stage_costs *time, pl_stage_sizes *sizes) {
  time->forward += piece->time.forward;
  time->backward += piece->time.backward;
  time->weight += piece->time.weight;
  sizes->weights += piece->sizes.weights;
  sizes->gradient += piece->sizes.gradient;
  sizes->optimizer += piece->sizes.optimizer;
  sizes->activations += piece->sizes.activations;
}

pl_status pl_pieces_split(const pl_pieces *p, size_t stages, size_t chunks, size_t *first_layer, pl_err *e) {
  pl_status st = PL_OK;
  double *costs = NULL;
  if (p->config) return pl_partition_make(p->config, p->vocab, stages * chunks, first_layer, e);
  PL_TRY(pl_alloc(p->count, sizeof *costs, "the layers' costs", &costs, e));
  for (size_t i = 0; i < p->count; i++) costs[i] = p->items[i].time.forward + p->items[i].time.backward;
  PL_TRY(pl_partition_split(costs, p->count, stages * chunks, first_layer, e));
out:
  pl_free(costs);
  return st;
}

static pl_status cut_layers(const pl_pieces *p, size_t stages, size_t chunks, pl_stage_costs *times,
                            pl_stage_sizes *sizes, pl_err *e) {
  pl_status st = PL_OK;
  size_t *first = NULL;
  PL_TRY(pl_alloc(stages * chunks + 1, sizeof *first, "the partition", &first, e));
  PL_TRY(pl_pieces_split(p, stages, chunks, first, e));
  for (size_t v = 0; v < stages * chunks; v++)
    for (size_t i = first[v]; i < first[v + 1]; i++) add(&p->items[i], &times[v % stages], &sizes[v % stages]);
out:
  pl_free(first);
  return st;
}

pl_status pl_pieces_cut(const pl_pieces *p, size_t stages, size_t chunks, pl_stage_costs *times, pl_stage_sizes *sizes,
                        pl_err *e) {
  pl_status st = PL_OK;
  for (size_t i = 0; i < stages; i++) {
    times[i] = (pl_stage_costs){.update = p->update};
    sizes[i] = (pl_stage_sizes){0};
  }
  if (p->layers) return cut_layers(p, stages, chunks, times, sizes, e);
  if (p->count != 1 && p->count != stages)
    st = pl_fail(e, PL_BAD, "costs: there are lists of %zu stages; allowed with %zu stages: lists of as many", p->count,
                 stages);
  for (size_t i = 0; i < stages && st == PL_OK; i++) add(&p->items[p->count == 1 ? 0 : i], &times[i], &sizes[i]);
  return st;
}
