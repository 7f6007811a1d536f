/* A panel of lines, one for each arm. Private to plot_*.c. */
#ifndef PL_ANALYSIS_PLOT_LINES_H
#define PL_ANALYSIS_PLOT_LINES_H

#include "analysis/plots.h"

typedef struct pl_line_panel {
  pl_str lines; /* of the plot command */
  size_t curves;
  double low, high, last; /* the vertical range, and where the horizontal one ends */
} pl_line_panel;

/* Begins an empty one; released by pl_line_panel_free. */
pl_line_panel pl_line_panel_new(void);
void pl_line_panel_free(pl_line_panel *panel);

/* One line: the curve of an arm at a learning rate, against x[], or against its updates where that is NULL; n is shown
 * in the legend. `what` ("drift of ") begins its name in the CSV. The vertical range holds all values, and no higher
 * ones than those from `shown_from` of the horizontal range on. */
void pl_line_panel_add(pl_line_panel *panel, const pl_arm *a, const pl_arm_cell *cell, size_t n, const char *what,
                       const pl_mean_curve *m, const double *x, double shown_from, pl_plot *p);

/* Appends the panel's commands; the label of the vertical axis is a gnuplot string. */
void pl_line_panel_draw(const pl_line_panel *panel, const char *title, const char *x_label, const char *y_label,
                        pl_str *body);

#endif
