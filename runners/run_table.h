/* The runs of a sweep as a table with one column per axis, printed row by row. */
#ifndef PL_RUNNERS_RUN_TABLE_H
#define PL_RUNNERS_RUN_TABLE_H

#include "sweeps/sweep.h"

/* Two walks over the sweep: every run is measured, then written. */
typedef struct pl_run_table {
  const pl_sweep *sweep; /* borrowed */
  size_t count;          /* axes */
  size_t *widths;        /* [count] in characters */
  pl_json **measured;    /* [count] the value measured last, owned: most axes keep theirs from run to run */
  pl_str cell;
  uint64_t runs;
} pl_run_table;

/* Released by pl_run_table_free, also after a failure. */
PL_MUST_CHECK pl_status pl_run_table_begin(const pl_sweep *sweep, pl_run_table *out, pl_err *e);

/* Makes the columns wide enough for this run, up to a limit that a longer value overflows. */
void pl_run_table_measure(pl_run_table *t, const pl_sweep_run *run);

/* Lines: "index  id  optimizer  delay", and a run's. An axis that the run's block leaves alone is "-". Appended. */
void pl_run_table_head(const pl_run_table *t, pl_str *out);
void pl_run_table_row(pl_run_table *t, const pl_sweep_run *run, pl_str *out);

void pl_run_table_free(pl_run_table *t);

#endif
