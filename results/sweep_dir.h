/* The files at the top of a sweep directory, shared by freezing and by the catalog. */
#ifndef PL_RESULTS_SWEEP_DIR_H
#define PL_RESULTS_SWEEP_DIR_H

#include "core/base/json.h"

/* Reads the newest frozen sweep: sweep.<n>.json with the highest n, else sweep.json. *document is a new reference, or
 * NULL when nothing was frozen here; *next is the number of the file that a changed sweep would get (0: sweep.json). */
PL_MUST_CHECK pl_status pl_sweep_dir_newest(const char *dir, pl_json **document, int *next, pl_err *e);

/* sweep.json for n = 0, sweep.<n>.json else; released by pl_free. */
PL_MUST_CHECK pl_status pl_sweep_dir_file(const char *dir, int n, char **out, pl_err *e);

/* runs.tsv: a header line, then index, id, label in each line; a row's index is its place. */
typedef struct pl_runs_list {
  char *text; /* holds the labels */
  uint64_t *ids;
  const char **labels;
  size_t count;
} pl_runs_list;

/* A missing file is an empty list; PL_FAIL names the line that is damaged. */
PL_MUST_CHECK pl_status pl_runs_list_read(const char *dir, pl_runs_list *out, pl_err *e);
void pl_runs_list_free(pl_runs_list *l);

/* Appends the header line, or one row; tabs, line breaks and backslashes of the label become \t, \n, \r and \\. */
void pl_runs_list_header(pl_str *out);
void pl_runs_list_row(pl_str *out, uint64_t index, uint64_t id, const char *label);

/* `current`: the indexes of the runs that are part of the newest frozen sweep, one a line. Sets current[index] for each
 * of them, current has `count` entries. A missing file sets none. */
PL_MUST_CHECK pl_status pl_current_read(const char *dir, size_t count, bool *current, pl_err *e);

#endif
