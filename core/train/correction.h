/* Corrections of delay. Identity at delay 0: the caller does not call them there, unless `at_zero` says so. */
#ifndef PL_TRAIN_CORRECTION_H
#define PL_TRAIN_CORRECTION_H

#include "core/config/registry.h"
#include "core/device/device.h"

/* One stage's call on the displacement (n elements, device memory), or on a stretch of it: a correction works on each
 * element by itself. */
typedef struct pl_correction_call {
  pl_device *device;
  size_t n;
  int64_t k;       /* steady delay of the stage in updates, also during the ramp */
  int64_t calls;   /* calls of this stage's correction before this one, since training or delay_start began */
  pl_real **state; /* state_arrays(k) arrays, zero at the first call, checkpointed by the caller */
  pl_real *v;      /* in: u_t or what the chain made of it; out: the corrected displacement */
} pl_correction_call;

typedef struct pl_correction_type {
  pl_component base;
  size_t (*state_arrays)(const void *config, int64_t k);
  void (*displace)(const void *config, const pl_correction_call *c);
  bool (*at_zero)(const void *config); /* stays on at delay 0; NULL means no */
  /* Point y that the corrected iteration follows: y = x + offset, for runs that log val/loss_y. Writes the offset (zero
   * before the first call); NULL means that there is none. `calls` counts all calls made. */
  void (*offset)(const void *config, const pl_correction_call *c, pl_real *out);
} pl_correction_type;

#endif
