/* Which learning rate stands for an arm. */
#include <math.h>

#include "analysis/arms.h"
#include "core/base/memory.h"

const pl_arm_cell *pl_arm_cell_at(const pl_arm *a, double lr) {
  for (size_t i = 0; i < a->cell_count; i++)
    if (fabs(a->cells[i].lr - lr) <= 1e-9 * fabs(lr)) return &a->cells[i];
  return NULL;
}

/* The run of a seed, or NULL when there is none with an outcome. */
static const pl_arm_run *known_run(const pl_arm_cell *c, int64_t seed) {
  size_t low = 0, high = c->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (c->runs[middle].seed < seed)
      low = middle + 1;
    else
      high = middle;
  }
  return low < c->count && c->runs[low].seed == seed && !isnan(c->runs[low].loss) ? &c->runs[low] : NULL;
}

static bool has_outcome(const pl_arm_cell *c) {
  for (size_t i = 0; i < c->count; i++)
    if (!isnan(c->runs[i].loss)) return true;
  return false;
}

size_t pl_arm_common_seeds(const pl_arm *a, int64_t *seeds) {
  size_t count = 0;
  bool first = true;
  for (size_t i = 0; i < a->cell_count; i++) {
    const pl_arm_cell *c = &a->cells[i];
    if (!has_outcome(c)) continue;
    if (first) {
      for (size_t j = 0; j < c->count; j++)
        if (!isnan(c->runs[j].loss)) seeds[count++] = c->runs[j].seed;
    } else {
      size_t kept = 0;
      for (size_t j = 0; j < count; j++)
        if (known_run(c, seeds[j])) seeds[kept++] = seeds[j];
      count = kept;
    }
    first = false;
  }
  return count;
}

double pl_arm_cell_mean(const pl_arm_cell *c, const int64_t *seeds, size_t count, size_t *bad) {
  double sum = 0;
  size_t finished = 0;
  *bad = 0;
  for (size_t i = 0; i < (count > 0 ? count : c->count); i++) {
    const pl_arm_run *r = count > 0 ? known_run(c, seeds[i]) : &c->runs[i];
    if (!r || isnan(r->loss)) continue;
    if (pl_arm_finished(r)) {
      sum += r->loss;
      finished++;
    } else {
      ++*bad;
    }
  }
  return finished > 0 ? sum / (double)finished : (double)NAN;
}

size_t pl_arm_choosing_seeds(const pl_arms *arms, const pl_arm *a, int64_t *seeds) {
  if (!arms->select_on) return pl_arm_common_seeds(a, seeds);
  seeds[0] = *arms->select_on;
  return 1;
}

static void choose(pl_arm *a, const int64_t *seeds, size_t count) {
  size_t best_bad = 0;
  const pl_arm_cell *first = NULL, *last = NULL;
  double best_mean = INFINITY;
  for (size_t i = 0; i < a->cell_count; i++) {
    size_t bad = 0;
    double mean = pl_arm_cell_mean(&a->cells[i], seeds, count, &bad);
    if (isnan(mean) && bad == 0) continue;
    last = &a->cells[i];
    if (!first) first = last;
    if (isnan(mean)) mean = INFINITY;
    if (a->best && (bad > best_bad || (bad == best_bad && mean >= best_mean))) continue;
    a->best = last;
    best_bad = bad;
    best_mean = mean;
  }
  a->edge = first == last ? 0 : a->best == first ? -1 : a->best == last ? 1 : 0;
}

pl_status pl_arms_choose(pl_arms *a, pl_err *e) {
  int64_t *seeds = NULL;
  pl_status st = pl_alloc(a->max_runs + 1, sizeof seeds[0], "seeds", &seeds, e);
  if (st != PL_OK) return st;
  for (size_t i = 0; i < a->count; i++) choose(&a->arms[i], seeds, pl_arm_choosing_seeds(a, &a->arms[i], seeds));
  pl_free(seeds);
  return PL_OK;
}
