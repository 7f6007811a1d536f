/* The parts of a run's configuration, as paths address them. Used by run_*.c and by sweeps. */
#ifndef PL_CONFIG_RUN_PARTS_H
#define PL_CONFIG_RUN_PARTS_H

#include "core/config/params_text.h"
#include "core/config/run_config.h"

typedef enum pl_part {
  PL_PART_ROOT,
  PL_PART_TRAIN,
  PL_PART_PIPELINE,
  PL_PART_MODEL, /* from here on with a type */
  PL_PART_DATA,
  PL_PART_OPTIMIZER,
  PL_PART_LR_SCHEDULE,
  PL_PART_CORRECTION,
  PL_PARTS
} pl_part;

/* Paths: "", "train", ..., "train.lr_schedule", "correction". */
extern const char *const pl_part_paths[PL_PARTS];

/* Path of each member of the correction chain: "correction.0", ... */
extern const char *const pl_correction_paths[PL_MAX_CORRECTIONS];

/* What follows NAME or "NAME." in the path, or NULL when the path is about something else. */
const char *pl_path_after(const char *path, const char *name);

/* The part that a path is about; *key is what is left of it: "" for the whole part. */
pl_part pl_part_of(const char *path, const char **key);

/* The section of a part with one type (not the correction), and the registry that its type is from. */
pl_section *pl_part_section(pl_run_config *c, pl_part part);
const pl_registry *pl_part_registry(const pl_registries *r, pl_part part);

#endif
