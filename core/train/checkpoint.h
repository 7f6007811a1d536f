/* Checkpoints of one run in a folder of its own, step-NNNNNNNNNN.ckpt: header, arrays of every stage, checksum. The
 * newest two are kept. */
#ifndef PL_TRAIN_CHECKPOINT_H
#define PL_TRAIN_CHECKPOINT_H

#include "core/train/counters.h"
#include "core/train/log_sink.h"
#include "core/train/stage.h"

typedef struct pl_checkpoints {
  const char *folder; /* NULL: no checkpoints, saving does nothing */
  uint64_t run_id;
  pl_device *device;
  pl_stage *stages;
  size_t stage_count;
  pl_real *staging;       /* host, one array */
  char *path, *temporary; /* of the file being written or read */
  size_t path_size;
  bool (*owned)(void *self); /* set by the caller, see pl_trainer_args; NULL: always */
  void *owned_self;
  int64_t last; /* step of the latest good one: written or resumed from by this attempt; -1: none */
} pl_checkpoints;

/* Borrows everything. The caller closes, also after a failure. */
PL_MUST_CHECK pl_status pl_checkpoints_open(const pl_run_config *config, pl_device *device, pl_stage *stages,
                                            size_t count, const char *folder, pl_checkpoints *out, pl_err *e);
void pl_checkpoints_close(pl_checkpoints *c);

/* Step of the newest checkpoint file in a folder, whole or not; -1 when there is none. */
int64_t pl_checkpoints_newest(const char *folder);

/* Writes the state after counters->step updates: log synced, file written and fsynced under another name, renamed,
 * older ones removed, sink told. Does nothing when the latest good one is of this step already, which keeps the one
 * before it. PL_FAIL when it cannot be written or is not owned; those before it are then untouched. `sink` may be NULL.
 */
PL_MUST_CHECK pl_status pl_checkpoints_save(pl_checkpoints *c, const pl_counters *counters, pl_log_sink *sink,
                                            pl_err *e);

/* Restores the newest checkpoint that is whole, belongs to this run and whose log is still there. For each one passed
 * over, `say` gets the reason. *found = false: there is none, and arrays and counters are to be started afresh. Files
 * half written by a killed process are removed. PL_FAIL when the folder cannot be read. */
PL_MUST_CHECK pl_status pl_checkpoints_resume(pl_checkpoints *c, pl_counters *counters, pl_log_sink *sink,
                                              void (*say)(void *self, const char *line), void *say_self, bool *found,
                                              pl_err *e);

#endif
