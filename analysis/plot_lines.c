#include "analysis/plot_lines.h"

#include <math.h>

enum { MOST_POINTS = 600 };

pl_line_panel pl_line_panel_new(void) { return (pl_line_panel){.low = INFINITY, .high = -INFINITY}; }

void pl_line_panel_free(pl_line_panel *panel) { pl_str_free(&panel->lines); }

static double place(const pl_mean_curve *m, const double *x, size_t i) { return x ? x[i] : (double)m->steps[i]; }

/* Every point counts for the range, as many are drawn as can be seen. */
static void add_points(pl_line_panel *panel, const pl_mean_curve *m, const double *x, double shown_from, pl_plot *p) {
  const size_t stride = m->count / MOST_POINTS + 1;
  const double last = place(m, x, m->count - 1);
  for (size_t i = 0; i < m->count; i++) {
    const double point[] = {place(m, x, i), m->values[i]};
    if (i % stride == 0 || i + 1 == m->count) pl_plot_numbers(p, point, 2);
    panel->low = fmin(panel->low, m->values[i]);
    if (point[0] >= shown_from * last) panel->high = fmax(panel->high, m->values[i]);
  }
  panel->last = fmax(panel->last, last);
}

void pl_line_panel_add(pl_line_panel *panel, const pl_arm *a, const pl_arm_cell *cell, size_t n, const char *what,
                       const pl_mean_curve *m, const double *x, double shown_from, pl_plot *p) {
  pl_str label = {0}, series = {0};
  pl_str_append(&series, what);
  pl_plot_cell_names(a, cell, n, &series, &label);
  pl_plot_series(p, pl_str_text(&series));
  add_points(panel, m, x, shown_from, p);
  pl_str_printf(&panel->lines, ", \\\n  '%s.dat' index %zu using 1:2 with lines lw 2", p->name, pl_plot_end_block(p));
  pl_plot_arm_style(a, &panel->lines);
  pl_str_append(&panel->lines, " title ");
  pl_plot_quote(&panel->lines, pl_str_text(&label));
  panel->curves++;
  panel->lines.failed |= label.failed || series.failed;
  pl_str_free(&series);
  pl_str_free(&label);
}

void pl_line_panel_draw(const pl_line_panel *panel, const char *title, const char *x_label, const char *y_label,
                        pl_str *body) {
  pl_str_append(body, "set title ");
  pl_plot_quote(body, title);
  pl_str_printf(body, "\nset xlabel \"%s\\n \" offset 0,0.6\nset ylabel %s\n", x_label, y_label);
  pl_plot_vertical(body, panel->low, panel->high, 0.05);
  pl_str_printf(body, "set xrange [0:%.9g]\nplot NaN notitle%s\n", panel->last, pl_str_text(&panel->lines));
  body->failed |= panel->lines.failed;
}
