/* Rounds of a gather that wait to be read: a ring of arrays. */
#ifndef PL_PIPELINE_ROUNDS_H
#define PL_PIPELINE_ROUNDS_H

#include "core/base/status.h"

typedef struct pl_rounds {
  double *numbers;       /* [window][size] */
  size_t size, window;   /* numbers in a round, rounds at most */
  size_t posted, popped; /* since the start */
} pl_rounds;

/* The caller closes it, also after a failure. */
PL_MUST_CHECK pl_status pl_rounds_open(size_t size, size_t window, pl_rounds *out, pl_err *e);
void pl_rounds_close(pl_rounds *r);

/* A new round: its place in the ring. PL_FAIL when all are taken. */
PL_MUST_CHECK pl_status pl_rounds_post(pl_rounds *r, size_t *place, pl_err *e);
double *pl_rounds_at(const pl_rounds *r, size_t place);

/* The place of the oldest round that was not popped; false when there is none. */
bool pl_rounds_oldest(const pl_rounds *r, size_t *place);
void pl_rounds_pop(pl_rounds *r);

#endif
