/* What can be found wrong before any run starts: data that is missing, damaged, too short or does not fit the model; a
 * custom schedule that does not work. */
#ifndef PL_RUNNERS_PREFLIGHT_H
#define PL_RUNNERS_PREFLIGHT_H

#include "core/config/run_config.h"
#include "core/train/dataset.h"

/* Remembers what was already opened, so that a sweep opens each corpus once. Zero-initialise; released by
 * pl_preflight_free. */
typedef struct pl_preflight {
  const char *data_root; /* borrowed */
  struct pl_preflight_data {
    uint64_t key;
    size_t vocab;
  } * data;
  size_t count, capacity;
} pl_preflight;

/* Checks one run. *cost is an estimate of its work in floating-point operations, for order and remaining time. */
PL_MUST_CHECK pl_status pl_preflight_run(pl_preflight *p, const pl_run_config *c, double *cost, pl_err *e);
void pl_preflight_free(pl_preflight *p);

/* Opens the run's dataset; NULL for types without tokens. Messages start with the key. Closed by the dataset type. */
PL_MUST_CHECK pl_status pl_data_open(const pl_run_config *c, const char *data_root, size_t context, pl_dataset **out,
                                     pl_err *e);

/* The folder that relative data paths start from: `option` (--data-root), else PIPELAG_DATA, else the folder of the
 * sweep file. Released by pl_free. */
PL_MUST_CHECK pl_status pl_data_root(const char *option, const char *sweep_path, char **out, pl_err *e);

#endif
