/* Why delay costs what it costs: the series about it, over the second half of the runs. */
#ifndef PL_ANALYSIS_MECHANISM_H
#define PL_ANALYSIS_MECHANISM_H

#include "analysis/arms.h"
#include "analysis/stats.h"

typedef enum pl_mechanism {
  PL_MECHANISM_DRIFT,        /* |x_t - x_s| / |x_t|, series drift */
  PL_MECHANISM_DISPLACEMENT, /* |v_t| / |u_t|, series displacement_ratio */
  PL_MECHANISM_COSINE,       /* of the stale and the fresh gradient, series gradient_cos */
  PL_MECHANISM_CLIPPED,      /* share of the logged updates that were clipped */
  PL_MECHANISMS
} pl_mechanism;

/* A run's value is the mean over its logged points after train.steps / 2. */
typedef struct pl_mechanism_row {
  const pl_arm *arm;             /* at its own best learning rate */
  size_t runs;                   /* that finished and have a curve */
  pl_estimate of[PL_MECHANISMS]; /* over the runs that have a value; n = 0: none has */
} pl_mechanism_row;

typedef struct pl_mechanism_table {
  pl_mechanism_row *rows;
  size_t count;
  bool logged[PL_MECHANISMS]; /* in any row */
} pl_mechanism_table;

/* Reads the journals of the finished runs at the best learning rates; the seed that chose takes no part. Arms of which
 * only the clipping was logged have no row. */
PL_MUST_CHECK pl_status pl_mechanism_compute(const pl_arms *arms, pl_mechanism_table *out, pl_err *e);
void pl_mechanism_free(pl_mechanism_table *t);

#endif
