/* Runs of two or three arms matched by seed. */
#ifndef PL_ANALYSIS_PAIRS_H
#define PL_ANALYSIS_PAIRS_H

#include "analysis/arms.h"

/* Losses of the seeds that finished everywhere, ascending. */
typedef struct pl_pairs {
  int64_t *seeds;
  double *a, *b, *c;
  size_t count;
} pl_pairs;

/* Room for `most` seeds. */
PL_MUST_CHECK pl_status pl_pairs_alloc(size_t most, pl_pairs *out, pl_err *e);
void pl_pairs_free(pl_pairs *p);

/* c may be NULL; left_out (a seed, or NULL) takes no part. */
void pl_pairs_match(const pl_arm_cell *a, const pl_arm_cell *b, const pl_arm_cell *c, const int64_t *left_out,
                    pl_pairs *p);

#endif
