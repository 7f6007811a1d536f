/* Datasets: windows of tokens. Which window a batch takes depends on (data seed, step, index) only. */
#ifndef PL_TRAIN_DATASET_H
#define PL_TRAIN_DATASET_H

#include "core/config/registry.h"

typedef struct pl_dataset pl_dataset; /* private to each implementation */

typedef struct pl_dataset_type {
  pl_component base;
  bool has_tokens; /* false: for models that draw their own data; the functions below are then NULL */
  /* Opens and fully checks the files (relative paths are taken from `root`). Windows have context + 1 tokens. PL_BAD
   * for missing files, bad headers, too little text for one window in either split. */
  pl_status (*open)(const void *config, const char *root, size_t context, int64_t val_tokens, pl_dataset **out,
                    pl_err *e);
  void (*close)(pl_dataset *d);
  size_t (*vocab)(const pl_dataset *d);
  uint64_t (*fingerprint)(const pl_dataset *d); /* hash of the content, recorded per attempt */
  double (*loss_floor)(const pl_dataset *d);    /* entropy in nats per token when known, else NaN */
  /* Writes the context + 1 tokens of training window `index` of batch `step` (host memory). */
  void (*train_window)(const pl_dataset *d, uint64_t data_seed, int64_t step, size_t index, int32_t *out);
  size_t (*val_windows)(const pl_dataset *d); /* val_tokens / context */
  void (*val_window)(const pl_dataset *d, size_t index, int32_t *out);
} pl_dataset_type;

#endif
