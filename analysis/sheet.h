/* A table as a reader sees it and as a program reads it: cells of text and one JSON object per row. Every table of the
 * analysis becomes a sheet, and every kind of output is written once, for sheets. */
#ifndef PL_ANALYSIS_SHEET_H
#define PL_ANALYSIS_SHEET_H

#include "analysis/notes.h"
#include "analysis/stats.h"
#include "core/base/json.h"

typedef struct pl_sheet_column {
  const char *heading;
  bool right; /* aligned */
} pl_sheet_column;

typedef struct pl_sheet_row {
  const char *title, *group; /* where one of them is another than in the row before, a new part of the table begins */
  pl_str *cells;
  pl_str detail; /* lines for whoever asks what stands behind the row */
  pl_json *data;
} pl_sheet_row;

typedef struct pl_sheet {
  const char *name; /* of its member in JSON */
  const char *file; /* of its CSV file, without ending */
  const pl_sheet_column *columns;
  size_t column_count;
  pl_sheet_row *rows;
  size_t count, capacity;
  pl_notes notes; /* legend */
} pl_sheet;

/* Adds a row with empty cells; `data` is taken, and its being NULL means that memory ran out. Titles, groups and
 * columns are borrowed. *row is valid until the next row is added. */
PL_MUST_CHECK pl_status pl_sheet_add(pl_sheet *s, const char *title, const char *group, pl_json *data,
                                     pl_sheet_row **row, pl_err *e);
void pl_sheet_free(pl_sheet *s);

/* PL_FAIL when a cell could not be written. */
PL_MUST_CHECK pl_status pl_sheet_check(const pl_sheet *s, pl_err *e);

void pl_sheet_text(const pl_sheet *s, pl_str *out);
void pl_sheet_markdown(const pl_sheet *s, pl_str *out);
void pl_sheet_html(const pl_sheet *s, pl_str *out);  /* a table for each title */
void pl_sheet_latex(const pl_sheet *s, pl_str *out); /* a table for each title and group */
void pl_sheet_csv(const pl_sheet *s, pl_str *out);   /* the rows' data; members of inner objects as "loss.mean" */
pl_json *pl_sheet_json(const pl_sheet *s); /* list of the rows' data; new reference, NULL when memory is out */

void pl_warnings_text(const pl_notes *warnings, pl_str *out);
void pl_warnings_markdown(const pl_notes *warnings, pl_str *out);
pl_json *pl_warnings_json(const pl_notes *warnings);

/* Appends text so that none of it is taken as Markdown, HTML or LaTeX; as a field of a CSV line (RFC 4180). */
void pl_markdown_escape(const char *text, pl_str *out);
void pl_html_escape(const char *text, pl_str *out);
void pl_latex_escape(const char *text, pl_str *out);
void pl_csv_field(const char *text, pl_str *out);

/* Parts of a row's data: NaN is null. */
pl_json *pl_json_number_or_null(double value);
pl_json *pl_json_count(size_t count);
pl_json *pl_json_estimate(const pl_estimate *x);

/* Parts of cells. Numbers near 0 (`scale` below 0.05) get three digits, huge ones (from 1e5) five, others four
 * decimals; NaN is a dash. */
void pl_show_number(double value, double scale, bool sign, pl_str *out);
void pl_show_interval(const pl_estimate *x, double scale, pl_str *out); /* "[a, b]", "no interval (n=2)", "-" */
void pl_show_p(double p, pl_str *out);
void pl_show_rate(double lr, pl_str *out);     /* four digits; a dash for NaN */
void pl_show_count(double value, pl_str *out); /* 1.23M; a dash for NaN, "never" for infinity */

#endif
