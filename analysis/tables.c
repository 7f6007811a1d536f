#include "analysis/tables.h"

#include <math.h>
#include <string.h>

enum { COLUMNS = 10 };

static const struct {
  const char *heading;
  bool right; /* aligned */
} columns[COLUMNS] = {{"optimizer", false}, {"delay", false},   {"correction", false},  {"lr", true},
                      {"loss", true},       {"gap", true},      {"95% interval", true}, {"won back", true},
                      {"n", true},          {"finished", false}};

static const char *const legend[] = {
    "loss: mean final validation loss. gap: loss minus that of the synchronous run of the same seed, over n pairs; "
    "interval by paired t.",
    "won back: share of the uncorrected arm's gap that the correction recovers, with its 95% interval by Fieller."};
static const char simulation_note[] =
    "* simulated only: a global clip norm or a tied head on a per-stage delay, which a "
    "real pipeline cannot have.";

/* One row as shown; cells[0..COLUMNS-1]. */
typedef struct shown_row {
  pl_str cells[COLUMNS];
} shown_row;

static void free_shown(shown_row *r) {
  for (size_t i = 0; i < COLUMNS; i++) pl_str_free(&r->cells[i]);
}

/* Losses of language models need four decimals; those of test problems may be smaller than that. */
static void show_number(const pl_gap_row *r, double value, bool sign, pl_str *out) {
  bool small = fabs(r->loss.mean) < 0.05;
  if (sign)
    pl_str_printf(out, small ? "%+.3g" : "%+.4f", value);
  else
    pl_str_printf(out, small ? "%.3g" : "%.4f", value);
}

static void show_mean(const pl_gap_row *r, const pl_estimate *x, bool sign, pl_str *out) {
  if (x->n == 0)
    pl_str_append(out, "-");
  else
    show_number(r, x->mean, sign, out);
}

static void show_interval(const pl_gap_row *r, pl_str *out) {
  if (r->gap.n == 0) {
    pl_str_append(out, "-");
  } else if (isnan(r->gap.low)) {
    pl_str_printf(out, "no interval (n=%zu)", r->gap.n);
  } else {
    pl_str_append(out, "[");
    show_number(r, r->gap.low, true, out);
    pl_str_append(out, ", ");
    show_number(r, r->gap.high, true, out);
    pl_str_append(out, "]");
  }
}

static void show_won_back(const pl_gap_row *r, pl_str *out) {
  const pl_estimate *w = &r->won_back;
  if (w->n == 0 || isnan(w->mean))
    pl_str_append(out, "-");
  else if (r->gap_resolved)
    pl_str_printf(out, "%.0f%% [%.0f, %.0f]", 100 * w->mean, 100 * w->low, 100 * w->high);
  else if (w->n < 3)
    pl_str_printf(out, "%.0f%%", 100 * w->mean);
  else
    pl_str_append(out, "gap unresolved");
}

static void show_finished(const pl_gap_row *r, pl_str *out) {
  pl_str_printf(out, "%zu/%zu", r->finished, r->total);
  if (r->diverged > 0) pl_str_printf(out, ", %zu diverged", r->diverged);
  if (r->unfinished > 0) pl_str_printf(out, ", %zu unfinished", r->unfinished);
}

static void show_row(const pl_gap_row *r, shown_row *out) {
  pl_str *c = out->cells;
  pl_str_append(&c[0], r->optimizer);
  pl_str_printf(&c[1], "%s%s", r->delay, r->simulated ? "*" : "");
  pl_str_append(&c[2], r->correction);
  pl_str_printf(&c[3], "%.6g", r->lr);
  show_mean(r, &r->loss, false, &c[4]);
  show_mean(r, &r->gap, true, &c[5]);
  show_interval(r, &c[6]);
  show_won_back(r, &c[7]);
  pl_str_printf(&c[8], "%zu", r->sync ? r->loss.n : r->gap.n);
  show_finished(r, &c[9]);
}

/* Appends a heading for a reading. */
static void append_title(const pl_gap_table *t, pl_reading reading, pl_str *out) {
  switch (reading) {
  case PL_READING_BEST:
    pl_str_append(out, "Each arm at its own best learning rate");
    break;
  case PL_READING_TRANSFERRED:
    pl_str_append(out, "Every arm at the sync arm's best learning rate");
    break;
  case PL_READING_FIXED:
    pl_str_printf(out, "At %s", t->at);
    break;
  }
}

static bool any_simulated(const pl_gap_table *t) {
  for (size_t i = 0; i < t->count; i++)
    if (t->rows[i].simulated) return true;
  return false;
}

/* How one kind of output writes the parts of a table. */
typedef struct table_style {
  void (*title)(const char *text, pl_str *out);
  void (*group)(const char *text, pl_str *out);
  void (*head)(const size_t *widths, pl_str *out);
  void (*row)(const pl_str *cells, const size_t *widths, pl_str *out);
  void (*note)(const char *text, pl_str *out);
  void (*warning)(const char *text, pl_str *out);
} table_style;

