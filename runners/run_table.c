#include "runners/run_table.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/memory.h"

enum { WIDEST = 60 };

/* Characters of a UTF-8 text, each taken as one column. */
static size_t width_of(const char *text) {
  size_t width = 0;
  for (; *text != '\0'; text++) width += (*text & 0xc0) != 0x80;
  return width;
}

static size_t limited(size_t width) { return width < WIDEST ? width : WIDEST; }

pl_status pl_run_table_begin(const pl_sweep *sweep, pl_run_table *out, pl_err *e) {
  *out = (pl_run_table){.sweep = sweep, .count = pl_sweep_axis_count(sweep)};
  pl_status st = PL_OK;
  PL_TRY(pl_alloc(out->count, sizeof *out->widths, "the columns of a table", &out->widths, e));
  PL_TRY(pl_alloc(out->count, sizeof *out->measured, "the columns of a table", &out->measured, e));
  for (size_t i = 0; i < out->count; i++) out->widths[i] = limited(width_of(pl_sweep_axis(sweep, i)));
out:
  return st;
}

static const char *cell(pl_run_table *t, const pl_json *value) {
  if (value == NULL) return "-";
  t->cell.length = 0;
  pl_sweep_value_text(value, &t->cell);
  return pl_str_text(&t->cell);
}

void pl_run_table_measure(pl_run_table *t, const pl_sweep_run *run) {
  t->runs++;
  for (size_t i = 0; i < t->count; i++) {
    const pl_json *value = run->axis_values[i];
    if (value == NULL || value == t->measured[i]) continue;
    size_t width = limited(width_of(cell(t, value)));
    if (width > t->widths[i]) t->widths[i] = width;
    pl_json_release(t->measured[i]);
    t->measured[i] = pl_json_retain(value); /* kept, so that no other value can have its address */
  }
}

/* The last column is not padded. */
static void append_cell(const pl_run_table *t, size_t column, const char *text, pl_str *out) {
  size_t width = width_of(text);
  pl_str_append(out, "  ");
  pl_str_append(out, text);
  if (column + 1 < t->count && width < t->widths[column])
    pl_str_printf(out, "%*s", (int)(t->widths[column] - width), "");
}

static int index_width(const pl_run_table *t) {
  int digits = 5; /* "index" */
  for (uint64_t most = 100000; digits < 20 && t->runs > most; most *= 10) digits++;
  return digits;
}

void pl_run_table_head(const pl_run_table *t, pl_str *out) {
  pl_str_printf(out, "%*s  %-*s", index_width(t), "index", t->count > 0 ? 16 : 0, "id");
  for (size_t i = 0; i < t->count; i++) append_cell(t, i, pl_sweep_axis(t->sweep, i), out);
  pl_str_append(out, "\n");
}

void pl_run_table_row(pl_run_table *t, const pl_sweep_run *run, pl_str *out) {
  pl_str_printf(out, "%*" PRIu64 "  %016" PRIx64, index_width(t), run->index, run->id);
  for (size_t i = 0; i < t->count; i++) append_cell(t, i, cell(t, run->axis_values[i]), out);
  pl_str_append(out, "\n");
  out->failed |= t->cell.failed;
}

void pl_run_table_free(pl_run_table *t) {
  for (size_t i = 0; t->measured != NULL && i < t->count; i++) pl_json_release(t->measured[i]);
  pl_free(t->measured);
  pl_free(t->widths);
  pl_str_free(&t->cell);
  *t = (pl_run_table){0};
}
