/* meta.json: where a run's numbers come from. */
#ifndef PL_RESULTS_PROVENANCE_H
#define PL_RESULTS_PROVENANCE_H

#include "core/base/hash.h"
#include "core/config/run_config.h"

/* What is the same for all attempts of a process and its children. */
typedef struct pl_origin {
  char binary[PL_ID_SIZE]; /* hash of the program's file; "" when unknown, as the others */
  char host[256], cpu[128];
} pl_origin;

void pl_origin_read(pl_origin *out);

/* What the caller knows about this attempt. */
typedef struct pl_attempt {
  int64_t attempt, start_step;
  const char *device_kernel;
  uint64_t data_fingerprint;
  int threads;
  const pl_origin *origin; /* NULL: it is read */
  const char *note; /* how its program differs from the one that was submitted, which ends the mark too; NULL: not */
} pl_attempt;

/* Appends this attempt (time, host, CPU model, kernel, threads, BLAS, data fingerprint, version, git commit and diff
 * hash of the build, binary hash, environment PIPELAG_*, OPENBLAS_*, SLURM_*, CUDA_VISIBLE_DEVICES) to meta.json by
 * atomic replacement; a first meta.json does not wait for the disk: pl_path_sync. *difference is set to a sentence,
 * released by pl_free, when this attempt differs from the previous one in anything that can change bits, else NULL; the
 * run then loses its "bitwise" mark. */
PL_MUST_CHECK pl_status pl_provenance_add(const char *run_folder, const pl_attempt *a, char **difference, pl_err *e);

#endif
