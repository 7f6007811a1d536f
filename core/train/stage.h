/* What one stage of the model owns while it trains. */
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
  int64_t applied, delayed; /* updates that the optimizer has made, and of those the ones since delay_start */
  pl_real **grads;          /* [grad_count] arrays of [grad_size]; update t of replica d adds to number
                               (t % buffers) * replicas + d */
  size_t grad_count, buffers, replicas;
  pl_real *u;       /* [u_size] displacement; free for other uses between updates */
  size_t u_size;    /* of the layout, or of a stretch where a step needs no more at a time */
  pl_real *scratch; /* of the optimizer; NULL when it needs none */
  pl_real **state;  /* of the optimizer */
  pl_real **correction_state[PL_MAX_CORRECTIONS];
  /* All arrays that a checkpoint holds, each [size]: weight versions, optimizer state, correction states. The pointers
   * above point into this list. */
  pl_real **kept;
  size_t kept_count;
  pl_real **window; /* [kept_count] the same from one element on, of a stretch */
  size_t *spans;    /* [2 * segments] where they begin, then their sizes, 0 for tied copies; NULL where the device sums
                       them one by one */
} pl_stage;

typedef struct pl_stage_args {
  const pl_run_config *config;
  pl_device *device;
  const pl_layout *layout;
  int64_t delay;
  size_t depth;    /* weight versions */
  size_t replicas; /* in this process */
  size_t buffers;  /* 2 when gradients of the next update are added before this one is made, else 1 */
  bool whole_u;    /* u is as long as the layout */
} pl_stage_args;

/* Does correction c of the config work on a stage of that steady delay? */
bool pl_correction_active(const pl_run_config *config, size_t c, int64_t delay);

/* Arrays that its state has there. */
size_t pl_correction_arrays(const pl_run_config *config, size_t c, int64_t delay);

/* Allocates everything; borrows what the arguments point to. The caller frees, also after a failure. */
PL_MUST_CHECK pl_status pl_stage_create(const pl_stage_args *args, pl_stage *out, pl_err *e);
void pl_stage_free(pl_stage *s);

/* Zeroes every array; x_0 is to be written by the caller. */
void pl_stage_start(pl_stage *s);

/* Zeroes the gradients: nothing is in flight. */
void pl_stage_drop_gradients(pl_stage *s);

static inline pl_real *pl_stage_grad(const pl_stage *s, int64_t update, size_t replica) {
  return s->grads[(size_t)update % s->buffers * s->replicas + replica];
}

/* The stage as if it had the one segment alone that is a stretch of n elements of a segment from `at` on. The view and
 * its layout, which the caller gives, are good until the next one is made; what its ring is moved on is not the
 * stage's. */
void pl_stage_view(const pl_stage *s, const pl_segment *segment, size_t at, size_t n, pl_segment *part,
                   pl_layout *layout, pl_stage *view);

/* Does a step of that config go over its arrays by stretches? */
bool pl_stage_stretches(const pl_run_config *config, const pl_device *d);

/* Squared norm of each segment of x - y into out[layout->count]; 0 for tied copies. Uses u. */
void pl_stage_distances(const pl_stage *s, const pl_real *x, const pl_real *y, double *out);

/* Squared norm of n elements: stretches of the device, added in order. */
double pl_stage_square(pl_device *d, size_t n, const pl_real *x);

/* Squared norm of each segment of an array of the stage's layout into out[layout->count]; 0 for tied copies. Added one
 * by one over the stages in order they give the same bits for every number of stages. */
void pl_stage_squares(const pl_stage *s, const pl_real *array, double *out);

#endif
