/* Sheets as tables of a paper, by the packages booktabs, graphicx and longtable. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plots.h"
#include "analysis/sheet.h"

enum { MOST_ROWS = 45 /* that fit on a page */ };

void pl_latex_escape(const char *text, pl_str *out) {
  char before = ' ';
  for (; *text; before = *text, text++) {
    bool digit = text[1] >= '0' && text[1] <= '9', open = strchr(" [(", before) != NULL;
    if (*text == '-' && digit && open)
      pl_str_append(out, "$-$");
    else if (*text == '\\')
      pl_str_append(out, "\\textbackslash{}");
    else if (*text == '~' || *text == '^')
      pl_str_printf(out, "\\%c{}", *text);
    else if (*text == '<' || *text == '>')
      pl_str_printf(out, "$%c$", *text);
    else if (*text == '"')
      pl_str_append(out, "''");
    else if (*text == '|')
      pl_str_append(out, "\\textbar{}");
    else if (strchr("#$%&_{}", *text))
      pl_str_printf(out, "\\%c", *text);
    else
      pl_str_append_bytes(out, text, 1);
  }
}

static size_t find_column(const pl_sheet *s, const char *heading) {
  for (size_t c = 0; c < s->column_count; c++)
    if (strcmp(s->columns[c].heading, heading) == 0) return c;
  return SIZE_MAX;
}

/* The number of seeds or pairs in the rows [first, last), where the table has a column of them. */
static void append_counts(const pl_sheet *s, size_t first, size_t last, pl_str *out) {
  size_t c = find_column(s, "n"), least = SIZE_MAX, most = 0;
  if (c == SIZE_MAX) c = find_column(s, "pairs");
  if (c == SIZE_MAX) return;
  for (size_t i = first; i < last; i++) {
    size_t n = (size_t)strtoull(pl_str_text(&s->rows[i].cells[c]), NULL, 10);
    if (n < least) least = n;
    if (n > most) most = n;
  }
  pl_str_append(out, " ");
  pl_plot_count_text(least, most, out);
  pl_str_append(out, ".");
}

static void append_caption(const pl_sheet *s, size_t first, size_t last, size_t number, pl_str *out) {
  pl_str_append(out, "\\caption{");
  pl_latex_escape(s->rows[first].title, out);
  if (s->rows[first].group[0]) pl_str_append(out, ", ");
  pl_latex_escape(s->rows[first].group, out);
  pl_str_append(out, ".");
  append_counts(s, first, last, out);
  for (size_t i = 0; i < s->notes.count; i++) {
    pl_str_append(out, " ");
    pl_latex_escape(s->notes.texts[i], out);
  }
  pl_str_printf(out, "}\n\\label{tab:%s-%zu}\n", s->file, number);
}

static void append_head(const pl_sheet *s, pl_str *out) {
  pl_str_append(out, "\\toprule\n");
  for (size_t c = 0; c < s->column_count; c++) {
    pl_str_append(out, c > 0 ? " & " : "");
    pl_latex_escape(s->columns[c].heading, out);
  }
  pl_str_append(out, " \\\\\n\\midrule\n");
}

/* An empty group in front: a row that begins with a bracket would be an argument of the line before. */
static void append_row(const pl_sheet *s, const pl_sheet_row *r, pl_str *out) {
  pl_str_append(out, "{}");
  for (size_t c = 0; c < s->column_count; c++) {
    pl_str_append(out, c > 0 ? " & " : "");
    pl_latex_escape(pl_str_text(&r->cells[c]), out);
  }
  pl_str_append(out, " \\\\\n");
}

static void append_alignment(const pl_sheet *s, pl_str *out) {
  pl_str_append(out, "{@{}");
  for (size_t c = 0; c < s->column_count; c++) pl_str_append(out, s->columns[c].right ? "r" : "l");
  pl_str_append(out, "@{}}\n");
}

/* A floating table, shrunk when it is wider than the line; one over several pages when it is long. */
static void append_table(const pl_sheet *s, size_t first, size_t last, size_t number, pl_str *out) {
  bool pages = last - first > MOST_ROWS;
  pl_str_append(out, pages ? "\n{\\tiny\\setlength{\\tabcolsep}{2pt}\n\\begin{longtable}"
                           : "\n\\begin{table}\n\\centering\n");
  if (pages) append_alignment(s, out);
  append_caption(s, first, last, number, out);
  if (pages) {
    pl_str_append(out, "\\\\\n");
    append_head(s, out);
    pl_str_append(out, "\\endhead\n");
  } else {
    pl_str_append(out, "\\footnotesize\n\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
                       "\\begin{tabular}");
    append_alignment(s, out);
    append_head(s, out);
  }
  for (size_t i = first; i < last; i++) append_row(s, &s->rows[i], out);
  pl_str_append(out, "\\bottomrule\n");
  pl_str_append(out, pages ? "\\end{longtable}}\n" : "\\end{tabular}}\n\\end{table}\n");
}

void pl_sheet_latex(const pl_sheet *s, pl_str *out) {
  size_t number = 0;
  pl_str_append(out, "% \\usepackage{booktabs,graphicx,longtable}\n");
  for (size_t first = 0, last; first < s->count; first = last) {
    for (last = first; last < s->count && strcmp(s->rows[last].title, s->rows[first].title) == 0 &&
                       strcmp(s->rows[last].group, s->rows[first].group) == 0;
         last++)
      continue;
    append_table(s, first, last, ++number, out);
  }
}
