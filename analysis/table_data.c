/* The gap table for other programs: JSON, and CSV with the same fields. */
#include <math.h>
#include <string.h>

#include "analysis/tables.h"

static const char *const reading_names[] = {
    [PL_READING_BEST] = "best", [PL_READING_TRANSFERRED] = "transferred", [PL_READING_FIXED] = "fixed"};

static pl_json *number_or_null(double value) { return isnan(value) ? pl_json_new_null() : pl_json_new_number(value); }

static pl_json *count_json(size_t count) { return pl_json_new_int((int64_t)count); }

static pl_json *estimate_json(const pl_estimate *x) {
  pl_json *o = pl_json_new_object();
  bool ok = o && pl_json_set(o, "n", count_json(x->n)) && pl_json_set(o, "mean", number_or_null(x->mean)) &&
            pl_json_set(o, "sd", number_or_null(x->sd)) && pl_json_set(o, "low", number_or_null(x->low)) &&
            pl_json_set(o, "high", number_or_null(x->high));
  if (ok) return o;
  pl_json_release(o);
  return NULL;
}

static pl_json *row_json(const pl_gap_row *r) {
  pl_json *o = pl_json_new_object();
  bool ok =
      o && pl_json_set(o, "reading", pl_json_new_string(reading_names[r->reading])) &&
      pl_json_set(o, "group", pl_json_new_string(r->group)) &&
      pl_json_set(o, "optimizer", pl_json_new_string(r->optimizer)) &&
      pl_json_set(o, "delay", pl_json_new_string(r->delay)) &&
      pl_json_set(o, "correction", pl_json_new_string(r->correction)) &&
      pl_json_set(o, "sync", pl_json_new_bool(r->sync)) &&
      pl_json_set(o, "simulated", pl_json_new_bool(r->simulated)) && pl_json_set(o, "lr", pl_json_new_number(r->lr)) &&
      pl_json_set(o, "lr_edge", pl_json_new_int(r->lr_edge)) && pl_json_set(o, "loss", estimate_json(&r->loss)) &&
      pl_json_set(o, "loss_median", number_or_null(r->loss_median)) && pl_json_set(o, "gap", estimate_json(&r->gap)) &&
      pl_json_set(o, "won_back", estimate_json(&r->won_back)) &&
      pl_json_set(o, "gap_resolved", pl_json_new_bool(r->gap_resolved)) &&
      pl_json_set(o, "finished", count_json(r->finished)) && pl_json_set(o, "diverged", count_json(r->diverged)) &&
      pl_json_set(o, "unfinished", count_json(r->unfinished)) && pl_json_set(o, "total", count_json(r->total));
  if (ok) return o;
  pl_json_release(o);
  return NULL;
}

static pl_json *rows_json(const pl_gap_table *t) {
  pl_json *rows = pl_json_new_array();
  bool ok = rows != NULL;
  for (size_t i = 0; ok && i < t->count; i++) ok = pl_json_append(rows, row_json(&t->rows[i]));
  if (ok) return rows;
  pl_json_release(rows);
  return NULL;
}

static pl_json *warnings_json(const pl_gap_table *t) {
  pl_json *list = pl_json_new_array();
  bool ok = list != NULL;
  for (size_t i = 0; ok && i < t->warning_count; i++) ok = pl_json_append(list, pl_json_new_string(t->warnings[i]));
  if (ok) return list;
  pl_json_release(list);
  return NULL;
}

pl_json *pl_table_json(const pl_gap_table *t) {
  pl_json *o = pl_json_new_object();
  bool ok = o && pl_json_set(o, "at", t->at ? pl_json_new_string(t->at) : pl_json_new_null()) &&
            pl_json_set(o, "rows", rows_json(t)) && pl_json_set(o, "warnings", warnings_json(t));
  if (ok) return o;
  pl_json_release(o);
  return NULL;
}

/* A field as RFC 4180 wants it. */
static void append_field(const char *text, pl_str *out) {
  if (!strpbrk(text, ",\"\r\n")) {
    pl_str_append(out, text);
    return;
  }
  pl_str_append(out, "\"");
  for (; *text; text++) pl_str_append(out, *text == '"' ? "\"\"" : (char[]){*text, '\0'});
  pl_str_append(out, "\"");
}

static void append_value(const pl_json *value, pl_str *out) {
  char number[32];
  switch (pl_json_kind_of(value)) {
  case PL_JSON_BOOL:
    pl_str_append(out, pl_json_bool(value) ? "true" : "false");
    break;
  case PL_JSON_INT:
  case PL_JSON_REAL:
    pl_str_append(out, pl_format_number(pl_json_number(value), number));
    break;
  case PL_JSON_STRING:
    append_field(pl_json_string(value), out);
    break;
  default:
    break; /* null is an empty field */
  }
}

/* Appends one line: the keys ("loss.mean"), or the values. */
static void append_line(const pl_json *object, const char *prefix, bool keys, pl_str *out) {
  for (void *it = pl_json_iter(object); it; it = pl_json_iter_next(object, it)) {
    const pl_json *value = pl_json_iter_value(it);
    const char *key = pl_json_iter_key(it);
    if (pl_json_kind_of(value) == PL_JSON_OBJECT) {
      append_line(value, key, keys, out);
      continue;
    }
    if (out->length > 0 && out->text[out->length - 1] != '\n') pl_str_append(out, ",");
    if (keys)
      pl_str_printf(out, "%s%s%s", prefix, prefix[0] ? "." : "", key);
    else
      append_value(value, out);
  }
  if (!prefix[0]) pl_str_append(out, "\n");
}

void pl_table_csv(const pl_gap_table *t, pl_str *out) {
  for (size_t i = 0; i < t->count; i++) {
    pl_json *row = row_json(&t->rows[i]);
    if (!row) {
      out->failed = true;
      return;
    }
    if (i == 0) append_line(row, "", true, out);
    append_line(row, "", false, out);
    pl_json_release(row);
  }
}
