/* A run's checkpoint as a whole: the stages of its model with the arrays that are kept, and nothing that trains them.
 * For tools that convert, merge or look at checkpoints, in one process. */
#ifndef PL_TRAIN_SAVED_H
#define PL_TRAIN_SAVED_H

#include "core/train/counters.h"
#include "core/train/model.h"
#include "core/train/stage.h"

typedef struct pl_saved_args {
  const pl_run_config *config; /* checked; borrowed */
  const char *root;            /* folder that a custom schedule's relative path is taken from; borrowed */
  size_t vocab;                /* of the run's dataset; 0 for a model that reads no tokens */
  pl_device *device;           /* where the arrays lie; borrowed */
} pl_saved_args;

typedef struct pl_saved {
  pl_saved_args args;
  pl_model *model;
  size_t stages;                          /* of the model: pipeline.stages * chunks */
  const pl_layout *layout[PL_MAX_STAGES]; /* the model's */
  int64_t delay[PL_MAX_STAGES];           /* steady, in updates */
  size_t depth[PL_MAX_STAGES];            /* weight versions */
  pl_stage stage[PL_MAX_STAGES];          /* those without a device are not in memory */
  pl_counters counters;                   /* of what was read */
} pl_saved;

/* Layouts, delays and depths; no stage is in memory yet. Large: it belongs on the heap. The caller closes, also after a
 * failure. */
PL_MUST_CHECK pl_status pl_saved_open(const pl_saved_args *args, pl_saved *out, pl_err *e);
void pl_saved_close(pl_saved *s);

/* Takes a stage that is not there into memory, its arrays zero; and lets it go. */
PL_MUST_CHECK pl_status pl_saved_hold(pl_saved *s, size_t stage, pl_err *e);
void pl_saved_drop(pl_saved *s, size_t stage);

/* Reads all stages of the newest checkpoint in a folder that is whole and of this run; those that are passed over are
 * told to `say` with the reason. Changes nothing there. *found = false: there is none. */
PL_MUST_CHECK pl_status pl_saved_read(pl_saved *s, const char *folder, void (*say)(void *self, const char *line),
                                      void *say_self, bool *found, pl_err *e);

/* The segment of that name which is no tied copy, and its stage; NULL: the model has none. */
const pl_segment *pl_saved_find(const pl_saved *s, const char *name, size_t *stage);

#endif
