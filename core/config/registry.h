/* Components and their registries. core defines the interfaces and never names an implementation; runners fills the
 * registries. */
#ifndef PL_CONFIG_REGISTRY_H
#define PL_CONFIG_REGISTRY_H

#include "core/config/params.h"

/* What every component (an optimizer, a model, ...) starts with: its interface struct has `pl_component base` as first
 * member, and its config struct is filled by `params`. */
typedef struct pl_component {
  const char *name;       /* the "type" that users write */
  const char *summary;    /* one line */
  const char *source;     /* paper or code that it follows */
  const pl_param *params; /* closed by PL_END; at most 64 rows */
  size_t config_size;     /* bytes; at most PL_SECTION_SIZE */
  /* Checks relations between parameters; NULL means none. The message starts with the key it is about. */
  pl_status (*check)(const void *config, pl_err *e);
} pl_component;

typedef struct pl_registry {
  const char *kind; /* "optimizer" */
  const pl_component *const *items;
  size_t count;
} pl_registry;

typedef struct pl_registries {
  pl_registry models, datasets, optimizers, corrections, lr_schedules;
} pl_registries;

/* The component of that name, or NULL with a message that names `where`, the kind, the name seen, the nearest and all
 * known ones. */
const pl_component *pl_registry_find(const pl_registry *r, const char *name, const char *where, pl_err *e);

#endif
