/* Validation: one mean over all tokens of the fixed set, at any weights, batch by batch and stage by stage. */
#ifndef PL_TRAIN_EVALUATE_H
#define PL_TRAIN_EVALUATE_H

#include "core/config/run_config.h"
#include "core/device/device.h"
#include "core/train/dataset.h"
#include "core/train/model.h"

typedef struct pl_evaluation {
  pl_device *device;
  const pl_model_type *model_type;
  pl_model *model;
  size_t stages;
  const pl_dataset_type *type;
  const pl_dataset *dataset; /* NULL: the model reads no tokens; it is asked once, for one sample without noise */
  size_t sequences, context; /* windows of a batch */
  size_t windows, batches;
  size_t loaded;             /* the batch that is in `tokens`; SIZE_MAX: none */
  int32_t *tokens;           /* device [2 * sequences * context] */
  int32_t *staging, *window; /* host */
  void *tape;                /* for the stage that needs most; used during a pass alone */
  size_t tape_bytes;
} pl_evaluation;

/* Batches are as large as the largest microbatch, `sequences`, so that the model's memory serves both: the number of
 * stages does not change a bit of the loss, the number of microbatches changes its rounding (about 1e-15 relative by
 * the order of the double sums, float rounding where the BLAS takes another kernel for the shape). Borrows. The caller
 * frees, also after a failure. */
PL_MUST_CHECK pl_status pl_evaluation_create(const pl_model_shape *shape, const pl_model_type *model_type,
                                             pl_model *model, size_t stages, size_t sequences, pl_device *device,
                                             const pl_dataset_type *type, const pl_dataset *dataset, pl_evaluation *out,
                                             pl_err *e);
void pl_evaluation_free(pl_evaluation *v);

/* Passes batch i through one stage at `weights`: `in` is what the stage before made of it (NULL for the first), `out`
 * goes to the next (NULL for the last). Returns the sum of its losses in the last stage, 0 elsewhere. */
double pl_evaluation_pass(pl_evaluation *v, size_t stage, const pl_real *weights, size_t i, const pl_real *in,
                          pl_real *out);

/* Nats per token of the sum over all batches, added in their order. */
double pl_evaluation_mean(const pl_evaluation *v, double sum);

#endif
