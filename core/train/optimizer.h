/* Optimizers: gradient in, displacement out; they never touch the weights, so any delay and any correction composes
 * with any optimizer. */
#ifndef PL_TRAIN_OPTIMIZER_H
#define PL_TRAIN_OPTIMIZER_H

#include "core/config/registry.h"
#include "core/device/device.h"
#include "core/train/layout.h"

/* One stage's call. All arrays are device memory of layout->size elements. */
typedef struct pl_optimizer_call {
  pl_device *device;
  const pl_layout *layout;
  int64_t t;        /* updates that the optimizer has made before this one; the first has t = 0 */
  double lr;        /* eta_t */
  const pl_real *x; /* x_t, the newest weights */
  const pl_real *g; /* the gradient after clipping (and after l2 decay) */
  pl_real **state;  /* state_arrays arrays, zero at t = 0, checkpointed by the caller */
  pl_real *scratch; /* scratch_size elements, overwritten freely */
  pl_real *u;       /* out: the displacement, learning rate included, decoupled weight decay not */
} pl_optimizer_call;

typedef struct pl_optimizer_type {
  pl_component base; /* the config struct starts with `double lr`, the peak learning rate */
  bool elementwise;  /* works on each element by itself, by the same rule: it may be called for a stretch of a stage */
  size_t state_arrays;
  size_t (*scratch_size)(const void *config, const pl_layout *layout); /* NULL: none */
  void (*displace)(const void *config, const pl_optimizer_call *c);
  /* Factor of a segment's learning rate (displacement and decay) against `lr`; NULL means 1. */
  double (*lr_scale)(const void *config, const pl_segment *segment);
  /* The rule that a segment takes ("muon", "adamw"), for the table that is printed; NULL means the optimizer's own
   * name. */
  const char *(*rule)(const void *config, const pl_segment *segment);
} pl_optimizer_type;

#endif
