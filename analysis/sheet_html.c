/* Sheets as tables of a page, which analysis/html/report.js sorts and filters. */
#include <string.h>

#include "analysis/sheet.h"

void pl_html_escape(const char *text, pl_str *out) {
  for (; *text; text++) {
    switch (*text) {
    case '&':
      pl_str_append(out, "&amp;");
      break;
    case '<':
      pl_str_append(out, "&lt;");
      break;
    case '>':
      pl_str_append(out, "&gt;");
      break;
    case '"':
      pl_str_append(out, "&quot;");
      break;
    case '\'':
      pl_str_append(out, "&#39;");
      break;
    case '\n':
      pl_str_append(out, "&#10;");
      break;
    default:
      pl_str_append_bytes(out, text, 1);
    }
  }
}

static bool same_title(const pl_sheet *s, size_t a, size_t b) {
  return strcmp(s->rows[a].title, s->rows[b].title) == 0;
}

/* Whether the rows [first, last) belong to several groups, so that a column has to tell which. */
static bool has_groups(const pl_sheet *s, size_t first, size_t last) {
  for (size_t i = first + 1; i < last; i++)
    if (strcmp(s->rows[i].group, s->rows[first].group) != 0) return true;
  return false;
}

static void write_head(const pl_sheet *s, bool groups, pl_str *out) {
  pl_str_append(out, "<thead><tr>");
  if (groups) pl_str_append(out, "<th scope=\"col\">group</th>");
  for (size_t c = 0; c < s->column_count; c++) {
    pl_str_append(out, s->columns[c].right ? "<th scope=\"col\" class=\"number\">" : "<th scope=\"col\">");
    pl_html_escape(s->columns[c].heading, out);
    pl_str_append(out, "</th>");
  }
  pl_str_append(out, "</tr></thead>\n<tbody>\n");
}

static void write_row(const pl_sheet *s, const pl_sheet_row *r, bool groups, pl_str *out) {
  pl_str_append(out, "<tr");
  if (r->detail.length > 0) {
    pl_str_append(out, " data-detail=\"");
    pl_html_escape(pl_str_text(&r->detail), out);
    pl_str_append(out, "\"");
  }
  pl_str_append(out, ">");
  if (groups) {
    pl_str_append(out, "<td class=\"group\">");
    pl_html_escape(r->group, out);
    pl_str_append(out, "</td>");
  }
  for (size_t c = 0; c < s->column_count; c++) {
    pl_str_append(out, s->columns[c].right ? "<td class=\"number\">" : "<td>");
    pl_html_escape(pl_str_text(&r->cells[c]), out);
    pl_str_append(out, "</td>");
  }
  pl_str_append(out, "</tr>\n");
}

/* The rows [first, last) of one title. */
static void write_table(const pl_sheet *s, size_t number, size_t first, size_t last, pl_str *out) {
  bool groups = has_groups(s, first, last);
  pl_str_printf(out, "<section class=\"sheet\" id=\"%s-%zu\">\n<h3>", s->file, number);
  pl_html_escape(s->rows[first].title, out);
  pl_str_append(out, "</h3>\n");
  if (!groups && s->rows[first].group[0]) {
    pl_str_append(out, "<p class=\"group\">");
    pl_html_escape(s->rows[first].group, out);
    pl_str_append(out, "</p>\n");
  }
  pl_str_printf(
      out,
      "<p class=\"tools\"><label>Filter <input type=\"search\" placeholder=\"adamw delay:1\"></label> <output "
      "aria-live=\"polite\">%zu rows</output> <a href=\"%s.csv\">CSV</a></p>\n<div class=\"scroll\"><table>\n",
      last - first, s->file);
  write_head(s, groups, out);
  for (size_t i = first; i < last; i++) write_row(s, &s->rows[i], groups, out);
  pl_str_append(out, "</tbody></table></div>\n</section>\n");
}

void pl_sheet_html(const pl_sheet *s, pl_str *out) {
  size_t number = 0;
  for (size_t first = 0, last; first < s->count; first = last) {
    for (last = first; last < s->count && same_title(s, first, last); last++) continue;
    write_table(s, ++number, first, last, out);
  }
  for (size_t i = 0; i < s->notes.count && s->count > 0; i++) {
    pl_str_append(out, "<p class=\"note\">");
    pl_html_escape(s->notes.texts[i], out);
    pl_str_append(out, "</p>\n");
  }
}
