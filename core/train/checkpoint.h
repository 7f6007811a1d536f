/* Checkpoints of one run in a folder of its own: step-NNNNNNNNNN.stage-SSS.ckpt, a file for each stage of the model
 * with its arrays at its own boundary, and step-NNNNNNNNNN.ckpt, the manifest, which is written last and makes the
 * step's files count: counters, length of the log, the stages' checksums. The newest two steps are kept. */
#ifndef PL_TRAIN_CHECKPOINT_H
#define PL_TRAIN_CHECKPOINT_H

#include "core/pipeline/world.h"
#include "core/train/counters.h"
#include "core/train/log_sink.h"
#include "core/train/stage.h"

typedef struct pl_checkpoints {
  const char *folder; /* NULL: no checkpoints, saving does nothing */
  uint64_t run_id;
  pl_stage *stages; /* [stage_count] of the model; those of other processes have no device */
  size_t stage_count;
  pl_real *staging;       /* host, one array; NULL where the arrays are on the host */
  char *path, *temporary; /* of the file being written or read */
  size_t path_size;
  bool (*owned)(void *self); /* set by the caller, see pl_trainer_args; NULL: always */
  void *owned_self;
  int64_t last;    /* step of the latest good one: published or resumed from by this attempt; -1: none */
  bool reads_only; /* set by the caller: resuming leaves the folder as it is, the run may be another process's */
} pl_checkpoints;

/* Borrows everything. The caller closes, also after a failure. */
PL_MUST_CHECK pl_status pl_checkpoints_open(const pl_run_config *config, pl_stage *stages, size_t count,
                                            const char *folder, pl_checkpoints *out, pl_err *e);
void pl_checkpoints_close(pl_checkpoints *c);

/* Step of the newest manifest in a folder, whole or not; -1 when there is none, also no folder. */
int64_t pl_checkpoints_newest(const char *folder);

/* The same of the steps below `bound`; PL_FAIL when the folder cannot be read. */
PL_MUST_CHECK pl_status pl_checkpoints_below(const char *folder, int64_t bound, int64_t *step, pl_err *e);

/* Writes the file of a stage of this process for step ring.newest: written and fsynced under another name, renamed.
 * PL_FAIL when it cannot be written or the run is not owned. *checksum is for the manifest. */
PL_MUST_CHECK pl_status pl_checkpoints_write(pl_checkpoints *c, size_t stage, uint64_t *checksum, pl_err *e);

/* The manifest of step counters->step, once every stage's file is there: log synced, written, renamed, older steps
 * removed, sink told. By one process. Does nothing when the latest good one is of this step already. PL_FAIL when it
 * cannot be written or the run is not owned; those before it are then untouched. `sink` may be NULL. */
PL_MUST_CHECK pl_status pl_checkpoints_publish(pl_checkpoints *c, const pl_counters *counters,
                                               const uint64_t *checksums, pl_log_sink *sink, pl_err *e);

/* Restores the newest checkpoint whose files are whole, belong to this run and whose log is still there. Collective;
 * rank 0 chooses and has the sink (NULL: no log). For each one passed over, `say` of rank 0 gets the reason. *found =
 * false: there is none, and stages and counters are to be started afresh. Files half written by a killed process are
 * removed. PL_FAIL when the folder cannot be read. */
PL_MUST_CHECK pl_status pl_checkpoints_resume(pl_checkpoints *c, pl_world *world, pl_counters *counters,
                                              pl_log_sink *sink, void (*say)(void *self, const char *line),
                                              void *say_self, bool *found, pl_err *e);

#endif
