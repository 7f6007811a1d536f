#include "results/import_table.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/memory.h"

const char *pl_import_column_name(size_t column) {
  if (column == PL_IMPORT_STEP) return "step";
  return column == PL_IMPORT_TOKENS ? "tokens" : pl_series_names[column];
}

pl_status pl_import_map_set(pl_import_map *m, const char *series, const char *column, const char *where, pl_err *e) {
  const char *names[PL_IMPORT_COLUMNS];
  pl_str all = {0};
  for (size_t i = 0; i < PL_IMPORT_COLUMNS; i++) {
    names[i] = pl_import_column_name(i);
    if (strcmp(names[i], series) == 0) {
      pl_str_free(&all);
      m->columns[i] = column;
      return PL_OK;
    }
    pl_str_printf(&all, "%s%s", i > 0 ? ", " : "", names[i]);
  }
  size_t near = pl_nearest(series, names, PL_IMPORT_COLUMNS);
  pl_fail(e, PL_BAD, "%s: saw the series \"%s\"%s%s%s; allowed: %s", where, series,
          near == SIZE_MAX ? "" : "; did you mean \"", near == SIZE_MAX ? "" : names[near],
          near == SIZE_MAX ? "" : "\"?", pl_str_text(&all));
  pl_str_free(&all);
  return PL_BAD;
}

bool pl_import_map_takes(const pl_import_map *m, size_t column, const char *name) {
  const char *wanted = m->columns[column], *own = pl_import_column_name(column);
  if (wanted) return strcmp(wanted, name) == 0;
  if (strcmp(name, own) == 0) return true;
  if (column == PL_IMPORT_STEP) return strcmp(name, "Step") == 0 || strcmp(name, "_step") == 0;
  size_t length = strlen(name), tail = strlen(own) + 3;
  return length > tail && strncmp(name + length - tail, " - ", 3) == 0 && strcmp(name + length - tail + 3, own) == 0;
}

pl_status pl_import_table_add(pl_import_table *t, int64_t step, pl_point **out, pl_err *e) {
  if (t->count == t->capacity) {
    size_t larger = t->capacity ? 2 * t->capacity : 256;
    pl_status st = pl_grow(t->capacity, larger, sizeof *t->rows, "an imported curve", &t->rows, e);
    if (st != PL_OK) return st;
    t->capacity = larger;
  }
  pl_import_row *row = &t->rows[t->count];
  *row = (pl_import_row){.point = {.step = step, .tokens = -1}, .order = t->count};
  for (size_t i = 0; i < PL_SERIES_COUNT; i++) row->point.values[i] = (double)NAN;
  t->count++;
  *out = &row->point;
  return PL_OK;
}

void pl_import_put(pl_import_table *t, pl_point *p, size_t column, pl_import_cell cell) {
  bool loss = column == PL_SERIES_val_loss || column == PL_SERIES_train_loss;
  if (!cell.given) return;
  if (loss && !isfinite(cell.value)) {
    if (p->step > t->bad_step) t->bad_step = p->step;
  } else if (column < PL_SERIES_COUNT) {
    p->values[column] = cell.value;
  } else if (column == PL_IMPORT_TOKENS && cell.value >= 0 && cell.value < 0x1p63) {
    p->tokens = (int64_t)cell.value;
  }
}

void pl_import_table_drop(pl_import_table *t, int64_t step) {
  size_t kept = 0;
  for (size_t i = 0; i < t->count; i++)
    if (t->rows[i].point.step < step) t->rows[kept++] = t->rows[i];
  t->count = kept;
  if (t->bad_step >= step) t->bad_step = -1;
}

static int by_step(const void *a, const void *b) {
  const pl_import_row *x = a, *y = b;
  if (x->point.step != y->point.step) return x->point.step < y->point.step ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

static void overlay(pl_point *to, const pl_point *from) {
  if (from->tokens >= 0) to->tokens = from->tokens;
  for (size_t i = 0; i < PL_SERIES_COUNT; i++)
    if (!isnan(from->values[i])) to->values[i] = from->values[i];
}

void pl_import_table_settle(pl_import_table *t) {
  size_t kept = 0;
  if (t->count > 0) qsort(t->rows, t->count, sizeof *t->rows, by_step);
  for (size_t i = 0; i < t->count; i++) {
    if (kept > 0 && t->rows[kept - 1].point.step == t->rows[i].point.step)
      overlay(&t->rows[kept - 1].point, &t->rows[i].point);
    else
      t->rows[kept++] = t->rows[i];
  }
  t->count = kept;
}

void pl_import_table_init(pl_import_table *t) { *t = (pl_import_table){.bad_step = -1}; }

void pl_import_table_free(pl_import_table *t) {
  pl_free(t->rows);
  pl_import_table_init(t);
}

bool pl_import_step(double value, int64_t *out) {
  if (!(value >= 0 && value <= 0x1p53) || value != trunc(value)) return false;
  *out = (int64_t)value;
  return true;
}

bool pl_import_number(const char *text, pl_import_cell *out) {
  char *end;
  while (isspace((unsigned char)*text)) text++;
  size_t length = strlen(text);
  while (length > 0 && isspace((unsigned char)text[length - 1])) length--;
  *out = (pl_import_cell){.given = length > 0};
  if (length == 0) return true;
  const char *word = text + (*text == '-' || *text == '+');
  bool named = strncasecmp(word, "nan", 3) == 0 || strncasecmp(word, "inf", 3) == 0;
  if (!named && strspn(text, "+-0123456789.eE") != length) return false;
  out->value = strtod(text, &end);
  return end == text + length;
}
