#include "core/config/run_parts.h"

#include <string.h>

const char *const pl_part_paths[PL_PARTS] = {
    [PL_PART_ROOT] = "",
    [PL_PART_TRAIN] = "train",
    [PL_PART_PIPELINE] = "pipeline",
    [PL_PART_MODEL] = "model",
    [PL_PART_DATA] = "data",
    [PL_PART_OPTIMIZER] = "optimizer",
    [PL_PART_LR_SCHEDULE] = "train.lr_schedule",
    [PL_PART_CORRECTION] = "correction",
};

const char *const pl_correction_paths[PL_MAX_CORRECTIONS] = {"correction.0", "correction.1", "correction.2",
                                                             "correction.3"};

const char *pl_path_after(const char *path, const char *name) {
  size_t length = strlen(name);
  if (path[0] != name[0] || strncmp(path, name, length) != 0) return NULL;
  if (path[length] == '\0') return path + length;
  return path[length] == '.' ? path + length + 1 : NULL;
}

pl_part pl_part_of(const char *path, const char **key) {
  /* Backwards, so that train.lr_schedule is found before train. */
  for (pl_part part = PL_PARTS - 1; part > PL_PART_ROOT; part--) {
    *key = pl_path_after(path, pl_part_paths[part]);
    if (*key) return part;
  }
  *key = path;
  return PL_PART_ROOT;
}

pl_section *pl_part_section(pl_run_config *c, pl_part part) {
  switch (part) {
  case PL_PART_MODEL:
    return &c->model;
  case PL_PART_DATA:
    return &c->data;
  case PL_PART_OPTIMIZER:
    return &c->optimizer;
  case PL_PART_LR_SCHEDULE:
    return &c->lr_schedule;
  default:
    return NULL;
  }
}

const pl_registry *pl_part_registry(const pl_registries *r, pl_part part) {
  switch (part) {
  case PL_PART_MODEL:
    return &r->models;
  case PL_PART_DATA:
    return &r->datasets;
  case PL_PART_OPTIMIZER:
    return &r->optimizers;
  case PL_PART_LR_SCHEDULE:
    return &r->lr_schedules;
  case PL_PART_CORRECTION:
    return &r->corrections;
  default:
    return NULL;
  }
}
