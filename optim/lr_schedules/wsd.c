/* Warm-up, stable, decay: the peak, then a straight line over the last updates. */
#include <math.h>

#include "core/train/lr_schedule.h"

typedef struct config {
  double decay, min;
} config;

static const pl_param params[] = {
    {.name = "decay",
     .type = PL_REAL,
     .offset = offsetof(config, decay),
     .def = 0.2,
     .min = 0,
     .max = 1,
     .help = "share of all updates over which it decays, at the end"},
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
  double decaying = fmin(o->decay * (double)steps, (double)(steps - warmup)), left = (double)(steps - t);
  return left >= decaying ? 1 : o->min + (1 - o->min) * left / decaying;
}

const pl_lr_schedule_type pl_lr_schedule_wsd = {
    .base = {.name = "wsd",
             .summary = "stable at the peak, then a straight line down",
             .source = "Hu et al., MiniCPM, arXiv 2404.06395",
             .params = params,
             .config_size = sizeof(config)},
    .factor = factor,
};
