#include "core/train/learning_rate.h"

#include <math.h>

#include "core/train/lr_schedule.h"

int64_t pl_warmup_updates(const pl_run_config *c) {
  double steps = (double)c->train.steps, w = c->train.warmup >= 1 ? c->train.warmup : c->train.warmup * steps;
  return w < steps ? (int64_t)llround(w) : c->train.steps;
}

double pl_learning_rate(const pl_run_config *c, int64_t t) {
  const pl_lr_schedule_type *schedule = (const pl_lr_schedule_type *)c->lr_schedule.type;
  int64_t warmup = pl_warmup_updates(c);
  double peak = pl_run_config_lr(c);
  if (t < warmup) return peak * (double)(t + 1) / (double)warmup;
  return peak * schedule->factor(c->lr_schedule.config, t, warmup, c->train.steps);
}
