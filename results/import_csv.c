/* CSV with a header line. */
#include <string.h>

#include "core/base/memory.h"
#include "results/import_read.h"

enum { OTHER = PL_IMPORT_COLUMNS, NO_CELL = -1 };

typedef struct reader {
  const pl_import_text *in;
  pl_import_table *table;
  char *at, *end;    /* what is left of the text */
  size_t line, cell; /* of the cell that was read last; from 1 */
  bool last;         /* it was the last of its line */
  size_t *meaning;   /* of each column; OTHER: none */
  char **titles;
  size_t columns;
} reader;

static pl_status unclosed(const reader *r, pl_err *e) {
  return pl_fail(e, PL_BAD, "%s:%zu: cell %zu begins with a quote that is never closed", r->in->path, r->line, r->cell);
}

/* Cuts the next cell out of the text, in place; quotes are taken off. */
static pl_status next_cell(reader *r, size_t *lines, char **out, pl_err *e) {
  char *from = r->at, *to = r->at;
  bool quoted = from < r->end && *from == '"';
  *out = to;
  r->cell++;
  from += quoted;
  for (; from < r->end && (quoted || (*from != ',' && *from != '\n')); from++) {
    *lines += *from == '\n';
    if (quoted && *from == '"') {
      if (from + 1 < r->end && from[1] == '"')
        from++;
      else {
        quoted = false;
        continue;
      }
    }
    *to++ = *from;
  }
  if (quoted) return unclosed(r, e);
  r->last = from >= r->end || *from == '\n';
  *lines += r->last;
  r->at = from < r->end ? from + 1 : r->end;
  if (r->last && to > *out && to[-1] == '\r') to--;
  *to = '\0';
  return PL_OK;
}

static size_t meaning_of(const reader *r, const char *title) {
  for (size_t i = 0; i < PL_IMPORT_COLUMNS; i++)
    if (pl_import_map_takes(r->in->map, i, title)) return i;
  return OTHER;
}

static pl_status add_column(reader *r, char *title, pl_err *e) {
  pl_status st = PL_OK;
  size_t n = r->columns;
  PL_TRY(pl_grow(n, n + 1, sizeof *r->meaning, "the header of a CSV file", &r->meaning, e));
  PL_TRY(pl_grow(n, n + 1, sizeof *r->titles, "the header of a CSV file", &r->titles, e));
  r->meaning[n] = meaning_of(r, title);
  r->titles[n] = title;
  r->columns++;
  pl_import_saw(r->table, title);
  for (size_t i = 0; i < n && r->meaning[n] != OTHER; i++)
    if (r->meaning[i] == r->meaning[n])
      PL_TRY(pl_fail(e, PL_BAD, "%s:1: both \"%s\" and \"%s\" are %s; choose one with --map %s=COLUMN", r->in->path,
                     r->titles[i], title, pl_import_column_name(r->meaning[n]), pl_import_column_name(r->meaning[n])));
  if (r->meaning[n] != OTHER) r->table->found[r->meaning[n]] = true;
out:
  return st;
}

static pl_status read_header(reader *r, pl_err *e) {
  pl_status st = PL_OK;
  size_t lines = 0;
  bool step = false;
  char *title;
  do {
    PL_TRY(next_cell(r, &lines, &title, e));
    PL_TRY(add_column(r, title, e));
    step |= r->meaning[r->columns - 1] == PL_IMPORT_STEP;
  } while (!r->last);
  r->line += lines;
  if (!step)
    PL_TRY(pl_fail(e, PL_BAD, "%s:1: no column is the step; the header has %s; allowed: step, or --map step=COLUMN",
                   r->in->path, r->table->seen ? pl_str_text(r->table->seen) : "none"));
out:
  return st;
}

static pl_status not_a_number(const reader *r, size_t column, const char *cell, pl_err *e) {
  return pl_fail(e, PL_BAD, "%s:%zu: \"%.80s\" in column \"%.80s\" is no %s", r->in->path, r->line, cell,
                 r->titles[column],
                 r->meaning[column] == PL_IMPORT_STEP ? "step; allowed: a whole number from 0" : "number");
}

static pl_status read_row(reader *r, pl_import_cell *values, pl_err *e) {
  pl_status st = PL_OK;
  size_t lines = 0;
  int64_t step = NO_CELL;
  pl_point *p;
  char *cell;
  r->cell = 0;
  do {
    PL_TRY(next_cell(r, &lines, &cell, e));
    size_t i = r->cell - 1;
    if (r->last && i == 0 && r->columns > 1 && cell[0] == '\0') goto out; /* an empty line */
    if (i >= r->columns || r->meaning[i] == OTHER) continue;
    if (!pl_import_number(cell, &values[i])) PL_TRY(not_a_number(r, i, cell, e));
    if (r->meaning[i] == PL_IMPORT_STEP && !values[i].given) PL_TRY(not_a_number(r, i, cell, e));
    if (r->meaning[i] == PL_IMPORT_STEP && !pl_import_step(values[i].value, &step)) PL_TRY(not_a_number(r, i, cell, e));
  } while (!r->last);
  if (r->cell != r->columns)
    PL_TRY(pl_fail(e, PL_BAD, "%s:%zu: has %zu cell%s; the header has %zu", r->in->path, r->line, r->cell,
                   r->cell == 1 ? "" : "s", r->columns));
  PL_TRY(pl_import_table_add(r->table, step, &p, e));
  for (size_t i = 0; i < r->columns; i++)
    if (r->meaning[i] != OTHER) pl_import_put(r->table, p, r->meaning[i], values[i]);
out:
  r->line += lines;
  return st;
}

pl_status pl_import_csv(const pl_import_text *in, pl_import_table *t, pl_err *e) {
  static const char mark[] = "\xef\xbb\xbf";
  pl_status st = PL_OK;
  pl_import_cell *values = NULL;
  reader r = {.in = in, .table = t, .at = in->bytes, .end = in->bytes + in->length, .line = 1};
  if (strlen(in->bytes) != in->length)
    return pl_fail(e, PL_BAD,
                   "%s: is no text (it has a NUL byte); allowed: CSV, JSON lines, TensorBoard event files, "
                   "logs of llm.c and modded-nanogpt",
                   in->path);
  if (in->length >= 3 && memcmp(in->bytes, mark, 3) == 0) r.at += 3;
  if (r.at >= r.end) return pl_fail(e, PL_BAD, "%s: is empty", in->path);
  PL_TRY(read_header(&r, e));
  PL_TRY(pl_alloc(r.columns, sizeof *values, "a line of a CSV file", &values, e));
  while (r.at < r.end) PL_TRY(read_row(&r, values, e));
out:
  pl_free(values);
  pl_free(r.meaning);
  pl_free(r.titles);
  return st;
}
