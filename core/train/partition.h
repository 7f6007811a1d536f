/* Which layers a stage owns: contiguous ones, balanced by what they cost. */
#ifndef PL_TRAIN_PARTITION_H
#define PL_TRAIN_PARTITION_H

#include "core/config/run_config.h"

/* first_layer[stages + 1]: stage p owns layers first_layer[p] .. first_layer[p+1]-1, at least one. With chunks `stages`
 * are the virtual ones, stages * chunks. By pipeline.partition of a checked config: a list is taken as it stands;
 * "even" gives stage p the layers from layers * p / stages on; "flops" is pl_partition_split of pl_partition_costs, and
 * "even" for a model that cannot count them. `vocab` is the dataset's. PL_BAD for more stages than layers and for a
 * list of other stages. */
PL_MUST_CHECK pl_status pl_partition_make(const pl_run_config *c, size_t vocab, size_t stages, size_t *first_layer,
                                          pl_err *e);

/* Floating-point operations of a forward per token of each layer, with what the first and the last stage do besides on
 * the first and last layer. *out: [layers], released by pl_free. *layers: how many the model has. */
PL_MUST_CHECK pl_status pl_partition_costs(const pl_run_config *c, size_t vocab, double **out, size_t *layers,
                                           pl_err *e);

/* The contiguous split of layers that cost costs[layers] >= 0 whose largest stage is smallest; of those the most even
 * one (smallest sum of squares); of those the one with the earliest cuts. Costs that differ by a part in 10^12 count as
 * equal. Takes time proportional to layers^2 for balanced costs. */
PL_MUST_CHECK pl_status pl_partition_split(const double *costs, size_t layers, size_t stages, size_t *first_layer,
                                           pl_err *e);

/* layers * p / stages. */
PL_MUST_CHECK pl_status pl_partition_even(size_t layers, size_t stages, size_t *first_layer, pl_err *e);

#endif
