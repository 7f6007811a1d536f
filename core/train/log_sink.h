/* Where a run's figures go: one point per update. */
#ifndef PL_TRAIN_LOG_SINK_H
#define PL_TRAIN_LOG_SINK_H

#include <stdint.h>

#include "core/base/status.h"

/* The series of a run: identifier, name in the curves, unit ("": a plain number), what it is. NaN = not measured at
 * this step. Journals of older builds have the first few of them: new ones go to the end. */
#define PL_SERIES(X)                                                                                                   \
  X(train_loss, "train/loss", "nats/token", "loss of the update's batch, at the weights it was evaluated on")          \
  X(val_loss, "val/loss", "nats/token", "loss of the fixed validation set at x_step")                                  \
  X(lr, "lr", "", "learning rate of the update")                                                                       \
  X(grad_norm, "train/grad_norm", "", "norm of the gradient before clipping, over all stages")                         \
  X(clip_scale, "train/clip_scale", "", "factor that clipping applied, the smallest over stages")                      \
  X(update_norm, "update_norm", "", "norm of v_t, the displacement after corrections, without decay")                  \
  X(weight_norm, "weight_norm", "", "norm of x_step, at validations")                                                  \
  X(delay, "delay", "updates", "measured: newest version minus version read, the largest over stages")                 \
  X(delay_mean, "delay_mean", "updates", "measured delay, mean over parameters")                                       \
  X(val_loss_y, "val/loss_y", "nats/token", "validation loss at y, once at the end, with corrections that define it")  \
  X(seconds, "seconds", "s", "wall time of this attempt")                                                              \
  X(bubble, "bubble", "", "share of the processes' time since the last point in which they did not compute")           \
  X(drift, "drift", "", "|x_t - x_s| / |x_t|: how far the weights went since the update's gradient read them")         \
  X(displacement_ratio, "displacement_ratio", "", "|v_t| / |u_t|: the displacement after corrections over before")     \
  X(gradient_cos, "gradient_cos", "", "cosine of the update's gradient and that of its batch at the newest weights")

typedef enum pl_series {
#define PL_SERIES_ENUM(id, name, unit, text) PL_SERIES_##id,
  PL_SERIES(PL_SERIES_ENUM)
#undef PL_SERIES_ENUM
      PL_SERIES_COUNT
} pl_series;

extern const char *const pl_series_names[PL_SERIES_COUNT];
extern const char *const pl_series_units[PL_SERIES_COUNT];
extern const char *const pl_series_texts[PL_SERIES_COUNT];

/* Point s holds what is known after s updates: val_loss and weight_norm at x_s; train_loss, lr, ... of update s-1
 * (which made x_s). Point 0 has the initial validation loss alone. */
typedef struct pl_point {
  int64_t step, tokens;
  double values[PL_SERIES_COUNT];
} pl_point;

/* What a stage spent its time on since its previous record: computing, inside the transport, waiting; in seconds. The
 * sum is the time between the two records. */
typedef struct pl_stage_times {
  double busy, communication, idle;
} pl_stage_times;

typedef struct pl_log_sink {
  void *self;
  pl_status (*write)(void *self, const pl_point *p, pl_err *e);
  /* At the logged steps of a run with more than one stage over more than one process; times[stages], replica by
   * replica: `stages` is replicas * stages of the pipeline. NULL: not wanted. */
  pl_status (*times)(void *self, int64_t step, size_t stages, const pl_stage_times *times, pl_err *e);
  /* Makes everything written durable and gives the log's length in bytes, to be stored in a checkpoint. */
  pl_status (*sync)(void *self, uint64_t *length, pl_err *e);
  /* Length of the log in bytes as found at start, for choosing the checkpoint to resume from. */
  uint64_t (*length)(void *self);
  /* Called after a checkpoint was published; NULL means nothing to do. */
  pl_status (*checkpointed)(void *self, pl_err *e);
} pl_log_sink;

#endif
