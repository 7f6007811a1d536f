/* Half a cosine from the peak to a share of it. */
#include <math.h>

#include "core/train/lr_schedule.h"

typedef struct config {
  double min;
} config;

static const pl_param params[] = {
    {.name = "min",
     .type = PL_REAL,
     .offset = offsetof(config, min),
     .def = 0.1,
     .min = 0,
     .max = 1,
     .help = "share of the peak that the end approaches"},
    {.type = PL_END},
};

static double factor(const void *section, int64_t t, int64_t warmup, int64_t steps) {
  const config *o = section;
  double done = (double)(t - warmup) / (double)(steps - warmup);
  return o->min + (1 - o->min) * 0.5 * (1 + cos(M_PI * done));
}

const pl_lr_schedule_type pl_lr_schedule_cosine = {
    .base = {.name = "cosine",
             .summary = "half a cosine from the peak to a share of it",
             .source = "Loshchilov and Hutter, arXiv 1608.03983",
             .params = params,
             .config_size = sizeof(config)},
    .factor = factor,
};
