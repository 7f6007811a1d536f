#include "analysis/pairs.h"

#include "core/base/memory.h"

pl_status pl_pairs_alloc(size_t most, pl_pairs *out, pl_err *e) {
  pl_status st = PL_OK;
  *out = (pl_pairs){0};
  PL_TRY(pl_alloc(most, sizeof out->seeds[0], "seeds", &out->seeds, e));
  PL_TRY(pl_alloc(most, sizeof out->a[0], "losses", &out->a, e));
  PL_TRY(pl_alloc(most, sizeof out->b[0], "losses", &out->b, e));
  PL_TRY(pl_alloc(most, sizeof out->c[0], "losses", &out->c, e));
out:
  if (st != PL_OK) pl_pairs_free(out);
  return st;
}

void pl_pairs_free(pl_pairs *p) {
  pl_free(p->seeds);
  pl_free(p->a);
  pl_free(p->b);
  pl_free(p->c);
  *p = (pl_pairs){0};
}

/* The finished run of a seed, or NULL; *at only moves on. */
static const pl_arm_run *finished_run(const pl_arm_cell *cell, size_t *at, int64_t seed) {
  while (*at < cell->count && cell->runs[*at].seed < seed) ++*at;
  if (*at == cell->count || cell->runs[*at].seed != seed) return NULL;
  return pl_arm_finished(&cell->runs[*at]) ? &cell->runs[*at] : NULL;
}

void pl_pairs_match(const pl_arm_cell *a, const pl_arm_cell *b, const pl_arm_cell *c, const int64_t *left_out,
                    pl_pairs *p) {
  size_t j = 0, k = 0;
  p->count = 0;
  for (size_t i = 0; i < a->count; i++) {
    int64_t seed = a->runs[i].seed;
    const pl_arm_run *in_b = finished_run(b, &j, seed), *in_c = c ? finished_run(c, &k, seed) : NULL;
    if (!pl_arm_finished(&a->runs[i]) || !in_b || (c && !in_c) || (left_out && *left_out == seed)) continue;
    p->seeds[p->count] = seed;
    p->a[p->count] = a->runs[i].loss;
    p->b[p->count] = in_b->loss;
    if (c) p->c[p->count] = in_c->loss;
    p->count++;
  }
}
