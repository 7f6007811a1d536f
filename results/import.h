/* Runs that were not made by pipelag as a result directory, which analyze, report, compare and collect read like any
 * other. What is wrong with any of them is found before anything is written. */
#ifndef PL_RESULTS_IMPORT_H
#define PL_RESULTS_IMPORT_H

#include "core/base/json.h"
#include "results/import_read.h"

/* What makes one run. All is borrowed. */
typedef struct pl_import_spec {
  const char *const *paths; /* files, or folders with event files; their curves are merged. May be none, with `final` */
  size_t path_count;
  const pl_json *base, *config; /* settings; those of `config` win; either may be NULL. See results/imported.h */
  const pl_json *final;         /* figures of result.json that no curve gives, or NULL: {"final_val_loss": 2.612} */
  pl_import_map map;
  pl_curve_format format;
  const char *manifest; /* the file that states the run, for provenance; NULL: none */
  const char *where;    /* starts messages about the settings: "run", "paper.json: runs[0]" */
} pl_import_spec;

typedef struct pl_import pl_import;

PL_MUST_CHECK pl_status pl_import_begin(pl_import **out, pl_err *e);
void pl_import_end(pl_import *m); /* NULL allowed */

/* Reads the files of a run and checks everything about it. A validation loss is required, and an optimizer. The run has
 * diverged when its final validation loss is not finite or above that of step 0, or when `final` says so. PL_BAD also
 * for a second run with the same configuration. */
PL_MUST_CHECK pl_status pl_import_add(pl_import *m, const pl_import_spec *spec, pl_err *e);

/* Adds the runs of a manifest, see docs/formats.md; paths in it are relative to its folder. `settings` (may be NULL)
 * and `map` are for runs that say nothing else. *name is set when it has one, released by pl_free. */
PL_MUST_CHECK pl_status pl_import_add_manifest(pl_import *m, const char *path, const pl_json *settings,
                                               const pl_import_map *map, char **name, pl_err *e);

size_t pl_import_count(const pl_import *m);

typedef struct pl_import_counts {
  size_t added, known; /* known: imported before from the same files */
} pl_import_counts;

/* Writes the runs into a directory, which is made when it is not there; `name` is for a new one, NULL: the folder's.
 * PL_BAD, and nothing is written, when the directory holds anything but imported runs, or a run with the same
 * configuration from other files or with other figures. A failure while writing takes back what was written. */
PL_MUST_CHECK pl_status pl_import_commit(pl_import *m, const char *dir, const char *name, pl_import_counts *counts,
                                         pl_err *e);

#endif
