/* Everything that is computed of a catalog, and its tables. */
#ifndef PL_ANALYSIS_ANALYSIS_H
#define PL_ANALYSIS_ANALYSIS_H

#include "analysis/against.h"
#include "analysis/mechanism.h"
#include "analysis/rates.h"
#include "analysis/reach.h"
#include "analysis/sheet.h"
#include "analysis/speed.h"

typedef struct pl_analysis {
  const pl_gap_options *options;
  pl_arms arms;
  pl_gap_table gap;
  pl_rate_table rates;
  pl_speed_table speed;
  pl_reach_table reach;
  pl_mechanism_table mechanism;
  pl_against_table against;
  pl_notes warnings;
} pl_analysis;

/* Catalog and options must outlive the analysis; `known` (may be NULL) are warnings to begin with. Errors are those of
 * pl_gap_compute and pl_against_compute. */
PL_MUST_CHECK pl_status pl_analysis_run(const pl_catalog *c, const pl_notes *known, const pl_gap_options *o,
                                        pl_analysis *out, pl_err *e);
void pl_analysis_free(pl_analysis *a);

/* In the order in which they are shown. */
typedef enum pl_sheet_kind {
  PL_SHEET_GAP,      /* every reading */
  PL_SHEET_OVERVIEW, /* one line for optimizer and delay, one column for each correction */
  PL_SHEET_RATES,
  PL_SHEET_POWER, /* pairs needed */
  PL_SHEET_REACH,
  PL_SHEET_SPEED, /* of real pipelines */
  PL_SHEET_MECHANISM,
  PL_SHEET_AGAINST,
  PL_SHEET_SLOPES,
  PL_SHEETS
} pl_sheet_kind;

typedef struct pl_sheets {
  pl_sheet list[PL_SHEETS]; /* those without rows say nothing */
  pl_sheet_column *overview_columns, *mechanism_columns;
} pl_sheets;

/* The analysis must outlive its sheets. */
PL_MUST_CHECK pl_status pl_sheets_make(const pl_analysis *a, pl_sheets *out, pl_err *e);
void pl_sheets_free(pl_sheets *s);

/* {"at": ..., "rows": the gap table, "overview": [...], ..., "warnings": [...]}; new reference, NULL when memory is
 * out.
 */
pl_json *pl_analysis_json(const pl_analysis *a, const pl_sheets *s);

/* What fills the sheets, see the files sheet_*.c. */
PL_MUST_CHECK pl_status pl_sheet_fill_gap(const pl_analysis *a, pl_sheet *s, pl_err *e);
PL_MUST_CHECK pl_status pl_sheet_fill_overview(const pl_analysis *a, pl_sheet *s, pl_sheet_column **columns, pl_err *e);
PL_MUST_CHECK pl_status pl_sheet_fill_rates(const pl_analysis *a, pl_sheet *s, pl_err *e);
PL_MUST_CHECK pl_status pl_sheet_fill_power(const pl_analysis *a, pl_sheet *s, pl_err *e);
PL_MUST_CHECK pl_status pl_sheet_fill_reach(const pl_analysis *a, pl_sheet *s, pl_err *e);
PL_MUST_CHECK pl_status pl_sheet_fill_speed(const pl_analysis *a, pl_sheet *s, pl_err *e);
PL_MUST_CHECK pl_status pl_sheet_fill_mechanism(const pl_analysis *a, pl_sheet *s, pl_sheet_column **columns,
                                                pl_err *e);
PL_MUST_CHECK pl_status pl_sheet_fill_against(const pl_analysis *a, pl_sheet *s, pl_err *e);
PL_MUST_CHECK pl_status pl_sheet_fill_slopes(const pl_analysis *a, pl_sheet *s, pl_err *e);

/* The first columns of every table, as cells and as data: optimizer, delay (with a star when simulated), correction. */
void pl_show_arm(const pl_arm *a, pl_str *cells);
bool pl_json_set_arm(pl_json *object, const pl_arm *a); /* group, optimizer, delay, correction */

/* Appends to a row's detail: the arm at this learning rate, in which keys it differs from the synchronous one, and the
 * runs behind it (of `sync` too, which may be NULL). */
void pl_show_runs(const pl_arm *a, const pl_arm_cell *cell, const pl_arm_cell *sync, pl_str *detail);

/* The runs themselves as a table, by index; only those that belong. Not one of pl_sheets. */
PL_MUST_CHECK pl_status pl_sheet_fill_runs(const pl_catalog *c, bool all, pl_sheet *s, pl_err *e);

#endif
