/* A straight line from the peak to a share of it. */
#include "core/train/lr_schedule.h"

typedef struct config {
  double min;
} config;

static const pl_param params[] = {
    {.name = "min",
     .type = PL_REAL,
     .offset = offsetof(config, min),
     .def = 0,
     .min = 0,
     .max = 1,
     .help = "share of the peak that the end approaches"},
    {.type = PL_END},
};

static double factor(const void *section, int64_t t, int64_t warmup, int64_t steps) {
  const config *o = section;
  double left = (double)(steps - t) / (double)(steps - warmup);
  return o->min + (1 - o->min) * left;
}

const pl_lr_schedule_type pl_lr_schedule_linear = {
    .base = {.name = "linear",
             .summary = "a straight line from the peak to a share of it",
             .source = "common practice",
             .params = params,
             .config_size = sizeof(config)},
    .factor = factor,
};
