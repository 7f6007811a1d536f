/* A sweep directory: what was asked (sweep.json, runs.tsv) and what is there; or the one file it was collected into. */
#ifndef PL_RESULTS_CATALOG_H
#define PL_RESULTS_CATALOG_H

#include "results/imported.h"
#include "results/journal.h"
#include "results/run_dir.h"

struct pl_collected;

/* One row of runs.tsv with what its folder says. */
typedef struct pl_catalog_run {
  const char *dir; /* the sweep directory, or the collected file, that holds it; borrowed from the catalog */
  uint64_t index, id;
  char *label;  /* axis values as text */
  bool current; /* still part of the newest frozen sweep file */
  pl_run_state state;
  bool has_result;       /* of its last attempt: false while a failed or stopped run is being run again */
  pl_result result;      /* when has_result */
  pl_json *document;     /* config.json, keeps the config's strings alive; NULL when the folder is not there yet */
  pl_run_config *config; /* when document is not NULL */
  pl_imported *imported; /* of a run that was not made by pipelag, holds its config; else NULL */
  const struct pl_collected *collected; /* the file it lies in, borrowed; NULL: a folder below dir */
  const char *meta;                     /* in such a file: its meta.json, borrowed */
} pl_catalog_run;

typedef struct pl_catalog {
  char *dir;
  char *name; /* of the sweep */
  pl_catalog_run *runs;
  size_t count;
  size_t unreadable;              /* run folders that could not be read; each was named by `say` */
  struct pl_collected *collected; /* NULL for a directory */
} pl_catalog;

/* Opens the directory; PL_BAD when it is none of ours. Run folders that cannot be read are reported through `say` (may
 * be NULL) and kept with has_result false. `configs` false leaves documents unread (cheap status). */
PL_MUST_CHECK pl_status pl_catalog_open(const pl_registries *r, const char *dir, bool configs,
                                        void (*say)(void *self, const char *line), void *say_self, pl_catalog *out,
                                        pl_err *e);
void pl_catalog_free(pl_catalog *c);

/* The same for a directory or a file of pl_curves_collect, whichever the path is; documents are read. */
PL_MUST_CHECK pl_status pl_catalog_open_any(const pl_registries *r, const char *path,
                                            void (*say)(void *self, const char *line), void *say_self, pl_catalog *out,
                                            pl_err *e);

/* A run's curve, wherever it lies; a missing one is empty. Released by pl_curve_free. */
PL_MUST_CHECK pl_status pl_catalog_curve(const pl_catalog_run *r, pl_curve *out, pl_err *e);

/* The times of its stages; none where it has one. Released by pl_times_free. */
PL_MUST_CHECK pl_status pl_catalog_times(const pl_catalog_run *r, pl_times *out, pl_err *e);

/* Its meta.json; *out is NULL when there is none or it is damaged, else a new reference. */
PL_MUST_CHECK pl_status pl_catalog_meta(const pl_catalog_run *r, pl_json **out, pl_err *e);

/* Freezing: makes or extends the directory for a sweep. Call begin, then add for each run in order, then commit. begin
 * checks that the directory belongs to `name` (another name: PL_BAD); add keeps the index of a run that is already
 * listed and appends new ones; commit writes location.json ("folder": the sweep file's), sweep.json (or sweep.<n>.json
 * when it changed), appends to runs.tsv in one atomic replacement and rewrites the list of current runs. Two processes
 * that freeze at once are kept apart by a lock file; the loser waits, at most a minute. */
typedef struct pl_freeze pl_freeze;
PL_MUST_CHECK pl_status pl_freeze_begin(const char *dir, const char *name, const pl_json *sweep_document,
                                        const char *sweep_folder, pl_freeze **out, pl_err *e);
PL_MUST_CHECK pl_status pl_freeze_add(pl_freeze *f, uint64_t id, const char *label, uint64_t *index, pl_err *e);
PL_MUST_CHECK pl_status pl_freeze_commit(pl_freeze *f, pl_err *e);
void pl_freeze_end(pl_freeze *f); /* releases; without commit nothing was changed */

#endif
