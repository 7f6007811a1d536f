/* No decay after warm-up. */
#include "core/train/lr_schedule.h"

static const pl_param params[] = {{.type = PL_END}};

static double factor(const void *section, int64_t t, int64_t warmup, int64_t steps) {
  (void)section;
  (void)t;
  (void)warmup;
  (void)steps;
  return 1;
}

const pl_lr_schedule_type pl_lr_schedule_constant = {
    .base = {.name = "constant", .summary = "the peak after warm-up", .source = "pipelag", .params = params},
    .factor = factor,
};
