#include "analysis/sheet.h"

#include <math.h>

#include "core/base/memory.h"

pl_status pl_sheet_add(pl_sheet *s, const char *title, const char *group, pl_json *data, pl_sheet_row **row,
                       pl_err *e) {
  pl_str *cells = NULL;
  pl_status st = PL_OK;
  if (!data) return pl_fail(e, PL_FAIL, "out of memory for the table \"%s\"", s->name);
  if (s->count == s->capacity) {
    size_t capacity = s->capacity ? 2 * s->capacity : 32;
    PL_TRY(pl_grow(s->capacity, capacity, sizeof s->rows[0], s->name, &s->rows, e));
    s->capacity = capacity;
  }
  PL_TRY(pl_alloc(s->column_count, sizeof cells[0], s->name, &cells, e));
  *row = &s->rows[s->count++];
  **row = (pl_sheet_row){.title = title, .group = group, .cells = cells, .data = data};
  return PL_OK;
out:
  pl_json_release(data);
  return st;
}

void pl_sheet_free(pl_sheet *s) {
  for (size_t i = 0; i < s->count; i++) {
    for (size_t c = 0; c < s->column_count; c++) pl_str_free(&s->rows[i].cells[c]);
    pl_free(s->rows[i].cells);
    pl_str_free(&s->rows[i].detail);
    pl_json_release(s->rows[i].data);
  }
  pl_free(s->rows);
  pl_notes_free(&s->notes);
  *s = (pl_sheet){0};
}

pl_status pl_sheet_check(const pl_sheet *s, pl_err *e) {
  for (size_t i = 0; i < s->count; i++) {
    pl_status st = pl_str_check(&s->rows[i].detail, e);
    for (size_t c = 0; c < s->column_count && st == PL_OK; c++) st = pl_str_check(&s->rows[i].cells[c], e);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

pl_json *pl_json_number_or_null(double value) { return isnan(value) ? pl_json_new_null() : pl_json_new_number(value); }

pl_json *pl_json_count(size_t count) { return pl_json_new_int((int64_t)count); }

pl_json *pl_json_estimate(const pl_estimate *x) {
  pl_json *o = pl_json_new_object();
  return pl_json_keep(o, o && pl_json_set(o, "n", pl_json_count(x->n)) &&
                             pl_json_set(o, "mean", pl_json_number_or_null(x->mean)) &&
                             pl_json_set(o, "sd", pl_json_number_or_null(x->sd)) &&
                             pl_json_set(o, "low", pl_json_number_or_null(x->low)) &&
                             pl_json_set(o, "high", pl_json_number_or_null(x->high)));
}

void pl_show_number(double value, double scale, bool sign, pl_str *out) {
  bool small = fabs(scale) < 0.05, large = fabs(scale) >= 1e5;
  if (isnan(value))
    pl_str_append(out, "-");
  else if (sign)
    pl_str_printf(out, small ? "%+.3g" : large ? "%+.5g" : "%+.4f", value);
  else
    pl_str_printf(out, small ? "%.3g" : large ? "%.5g" : "%.4f", value);
}

void pl_show_interval(const pl_estimate *x, double scale, pl_str *out) {
  if (x->n == 0) {
    pl_str_append(out, "-");
  } else if (isnan(x->low)) {
    pl_str_printf(out, "no interval (n=%zu)", x->n);
  } else {
    pl_str_append(out, "[");
    pl_show_number(x->low, scale, true, out);
    pl_str_append(out, ", ");
    pl_show_number(x->high, scale, true, out);
    pl_str_append(out, "]");
  }
}

void pl_show_rate(double lr, pl_str *out) {
  if (isnan(lr))
    pl_str_append(out, "-");
  else
    pl_str_printf(out, "%.4g", lr);
}

void pl_show_p(double p, pl_str *out) {
  if (isnan(p))
    pl_str_append(out, "-");
  else if (p < 1e-4)
    pl_str_append(out, "<0.0001");
  else
    pl_str_printf(out, "%.4f", p);
}

void pl_show_count(double value, pl_str *out) {
  static const char units[] = "\0kMGTP";
  size_t unit = 0;
  if (!isfinite(value)) {
    pl_str_append(out, isnan(value) ? "-" : "never");
    return;
  }
  for (; value >= 999.5 && unit + 2 < sizeof units; unit++) value /= 1000;
  pl_str_printf(out, "%.3g%.1s", value, &units[unit]);
}
