/* The order of one update, fixed here once (docs/delay.md; PipeDream-2BW, arXiv 2006.09503): what is decided from the
 * norms of all stages, and what each stage then does by itself. */
#ifndef PL_TRAIN_STEP_H
#define PL_TRAIN_STEP_H

#include "core/train/stage.h"

/* What holds for one update of one stage, or of all of them. */
typedef struct pl_decision {
  bool finite;
  double loss; /* nats per token; NaN when it is not known */
  double grad_norm, clip_scale, lr;
  double tied_scale; /* the clip_scale of a tied copy: that of its original's stage, so that both keep the same bits */
  double delay, delay_mean; /* measured: the largest over stages, the mean over parameters */
  double drift;             /* |x_t - x_s| / |x_t|, x_s the weights that the gradient read; NaN: not measured */
  double cosine;            /* of the gradient and that of its batch at x_t; NaN: not measured */
} pl_decision;

/* g *= min(1, C / (|g| + 1e-6)); 1 when nothing is clipped. */
double pl_clip_factor(double clip, double norm);

/* Both uses of a tied matrix get the sum of the two gradients, always added as head + embedding; count elements each,
 * which may not overlap. */
void pl_step_sum_tied(pl_device *device, size_t count, pl_real *head, pl_real *embedding);

/* Makes update t = ring.newest of a stage from its gradient, commits version t + 1, zeroes the gradient (of replica 0)
 * and counts. A decision that is not finite makes x_{t+1} = x_t and changes nothing else. before, after: NULL, or
 * [layout->count] zeros for the squared norms of u_t and v_t by segment. */
void pl_step_apply(const pl_run_config *config, pl_stage *stage, const pl_decision *d, double *before, double *after);

/* Does the stage have a y = x + offset: of the active corrections the last one, and no other, has an offset. y then
 * follows the displacements that went into that one. */
bool pl_step_has_y(const pl_run_config *config, const pl_stage *stage);

/* Writes y to the stage's u; x itself where there is none. */
void pl_step_y(const pl_run_config *config, pl_stage *stage);

#endif
