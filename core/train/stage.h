/* What one stage owns while it trains. */
#ifndef PL_TRAIN_STAGE_H
#define PL_TRAIN_STAGE_H

#include "core/config/run_config.h"
#include "core/device/device.h"
#include "core/train/correction.h"
#include "core/train/layout.h"
#include "core/train/optimizer.h"
#include "core/train/ring.h"

typedef struct pl_stage {
  pl_device *device;
  const pl_layout *layout; /* the model's */
  int64_t delay;           /* steady, in updates */
  size_t parameters;       /* without tied copies */
  pl_ring ring;
  pl_real *grad;    /* [grad_size] */
  pl_real *u;       /* [size] displacement; free for other uses between updates */
  pl_real *scratch; /* of the optimizer; NULL when it needs none */
  pl_real **state;  /* of the optimizer */
  pl_real **correction_state[PL_MAX_CORRECTIONS];
  /* All arrays that a checkpoint holds, each [size]: weight versions, optimizer state, correction states. The pointers
   * above point into this list. */
  pl_real **kept;
  size_t kept_count;
} pl_stage;

/* Does correction c of the config work on a stage of that steady delay? */
bool pl_correction_active(const pl_run_config *config, size_t c, int64_t delay);

/* Allocates everything for `depth` weight versions. The caller frees, also after a failure. */
PL_MUST_CHECK pl_status pl_stage_create(const pl_run_config *config, pl_device *device, const pl_layout *layout,
                                        int64_t delay, size_t depth, pl_stage *out, pl_err *e);
void pl_stage_free(pl_stage *s);

/* Zeroes every array and sets x_0 from host memory x[size]. */
void pl_stage_start(pl_stage *s, const pl_real *x);

/* Adds the squares of an array of the stage's layout to *sum, segment by segment in their order, without tied copies.
 * Continuing over the stages in order gives the same bits for every number of stages. */
void pl_stage_add_squares(const pl_stage *s, const pl_real *array, double *sum);

#endif
