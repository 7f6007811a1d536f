/* Two sweeps side by side: what their configurations differ in, and what that does to the losses. */
#ifndef PL_ANALYSIS_COMPARE_H
#define PL_ANALYSIS_COMPARE_H

#include "analysis/gap.h"
#include "analysis/key_values.h"
#include "analysis/sheet.h"

/* A run of one side; `run` is NULL for a sweep file. */
typedef struct pl_side_run {
  uint64_t id;
  const pl_catalog_run *run;
} pl_side_run;

/* One of the two: a sweep file, or a directory with results. */
typedef struct pl_side {
  const char *name; /* as it was given; borrowed */
  pl_key_values keys;
  pl_side_run *runs; /* ascending ids */
  size_t count, capacity;
  const pl_arms *arms; /* borrowed; NULL for a sweep file */
} pl_side;

PL_MUST_CHECK pl_status pl_side_add(pl_side *s, uint64_t id, const pl_run_config *c, const pl_catalog_run *run,
                                    pl_err *e);
void pl_side_sort(pl_side *s);
void pl_side_free(pl_side *s);

typedef struct pl_comparison {
  size_t both, only_a, only_b; /* runs, by id */
  size_t compared, different;  /* runs of both with an outcome in both; of these with another one */
  pl_sheet keys, arms;
  pl_notes warnings;
} pl_comparison;

/* keys: those whose values differ, except seeds. arms: pairs of an arm of each side that differ at most in keys with
 * one single value on each side, every arm at its own best learning rate (or at the fixed one), losses paired by seed.
 * The sides must outlive the comparison. */
PL_MUST_CHECK pl_status pl_compare(const pl_side *a, const pl_side *b, const pl_gap_options *o, pl_comparison *out,
                                   pl_err *e);
void pl_comparison_free(pl_comparison *c);

void pl_comparison_text(const pl_comparison *c, pl_str *out);
pl_json *pl_comparison_json(const pl_comparison *c); /* new reference; NULL when memory is out */

#endif
