/* The batch of every update, cut into the microbatches of all replicas, in device memory. Which windows it has depends
 * on (data seed, update) only. */
#ifndef PL_TRAIN_BATCH_H
#define PL_TRAIN_BATCH_H

#include "core/config/run_config.h"
#include "core/device/device.h"
#include "core/train/dataset.h"
#include "core/train/model.h"

/* Sequences of microbatch j of m: as even as possible, the first ones one more. */
size_t pl_microbatch_sequences(size_t sequences, size_t microbatches, size_t j);

typedef struct pl_batches {
  pl_device *device;
  const pl_dataset_type *type;
  const pl_dataset *dataset; /* NULL: the model reads no tokens */
  uint64_t data_seed;
  size_t sequences, context, microbatches;
  size_t depth;              /* updates whose batches are held at the same time */
  int64_t *held;             /* [depth] update whose batch lies there; -1: none */
  pl_batch *batches;         /* [depth * microbatches] */
  int32_t *tokens;           /* device [depth * 2 * sequences * context]: tokens, then targets */
  int32_t *staging, *window; /* host: one batch, one window */
} pl_batches;

/* Borrows the config's data, the device and the dataset. The caller frees, also after a failure. */
PL_MUST_CHECK pl_status pl_batches_create(const pl_run_config *config, const pl_model_shape *shape, pl_device *device,
                                          const pl_dataset_type *type, const pl_dataset *dataset, size_t depth,
                                          pl_batches *out, pl_err *e);
void pl_batches_free(pl_batches *b);

/* The microbatch of an update, replica after replica; valid until the update `depth` later is asked for. */
const pl_batch *pl_batches_get(pl_batches *b, int64_t update, size_t microbatch);

/* Splits a window of context + 1 tokens into inputs and targets. */
void pl_window_split(const int32_t *window, size_t context, int32_t *tokens, int32_t *targets);

#endif
