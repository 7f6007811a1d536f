/* Where time goes: a device that passes every operation on to another one and keeps a clock by parts. Every moment
 * between pl_profile_open and pl_profile_stop belongs to exactly one part: the section that the program says it is in,
 * or, in the section `other`, the operation that runs. Results have the same bits as without. */
#ifndef PL_DEVICE_PROFILE_H
#define PL_DEVICE_PROFILE_H

#include "core/device/device.h"

/* Identifier, text. */
#define PL_PROFILE_PARTS(X)                                                                                            \
  X(gemm, "matrix products")                                                                                           \
  X(attention, "attention, rotary embedding")                                                                          \
  X(norms, "norms")                                                                                                    \
  X(activations, "activations")                                                                                        \
  X(embedding_loss, "embedding, loss")                                                                                 \
  X(vectors, "additions, copies")                                                                                      \
  X(optimizer, "optimizer")                                                                                            \
  X(correction, "corrections")                                                                                         \
  X(apply, "new weight version")                                                                                       \
  X(clip, "clip, norms of gradients")                                                                                  \
  X(data, "batches")                                                                                                   \
  X(validation, "validation")                                                                                          \
  X(probe, "probe")                                                                                                    \
  X(checkpoint, "checkpoint")                                                                                          \
  X(log, "log")                                                                                                        \
  X(waiting, "waiting, messages")                                                                                      \
  X(ends, "start, result")                                                                                             \
  X(other, "other")

typedef enum pl_profile_part {
#define PL_PROFILE_ENUM(id, text) PL_PROFILE_##id,
  PL_PROFILE_PARTS(PL_PROFILE_ENUM)
#undef PL_PROFILE_ENUM
      PL_PROFILE_COUNT
} pl_profile_part;

extern const char *const pl_profile_names[PL_PROFILE_COUNT];
extern const char *const pl_profile_texts[PL_PROFILE_COUNT];

typedef struct pl_profile_sum {
  double seconds;
  uint64_t calls; /* of operations, or of the section */
  double flops;   /* multiplications and additions of matrix products and of attention (masked scores do not count) that
                     ran in the part */
} pl_profile_sum;

/* Of one thread of one process. */
typedef struct pl_profile {
  pl_device device; /* what is to be used instead */
  pl_device *inner;
  pl_ops ops;
  pl_profile_part now;
  double since; /* clock */
  pl_profile_sum sum[PL_PROFILE_COUNT];
} pl_profile;

/* Begins in the section `ends`. Borrows `inner`; nothing is allocated, nothing is to be released. */
void pl_profile_open(pl_profile *p, pl_device *inner);
void pl_profile_stop(pl_profile *p); /* no section may be entered any more */

double pl_profile_seconds(const pl_profile *p); /* of all parts */

void pl_profile_switch(pl_profile *p, pl_profile_part part);

/* Around a section; they nest. Does nothing on a device that does not measure. Returns what is given to leave. */
static inline pl_profile_part pl_profile_enter(const pl_device *d, pl_profile_part section) {
  if (!d->profile) return section;
  const pl_profile_part before = d->profile->now;
  pl_profile_switch(d->profile, section);
  d->profile->sum[section].calls++;
  return before;
}

static inline void pl_profile_leave(const pl_device *d, pl_profile_part before) {
  if (d->profile) pl_profile_switch(d->profile, before);
}

#endif
