/* Learning-rate schedules: the factor of the peak after warm-up. Warm-up itself is the trainer's: (t+1)/W for t < W. */
#ifndef PL_TRAIN_LR_SCHEDULE_H
#define PL_TRAIN_LR_SCHEDULE_H

#include <stdint.h>

#include "core/config/registry.h"

typedef struct pl_lr_schedule_type {
  pl_component base;
  /* Factor at update t, warmup <= t < steps. */
  double (*factor)(const void *config, int64_t t, int64_t warmup, int64_t steps);
} pl_lr_schedule_type;

#endif
