/* Sheets as Markdown. */
#include <string.h>

#include "analysis/sheet.h"

void pl_markdown_escape(const char *text, pl_str *out) {
  for (; *text; text++) {
    if (strchr("|*<`\\", *text)) pl_str_append(out, "\\");
    pl_str_append_bytes(out, text, 1);
  }
}

static void write_head(const pl_sheet *s, pl_str *out) {
  pl_str_append(out, "\n|");
  for (size_t c = 0; c < s->column_count; c++) pl_str_printf(out, " %s |", s->columns[c].heading);
  pl_str_append(out, "\n|");
  for (size_t c = 0; c < s->column_count; c++) pl_str_append(out, s->columns[c].right ? "---:|" : "---|");
  pl_str_append(out, "\n");
}

static void write_row(const pl_sheet *s, const pl_sheet_row *r, pl_str *out) {
  pl_str_append(out, "|");
  for (size_t c = 0; c < s->column_count; c++) {
    pl_str_append(out, " ");
    pl_markdown_escape(pl_str_text(&r->cells[c]), out);
    pl_str_append(out, " |");
  }
  pl_str_append(out, "\n");
}

void pl_sheet_markdown(const pl_sheet *s, pl_str *out) {
  for (size_t i = 0; i < s->count; i++) {
    const pl_sheet_row *r = &s->rows[i], *last = i > 0 ? r - 1 : NULL;
    bool new_title = !last || strcmp(last->title, r->title) != 0;
    if (new_title) pl_str_printf(out, "\n### %s\n", r->title);
    if (new_title || strcmp(last->group, r->group) != 0) {
      if (r->group[0]) {
        pl_str_append(out, "\n#### ");
        pl_markdown_escape(r->group, out);
        pl_str_append(out, "\n");
      }
      write_head(s, out);
    }
    write_row(s, r, out);
  }
  for (size_t i = 0; i < s->notes.count && s->count > 0; i++) {
    pl_str_append(out, "\n");
    pl_markdown_escape(s->notes.texts[i], out);
    pl_str_append(out, "\n");
  }
}

void pl_warnings_markdown(const pl_notes *warnings, pl_str *out) {
  for (size_t i = 0; i < warnings->count; i++) {
    pl_str_append(out, "\n> **warning:** ");
    pl_markdown_escape(warnings->texts[i], out);
    pl_str_append(out, "\n");
  }
}
