#include "core/train/partition.h"

#include <math.h>

#include "core/base/memory.h"
#include "core/train/model.h"

/* Sums of the same layers in another order differ in their last bits. */
#define TIE 1e-12

enum { HALVINGS = 64 };

typedef struct split {
  size_t layers, stages;
  double *before; /* [layers + 1]: cost of all layers before i */
  double limit;   /* of a stage */
} split;

static double cost(const split *s, size_t from, size_t to) { return s->before[to] - s->before[from]; }

/* Can every stage stay within the limit? Each takes as many layers as it can and leaves one for each later stage. */
static bool fits(const split *s, double limit) {
  size_t from = 0;
  for (size_t p = 0; p < s->stages; p++) {
    size_t to = from + 1, most = s->layers - (s->stages - 1 - p);
    if (cost(s, from, to) > limit) return false;
    while (to < most && cost(s, from, to + 1) <= limit) to++;
    from = to;
  }
  return from == s->layers;
}

static double smallest_limit(const split *s) {
  double low = 0, high = s->before[s->layers];
  for (int i = 0; i < HALVINGS; i++) {
    double middle = low + (high - low) / 2;
    if (fits(s, middle))
      high = middle;
    else
      low = middle;
  }
  return high * (1 + TIE);
}

/* Where the first of `stages` stages that begin at layer `from` ends. later[i]: the smallest sum of squares of the
 * others when they begin at layer i. */
static size_t best_end(const split *s, size_t stages, size_t from, const double *later, double *sum) {
  size_t best = from + 1, least = stages == 1 ? s->layers : from + 1, most = s->layers - (stages - 1);
  *sum = (double)INFINITY;
  for (size_t to = least; to <= most && cost(s, from, to) <= s->limit; to++) {
    double value = cost(s, from, to) * cost(s, from, to) + later[to];
    if (!(value < *sum * (1 - TIE))) continue;
    *sum = value;
    best = to;
  }
  return best;
}

/* From the last stage to the first; ends[k * layers + i]: where the first of the last k + 1 stages ends that begin at
 * layer i. */
static void choose(const split *s, double *sum, double *later, size_t *ends, size_t *first_layer) {
  for (size_t i = 0; i <= s->layers; i++) later[i] = i == s->layers ? 0 : (double)INFINITY;
  for (size_t k = 0; k < s->stages; k++) {
    double *swap = later;
    for (size_t i = 0; i <= s->layers; i++) {
      sum[i] = (double)INFINITY;
      if (i + k < s->layers) ends[k * s->layers + i] = best_end(s, k + 1, i, later, &sum[i]);
    }
    later = sum;
    sum = swap;
  }
  first_layer[0] = 0;
  for (size_t p = 0; p < s->stages; p++) first_layer[p + 1] = ends[(s->stages - 1 - p) * s->layers + first_layer[p]];
}

static pl_status check_stages(size_t layers, size_t stages, pl_err *e) {
  if (stages >= 1 && stages <= layers) return PL_OK;
  return pl_fail(e, PL_BAD, "partition: %zu stages for %zu layers; allowed: 1 to %zu", stages, layers, layers);
}

pl_status pl_partition_split(const double *costs, size_t layers, size_t stages, size_t *first_layer, pl_err *e) {
  pl_status st = PL_OK;
  split s = {.layers = layers, .stages = stages};
  double *sum = NULL, *later = NULL;
  size_t *ends = NULL;
  PL_TRY(check_stages(layers, stages, e));
  PL_TRY(pl_alloc(layers + 1, sizeof *s.before, "the partition", &s.before, e));
  PL_TRY(pl_alloc(layers + 1, sizeof *sum, "the partition", &sum, e));
  PL_TRY(pl_alloc(layers + 1, sizeof *later, "the partition", &later, e));
  PL_TRY(pl_alloc(layers * stages, sizeof *ends, "the partition", &ends, e));
  for (size_t i = 0; i < layers; i++) s.before[i + 1] = s.before[i] + costs[i];
  s.limit = smallest_limit(&s);
  choose(&s, sum, later, ends, first_layer);
out:
  pl_free(s.before);
  pl_free(sum);
  pl_free(later);
  pl_free(ends);
  return st;
}

pl_status pl_partition_even(size_t layers, size_t stages, size_t *first_layer, pl_err *e) {
  pl_status st = check_stages(layers, stages, e);
  for (size_t p = 0; st == PL_OK && p <= stages; p++) first_layer[p] = layers * p / stages;
  return st;
}

static size_t layers_of(const pl_run_config *c) {
  pl_model_shape shape = {0};
  ((const pl_model_type *)c->model.type)->shape(c->model.config, &shape);
  return shape.layers;
}

pl_status pl_partition_costs(const pl_run_config *c, size_t vocab, double **out, size_t *layers, pl_err *e) {
  const pl_model_type *type = (const pl_model_type *)c->model.type;
  double first = 0, last = 0;
  *layers = layers_of(c);
  pl_status st = pl_alloc(*layers, sizeof **out, "the layers' costs", out, e);
  if (st != PL_OK) return st;
  for (size_t i = 0; i < *layers; i++) (*out)[i] = 1;
  if (type->layer_flops) type->layer_flops(c->model.config, vocab, *out, &first, &last);
  (*out)[0] += first;
  (*out)[*layers - 1] += last;
  return PL_OK;
}

static pl_status as_listed(const pl_int_list *list, size_t stages, size_t *first_layer, pl_err *e) {
  if (list->count != stages)
    return pl_fail(e, PL_BAD, "pipeline.partition: the list has %zu values; allowed: one for each of the %zu stages",
                   list->count, stages);
  first_layer[0] = 0;
  for (size_t p = 0; p < stages; p++) first_layer[p + 1] = first_layer[p] + (size_t)list->values[p];
  return PL_OK;
}

pl_status pl_partition_make(const pl_run_config *c, size_t vocab, size_t stages, size_t *first_layer, pl_err *e) {
  pl_status st = PL_OK;
  const pl_int_list *wanted = &c->pipeline.partition;
  double *costs = NULL;
  size_t layers = layers_of(c);
  if (wanted->count > 0) return as_listed(wanted, stages, first_layer, e);
  if (wanted->word == PL_PARTITION_EVEN || !((const pl_model_type *)c->model.type)->layer_flops)
    return pl_partition_even(layers, stages, first_layer, e);
  PL_TRY(pl_partition_costs(c, vocab, &costs, &layers, e));
  PL_TRY(pl_partition_split(costs, layers, stages, first_layer, e));
out:
  pl_free(costs);
  return st;
}
