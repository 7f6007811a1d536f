/* The files of checkpoints: names and contents, for core/train/checkpoint.c and for tools that convert them. */
#ifndef PL_TRAIN_CHECKPOINT_FILES_H
#define PL_TRAIN_CHECKPOINT_FILES_H

#include "core/train/counters.h"
#include "core/train/stage.h"

enum { PL_CHECKPOINT_FORMAT = 2, PL_CHECKPOINT_NAME = 48 };

/* Members of 8 bytes only, so that there is no padding. Behind it: the checksum of each stage's file, then one of
 * everything before it. */
typedef struct pl_manifest_header {
  char magic[8]; /* "plckpt\n" */
  uint64_t format, real_size, run_id, log_length, stages;
  pl_counters counters;
} pl_manifest_header;

/* Behind it: the stage's kept arrays, then a checksum of everything before it. */
typedef struct pl_stage_header {
  char magic[8];                                                   /* "plstage" */
  uint64_t format, real_size, run_id, stage, stages, arrays, size; /* elements of each array */
  int64_t step, applied, delayed;
} pl_stage_header;

/* "step-0000000012.ckpt", or with a stage below SIZE_MAX "step-0000000012.stage-003.ckpt". */
void pl_checkpoint_name(int64_t step, size_t stage, char name[PL_CHECKPOINT_NAME]);

/* The step of a manifest's name, or -1; *any: of any file of a step, also one under a temporary name. */
int64_t pl_checkpoint_step(const char *name, int64_t *any);

/* Writes and fsyncs. `staging` has room for one array, or is NULL where the stage's arrays are on the host. */
PL_MUST_CHECK pl_status pl_stage_file_write(const char *path, const pl_stage_header *h, const pl_stage *stage,
                                            pl_real *staging, uint64_t *checksum, pl_err *e);
/* The header of a file; PL_FAIL when the file is not of this version and precision or not as long as it says. */
PL_MUST_CHECK pl_status pl_stage_file_look(const char *path, pl_stage_header *h, pl_err *e);
/* Into the stage's arrays; PL_FAIL for a file that is not whole or not what the header says. `stage` NULL: the file is
 * only checked, by way of `staging`. */
PL_MUST_CHECK pl_status pl_stage_file_read(const char *path, const pl_stage_header *wanted, uint64_t checksum,
                                           pl_stage *stage, pl_real *staging, pl_err *e);

/* The manifest as bytes, and back: PL_FAIL when they are not whole or not of this version and precision; *checksums
 * points into the bytes. */
void pl_manifest_pack(const pl_manifest_header *h, const uint64_t *checksums, pl_str *out);
PL_MUST_CHECK pl_status pl_manifest_unpack(const pl_str *bytes, const char *path, pl_manifest_header *h,
                                           const uint64_t **checksums, pl_err *e);

#endif
