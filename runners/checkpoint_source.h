/* The run whose checkpoint `pipelag checkpoint` is about: DIR [RUN] of the command line. */
#ifndef PL_RUNNERS_CHECKPOINT_SOURCE_H
#define PL_RUNNERS_CHECKPOINT_SOURCE_H

#include "core/train/saved.h"
#include "runners/launchers/slurm/states.h"
#include "runners/options.h"

typedef struct pl_checkpoint_source {
  const char *dir; /* borrowed from the command line */
  char *name;      /* of its sweep */
  uint64_t index, id;
  char hex[PL_ID_SIZE];
  char *folder; /* of the checkpoints */
  pl_json *document;
  pl_run_config *config;
  char *data_root;
  pl_device *device;
  size_t vocab; /* of its data */
  pl_saved *saved;
} pl_checkpoint_source;

/* The folder of a run's checkpoints (released by pl_free), and the step of the newest one; -1: it has none. */
PL_MUST_CHECK pl_status pl_checkpoint_folder(const char *dir, uint64_t id, char **out, int64_t *newest, pl_err *e);

/* Finds the run, which needs a name when several have checkpoints, and reads the newest checkpoint of it that is whole.
 * PL_NOTHING when there is none; PL_FAIL when all are damaged. Closed by the caller, also after a failure. */
PL_MUST_CHECK pl_status pl_checkpoint_source_open(const pl_options *o, pl_checkpoint_source *out, pl_err *e);
void pl_checkpoint_source_close(pl_checkpoint_source *s);

#endif
