/* What is read from files that other programs wrote, before it becomes a run: points by step, and which column of a
 * file is which series. */
#ifndef PL_RESULTS_IMPORT_TABLE_H
#define PL_RESULTS_IMPORT_TABLE_H

#include "core/base/str.h"
#include "core/train/log_sink.h"

/* The columns of a curve: the series, then these two. */
enum { PL_IMPORT_STEP = PL_SERIES_COUNT, PL_IMPORT_TOKENS, PL_IMPORT_COLUMNS };

const char *pl_import_column_name(size_t column); /* "val/loss", "step", "tokens" */

typedef struct pl_import_map {
  const char *columns[PL_IMPORT_COLUMNS]; /* the name in the file; NULL: by its own name. Borrowed */
} pl_import_map;

/* Sets what "SERIES=COLUMN" or a pair says; `where` starts messages. */
PL_MUST_CHECK pl_status pl_import_map_set(pl_import_map *m, const char *series, const char *column, const char *where,
                                          pl_err *e);

/* Whether a column of a file is the series. Without a mapping: the series' own name, also behind "RUN - " as W&B writes
 * it; for the step also Step and _step. */
bool pl_import_map_takes(const pl_import_map *m, size_t column, const char *name);

typedef struct pl_import_row {
  pl_point point; /* NaN: not in the file; tokens -1 */
  size_t order;   /* in which it was read */
} pl_import_row;

typedef struct pl_import_table {
  pl_import_row *rows;
  size_t count, capacity;
  bool found[PL_IMPORT_COLUMNS]; /* columns that some file has */
  int64_t bad_step;              /* the last one with a loss that is written and not finite; -1 */
  pl_str *seen;                  /* names of the columns that files have, for messages; may be NULL */
} pl_import_table;

/* A row for the step, to be filled; valid until the next call. Rows may come in any order and several of one step. */
PL_MUST_CHECK pl_status pl_import_table_add(pl_import_table *t, int64_t step, pl_point **out, pl_err *e);

/* A number of a file, or none. */
typedef struct pl_import_cell {
  bool given;
  double value;
} pl_import_cell;

/* Puts a value into a row. A loss that is not finite is no point of the curve, but it is noted. */
void pl_import_put(pl_import_table *t, pl_point *p, size_t column, pl_import_cell cell);

/* Forgets the rows from that step on: they were written again by a program that was restarted. */
void pl_import_table_drop(pl_import_table *t, int64_t step);

/* Sorts by step and merges the rows of a step: what was read later counts. */
void pl_import_table_settle(pl_import_table *t);

void pl_import_table_init(pl_import_table *t);
void pl_import_table_free(pl_import_table *t);

/* A step as a number: whole, from 0 to 2^53. */
bool pl_import_step(double value, int64_t *out);

/* "1.5", "nan", "Infinity" as programs print them; an empty text is none. False for other texts. */
bool pl_import_number(const char *text, pl_import_cell *out);

#endif
