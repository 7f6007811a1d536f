/* The weight versions of one stage: the newest and as many before it as its schedule reads. */
#ifndef PL_TRAIN_RING_H
#define PL_TRAIN_RING_H

#include <stdint.h>

#include "core/base/real.h"
#include "core/base/status.h"

typedef struct pl_ring {
  pl_real **slots; /* [depth] device arrays; version v lies in slot v mod depth; borrowed */
  size_t depth;
  int64_t newest; /* version after that many updates */
  int64_t start;  /* delay_start S: until version S only the newest is read */
} pl_ring;

/* What is `lag` updates older than version `newest`, but not older than the training or the start of the delay:
 * max(newest - lag, min(newest, S)). lag < depth. A schedule may be ahead of the ring: then the version may not be
 * there yet. */
static inline int64_t pl_ring_version(const pl_ring *r, int64_t newest, int64_t lag) {
  int64_t base = newest < r->start ? newest : r->start;
  return newest - lag > base ? newest - lag : base;
}

static inline pl_real *pl_ring_at(const pl_ring *r, int64_t version) { return r->slots[(size_t)version % r->depth]; }

static inline pl_real *pl_ring_newest(const pl_ring *r) { return pl_ring_at(r, r->newest); }

/* Where the next version is written; it takes the place of the oldest (of the newest itself when depth is 1). */
static inline pl_real *pl_ring_next(const pl_ring *r) { return pl_ring_at(r, r->newest + 1); }

static inline void pl_ring_commit(pl_ring *r) { r->newest++; }

#endif
