/* How many tasks of each array may run at once, so that all arrays of a directory together keep to one limit. */
#ifndef PL_RUNNERS_SLURM_THROTTLE_H
#define PL_RUNNERS_SLURM_THROTTLE_H

#include <stdint.h>

#include "core/base/status.h"

typedef struct pl_throttled {
  int64_t tasks;    /* that have not ended */
  int64_t pack;     /* runs of one task */
  int64_t throttle; /* tasks that may run at once; 0: all */
  bool *after;      /* [count]: this one waits until those earlier arrays have ended; owned by the caller */
} pl_throttled;

/* Gives the arrays from `first` on their throttle and `after` (cleared before), so that never more than `limit` runs
 * run at once: free slots are shared in proportion to the arrays' tasks, at least one each; an array without a slot
 * waits for earlier ones. Arrays before `first` are in the queue already: theirs is input and is not changed. limit 0
 * means no limit; no pack may be larger than the limit. */
PL_MUST_CHECK pl_status pl_throttle_share(int64_t limit, pl_throttled *arrays, size_t first, size_t count, pl_err *e);

/* The most runs that these arrays can have running at the same time. */
PL_MUST_CHECK pl_status pl_throttle_peak(const pl_throttled *arrays, size_t count, int64_t *out, pl_err *e);

#endif
