/* Filling one table's config struct from keys and values. Used by run_*.c alone. */
#ifndef PL_CONFIG_RUN_FILL_H
#define PL_CONFIG_RUN_FILL_H

#include "core/config/run_parts.h"

enum { PL_MAX_PARAMS = 64 }; /* rows of a table */

/* What is being filled. */
typedef struct pl_filling {
  const pl_param *table;
  void *config;
  const char *kind, *name;  /* "optimizer", "adamw" */
  const char *path;         /* "optimizer" */
  const pl_component *type; /* NULL for a part without a type */
  uint64_t given;           /* bit i: row i was set */
} pl_filling;

/* Stores one value under its key; an object under a group's name ("adamw") fills its keys. */
PL_MUST_CHECK pl_status pl_fill(pl_filling *f, const char *key, const pl_json *value, const char *where, pl_err *e);

/* Stores every member of an object except "type". */
PL_MUST_CHECK pl_status pl_fill_object(pl_filling *f, const pl_json *object, const char *where, pl_err *e);

/* Fails when a required row was not set or the type's own check does. */
PL_MUST_CHECK pl_status pl_fill_finish(const pl_filling *f, pl_err *e);

/* Chooses the section's type: clears its config, sets the defaults and makes it ready to fill. */
PL_MUST_CHECK pl_status pl_fill_section(const pl_component *type, const char *path, const char *kind,
                                        pl_section *section, pl_filling *f, pl_err *e);

#endif
