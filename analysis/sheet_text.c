/* Sheets for the terminal. */
#include <string.h>

#include "analysis/sheet.h"
#include "core/base/memory.h"

static void measure(const pl_sheet *s, size_t *widths) {
  for (size_t c = 0; c < s->column_count; c++) {
    widths[c] = strlen(s->columns[c].heading);
    for (size_t i = 0; i < s->count; i++)
      if (s->rows[i].cells[c].length > widths[c]) widths[c] = s->rows[i].cells[c].length;
  }
}

static void write_cell(const pl_sheet *s, size_t column, const char *text, const size_t *widths, pl_str *out) {
  int width = (int)widths[column];
  if (column + 1 < s->column_count)
    pl_str_printf(out, s->columns[column].right ? "  %*s" : "  %-*s", width, text);
  else if (s->columns[column].right)
    pl_str_printf(out, "  %*s\n", width, text);
  else
    pl_str_printf(out, "  %s\n", text);
}

void pl_sheet_text(const pl_sheet *s, pl_str *out) {
  size_t *widths = NULL;
  if (s->count == 0) return;
  if (pl_alloc(s->column_count, sizeof widths[0], s->name, &widths, NULL) != PL_OK) {
    out->failed = true;
    return;
  }
  measure(s, widths);
  for (size_t i = 0; i < s->count; i++) {
    const pl_sheet_row *r = &s->rows[i], *last = i > 0 ? r - 1 : NULL;
    bool new_title = !last || strcmp(last->title, r->title) != 0;
    if (new_title) pl_str_printf(out, "%s%s\n", out->length > 0 ? "\n" : "", r->title);
    if (new_title || strcmp(last->group, r->group) != 0) {
      if (r->group[0]) pl_str_printf(out, "\n  %s\n", r->group);
      for (size_t c = 0; c < s->column_count; c++) write_cell(s, c, s->columns[c].heading, widths, out);
    }
    for (size_t c = 0; c < s->column_count; c++) write_cell(s, c, pl_str_text(&r->cells[c]), widths, out);
  }
  pl_str_append(out, "\n");
  for (size_t i = 0; i < s->notes.count; i++) pl_str_printf(out, "%s\n", s->notes.texts[i]);
  pl_free(widths);
}

void pl_warnings_text(const pl_notes *warnings, pl_str *out) {
  if (warnings->count > 0) pl_str_append(out, "\n");
  for (size_t i = 0; i < warnings->count; i++) pl_str_printf(out, "warning: %s\n", warnings->texts[i]);
}
