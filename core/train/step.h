/* The order of one update, fixed here once (docs/delay.md; PipeDream-2BW, arXiv 2006.09503). */
#ifndef PL_TRAIN_STEP_H
#define PL_TRAIN_STEP_H

#include "core/train/counters.h"
#include "core/train/model.h"
#include "core/train/stage.h"

/* What updates work on. Everything is borrowed. */
typedef struct pl_step {
  const pl_run_config *config;
  pl_device *device;
  pl_stage *stages; /* [config->pipeline.stages] */
  bool tied;
  pl_tie tie;
  pl_counters *counters;
} pl_step;

/* Figures of one update. */
typedef struct pl_update {
  double loss;                                   /* in: nats per token */
  bool finite;                                   /* loss and gradient */
  double lr, grad_norm, clip_scale, update_norm; /* update_norm: NaN unless asked for */
} pl_update;

/* Makes update t = counters->step of every stage from the summed gradients, commits version t + 1, zeroes the gradients
 * and counts. A non-finite update is skipped (x_{t+1} = x_t, nothing else changes but t) or, with train.nonfinite
 * "stop", not made at all: then no version is committed and counters->step stays. Measures |v_t| when asked to. */
void pl_step_apply(const pl_step *s, bool measure, pl_update *u);

/* Writes y = x + offset of a stage to its u (x itself where there is none). Returns whether y is defined: of the active
 * corrections the last one, and no other, has an offset. y then follows the displacements that went into that one. */
bool pl_step_y(const pl_step *s, size_t stage);

#endif
