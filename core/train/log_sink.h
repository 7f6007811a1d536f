/* Where a run's figures go: one point per update. */
#ifndef PL_TRAIN_LOG_SINK_H
#define PL_TRAIN_LOG_SINK_H

#include <stdint.h>

#include "core/base/status.h"

/* The series of a run. The names are those of the curves: train/loss, val/loss, ... NaN = not measured at this step. */
#define PL_SERIES(X)                                                                                                   \
  X(train_loss, "train/loss") /* nats per token of the update's batch, at the weights it was evaluated on */           \
  X(val_loss, "val/loss")     /* nats per token of the fixed validation set at x_step */                               \
  X(lr, "lr")                                                                                                          \
  X(grad_norm, "train/grad_norm")   /* before clipping */                                                              \
  X(clip_scale, "train/clip_scale") /* factor that clipping applied; the smallest over stages */                       \
  X(update_norm, "update_norm")     /* |v_t| */                                                                        \
  X(weight_norm, "weight_norm")     /* |x_{t+1}|, at validation steps */                                               \
  X(delay, "delay")                 /* measured, newest version minus version read: the largest over stages */         \
  X(delay_mean, "delay_mean")       /* mean over parameters */                                                         \
  X(val_loss_y, "val/loss_y")       /* at y, once at the end, with corrections that define it */                       \
  X(seconds, "seconds")             /* wall time of this attempt */

typedef enum pl_series {
#define PL_SERIES_ENUM(id, name) PL_SERIES_##id,
  PL_SERIES(PL_SERIES_ENUM)
#undef PL_SERIES_ENUM
      PL_SERIES_COUNT
} pl_series;

extern const char *const pl_series_names[PL_SERIES_COUNT];

/* Point s holds what is known after s updates: val_loss and weight_norm at x_s; train_loss, lr, ... of update s-1
 * (which made x_s). Point 0 has the initial validation loss alone. */
typedef struct pl_point {
  int64_t step, tokens;
  double values[PL_SERIES_COUNT];
} pl_point;

typedef struct pl_log_sink {
  void *self;
  pl_status (*write)(void *self, const pl_point *p, pl_err *e);
  /* Makes everything written durable and gives the log's length in bytes, to be stored in a checkpoint. */
  pl_status (*sync)(void *self, uint64_t *length, pl_err *e);
  /* Length of the log in bytes as found at start, for choosing the checkpoint to resume from. */
  uint64_t (*length)(void *self);
  /* Called after a checkpoint was published; NULL means nothing to do. */
  pl_status (*checkpointed)(void *self, pl_err *e);
} pl_log_sink;

#endif
