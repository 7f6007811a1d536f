/* Runs on their way in. Used by import*.c alone. */
#ifndef PL_RESULTS_IMPORT_RUN_H
#define PL_RESULTS_IMPORT_RUN_H

#include "results/import.h"
#include "results/import_spill.h"
#include "results/imported.h"
#include "results/run_dir.h"

typedef struct pl_import_run {
  uint64_t id;
  char *where; /* for messages */
  pl_json *document;
  pl_imported *imported; /* borrows from the document */
  char *label;
  pl_json *sources;      /* [{"file", "hash", "format"}] */
  pl_import_table table; /* its rows are in the spill between reading and writing */
  int64_t rows_at;
  pl_run_state state;
  pl_outcome outcome;
  uint64_t figures; /* hash of curve and outcome */
} pl_import_run;

struct pl_import {
  pl_import_run *runs;
  size_t count, capacity;
  pl_import_spill *spill;
};

/* Reads the curves into run->table and run->sources. */
PL_MUST_CHECK pl_status pl_import_read_paths(pl_import_run *run, const pl_import_spec *spec, pl_err *e);

/* Sets tokens, outcome, state and figures from the table and `final`. */
PL_MUST_CHECK pl_status pl_import_conclude(pl_import_run *run, const pl_json *final, const char *where, pl_err *e);

/* The member of meta.json that says where an imported run is from. */
pl_json *pl_import_provenance(const pl_import_run *run); /* new reference */

void pl_import_run_free(pl_import_run *run);

#endif
