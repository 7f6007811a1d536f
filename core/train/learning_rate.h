/* Learning rate of an update: linear warm-up, then the schedule's factor of the peak. */
#ifndef PL_TRAIN_LEARNING_RATE_H
#define PL_TRAIN_LEARNING_RATE_H

#include "core/config/run_config.h"

/* train.warmup in updates: given as such from 1 on, below 1 a share of the steps; rounded to whole updates, halves up;
 * at most the steps. */
int64_t pl_warmup_updates(const pl_run_config *c);

/* eta_t = peak (t+1)/W for t < W, peak factor(t) afterwards. */
double pl_learning_rate(const pl_run_config *c, int64_t t);

#endif