static void measure(const pl_gap_table *t, size_t *widths) {
  for (size_t c = 0; c < COLUMNS; c++) widths[c] = strlen(columns[c].heading);
  for (size_t i = 0; i < t->count; i++) {
    shown_row shown = {0};
    show_row(&t->rows[i], &shown);
    for (size_t c = 0; c < COLUMNS; c++)
      if (shown.cells[c].length > widths[c]) widths[c] = shown.cells[c].length;
    free_shown(&shown);
  }
}

static void write_table(const pl_gap_table *t, const table_style *style, pl_str *out) {
  size_t widths[COLUMNS];
  measure(t, widths);
  for (size_t i = 0; i < t->count; i++) {
    const pl_gap_row *r = &t->rows[i], *last = i > 0 ? r - 1 : NULL;
    bool new_reading = !last || last->reading != r->reading;
    bool new_group = new_reading || strcmp(last->group, r->group) != 0;
    shown_row shown = {0};
    if (new_reading) {
      pl_str title = {0};
      append_title(t, r->reading, &title);
      style->title(pl_str_text(&title), out);
      pl_str_free(&title);
    }
    if (new_group) {
      if (r->group[0]) style->group(r->group, out);
      style->head(widths, out);
    }
    show_row(r, &shown);
    style->row(shown.cells, widths, out);
    free_shown(&shown);
  }
  pl_str_append(out, "\n");
  for (size_t i = 0; i < sizeof legend / sizeof legend[0]; i++) style->note(legend[i], out);
  if (any_simulated(t)) style->note(simulation_note, out);
  for (size_t i = 0; i < t->warning_count; i++) style->warning(t->warnings[i], out);
}

static void text_title(const char *text, pl_str *out) {
  pl_str_printf(out, "%s%s\n", out->length > 0 ? "\n" : "", text);
}

static void text_group(const char *text, pl_str *out) { pl_str_printf(out, "\n  %s\n", text); }

static void text_cell(size_t column, const char *text, const size_t *widths, pl_str *out) {
  int width = (int)widths[column];
  if (column + 1 == COLUMNS)
    pl_str_printf(out, "  %s\n", text);
  else
    pl_str_printf(out, columns[column].right ? "  %*s" : "  %-*s", width, text);
}

static void text_head(const size_t *widths, pl_str *out) {
  for (size_t c = 0; c < COLUMNS; c++) text_cell(c, columns[c].heading, widths, out);
}

static void text_row(const pl_str *cells, const size_t *widths, pl_str *out) {
  for (size_t c = 0; c < COLUMNS; c++) text_cell(c, pl_str_text(&cells[c]), widths, out);
}

static void text_note(const char *text, pl_str *out) { pl_str_printf(out, "%s\n", text); }
static void text_warning(const char *text, pl_str *out) { pl_str_printf(out, "warning: %s\n", text); }

void pl_table_text(const pl_gap_table *t, pl_str *out) {
  static const table_style style = {text_title, text_group, text_head, text_row, text_note, text_warning};
  write_table(t, &style, out);
}

void pl_markdown_escape(const char *text, pl_str *out) {
  for (; *text; text++) {
    if (strchr("|*<`\\", *text)) pl_str_append(out, "\\");
    pl_str_append_bytes(out, text, 1);
  }
}

static void markdown_title(const char *text, pl_str *out) { pl_str_printf(out, "\n### %s\n", text); }

static void markdown_group(const char *text, pl_str *out) {
  pl_str_append(out, "\n#### ");
  pl_markdown_escape(text, out);
  pl_str_append(out, "\n");
}

static void markdown_head(const size_t *widths, pl_str *out) {
  (void)widths;
  pl_str_append(out, "\n|");
  for (size_t c = 0; c < COLUMNS; c++) pl_str_printf(out, " %s |", columns[c].heading);
  pl_str_append(out, "\n|");
  for (size_t c = 0; c < COLUMNS; c++) pl_str_append(out, columns[c].right ? "---:|" : "---|");
  pl_str_append(out, "\n");
}

static void markdown_row(const pl_str *cells, const size_t *widths, pl_str *out) {
  (void)widths;
  pl_str_append(out, "|");
  for (size_t c = 0; c < COLUMNS; c++) {
    pl_str_append(out, " ");
    pl_markdown_escape(pl_str_text(&cells[c]), out);
    pl_str_append(out, " |");
  }
  pl_str_append(out, "\n");
}

static void markdown_note(const char *text, pl_str *out) {
  pl_str_append(out, "\n");
  pl_markdown_escape(text, out);
  pl_str_append(out, "\n");
}

static void markdown_warning(const char *text, pl_str *out) {
  pl_str_append(out, "\n> **warning:** ");
  pl_markdown_escape(text, out);
  pl_str_append(out, "\n");
}

void pl_table_markdown(const pl_gap_table *t, pl_str *out) {
  static const table_style style = {markdown_title, markdown_group, markdown_head,
                                    markdown_row,   markdown_note,  markdown_warning};
  write_table(t, &style, out);
}
