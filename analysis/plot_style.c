/* What the figures share. */
#include <math.h>
#include <string.h>

#include "analysis/plots.h"

pl_arm_range pl_arms_of_group(const pl_arms *a, size_t first) {
  size_t last = first;
  while (last < a->count && a->arms[last].group_rank == a->arms[first].group_rank) last++;
  return (pl_arm_range){first, last};
}

pl_arm_range pl_arms_of_optimizer(const pl_arms *a, size_t first) {
  pl_arm_range group = pl_arms_of_group(a, first);
  size_t last = first;
  while (last < group.last && a->arms[last].optimizer_rank == a->arms[first].optimizer_rank) last++;
  return (pl_arm_range){first, last};
}

const char *pl_plot_color(size_t rank) {
  static const char *const colors[] = {"#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7",
                                       "#E69F00", "#56B4E9", "#999999", "#F0E442"};
  return colors[rank % (sizeof colors / sizeof colors[0])];
}

void pl_plot_arm_style(const pl_arm *a, pl_str *script) {
  static const char *const dashes[] = {"1", "(9,4)", "(2,3)", "(9,3,2,3)", "(9,3,2,3,2,3)", "(4,4)"};
  pl_str_printf(script, " lc rgb '%s' dt %s", pl_plot_color(a->delay_rank),
                dashes[a->correction_rank % (sizeof dashes / sizeof dashes[0])]);
}

void pl_plot_arm_label(const pl_arm *a, pl_str *label) {
  if (a->sync) {
    pl_str_printf(label, "sync%s", a->delay + 1);
    return;
  }
  pl_str_printf(label, "delay %s", a->delay);
  if (a->config->correction_count > 0) pl_str_printf(label, ", %s", a->correction);
}

void pl_plot_cell_names(const pl_arm *a, const pl_arm_cell *cell, size_t n, pl_str *series, pl_str *label) {
  pl_plot_arm_label(a, label);
  pl_str_printf(series, "%s, %s", a->optimizer, pl_str_text(label));
  pl_str_append(label, " (");
  if (!isnan(pl_arm_cell_rate(cell))) {
    pl_str_printf(series, ", lr %.4g", cell->lr);
    pl_str_printf(label, "lr %.4g, ", cell->lr);
  }
  pl_str_printf(label, "n=%zu)", n);
}

bool pl_plot_spans_decades(double low, double high) { return low > 0 && isfinite(high) && high > 30 * low; }

void pl_plot_vertical(pl_str *script, double low, double high, double share) {
  if (pl_plot_spans_decades(low, high)) {
    double margin = pow(high / low, share);
    pl_str_printf(script, "set logscale y\nset yrange [%.9g:%.9g]\n", low / margin, high * margin);
  } else if (low < high) {
    double margin = share * (high - low);
    pl_str_printf(script, "unset logscale y\nset yrange [%.9g:%.9g]\n", low - margin, high + margin);
  } else {
    pl_str_append(script, "unset logscale y\nset yrange [*:*]\n");
  }
}

/* How much of the text fits on a line: up to its end, or to the last blank within `width`, or the whole word when there
 * is none. */
static size_t line_length(const char *text, size_t width) {
  size_t length = strcspn(text, "\n"), end = width;
  if (length <= width) return length;
  while (end > 0 && text[end] != ' ') end--;
  return end > 0 ? end : strcspn(text, " \n");
}

size_t pl_plot_heading(pl_str *script, const char *title, const char *detail, size_t width) {
  size_t lines = 1;
  pl_plot_quote(script, title);
  while (*detail) {
    pl_str line = {0};
    size_t length = line_length(detail, width);
    pl_str_append_bytes(&line, detail, length);
    pl_str_append(script, ".\"\\n\".");
    pl_plot_quote(script, pl_str_text(&line));
    if (line.failed) script->failed = true;
    pl_str_free(&line);
    detail += length;
    detail += strspn(detail, " \n");
    lines++;
  }
  return lines;
}

void pl_plot_count_text(size_t low, size_t high, pl_str *out) {
  if (low > high) return;
  pl_str_printf(out, "n = %zu", low);
  if (low < high) pl_str_printf(out, " to %zu", high);
}

void pl_plot_panels(pl_plot *p, const char *title, const char *group, size_t panels, size_t legend_rows,
                    const pl_str *body) {
  enum { MOST_COLUMNS = 3 };
  pl_plot_panel_rows(p, title, group, panels, panels < MOST_COLUMNS ? panels : MOST_COLUMNS, legend_rows, body);
}

void pl_plot_panel_rows(pl_plot *p, const char *title, const char *group, size_t panels, size_t columns,
                        size_t legend_rows, const pl_str *body) {
  enum { PANEL_WIDTH = 440, PANEL_HEIGHT = 370, LINE_HEIGHT = 20, LETTER_WIDTH = 9 };
  size_t rows = (panels + columns - 1) / columns;
  pl_str_printf(&p->script, "set multiplot layout %zu,%zu title ", rows, columns);
  size_t lines = pl_plot_heading(&p->script, title, group, columns * PANEL_WIDTH / LETTER_WIDTH);
  p->width = (int)(columns * PANEL_WIDTH);
  p->height = (int)(rows * (PANEL_HEIGHT + legend_rows * LINE_HEIGHT) + (lines + 1) * LINE_HEIGHT);
  pl_str_append(&p->script,
                "\nset grid lc rgb '#DDDDDD' lt 1 lw 0.5\nset border 3 lc rgb '#444444'\n"
                "set tics nomirror\nset key bmargin center Left reverse vertical maxcols 1 samplen 4 font ',10'\n");
  pl_str_append(&p->script, pl_str_text(body));
  pl_str_append(&p->script, "unset multiplot\n");
}
