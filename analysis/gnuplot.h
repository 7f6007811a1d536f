/* One figure: a gnuplot script and its data, drawn as SVG and PNG. */
#ifndef PL_ANALYSIS_GNUPLOT_H
#define PL_ANALYSIS_GNUPLOT_H

#include "core/base/str.h"

/* {0} is an empty figure; released by pl_plot_free. */
typedef struct pl_plot {
  char name[48];     /* of its files: NAME.gp, NAME.dat, NAME.svg, NAME.png */
  int width, height; /* of the SVG in pixels; the PNG is finer */
  pl_str caption;
  pl_str script; /* draws from NAME.dat; terminal and output are set around it */
  pl_str data;
  size_t blocks; /* in data so far: gnuplot's "index" */
} pl_plot;

/* Adds one line of `count` numbers to the current data block; NaN is a gap. */
void pl_plot_numbers(pl_plot *p, const double *numbers, size_t count);

/* Ends the current block and returns its index. */
size_t pl_plot_end_block(pl_plot *p);

/* Appends 'text' as a gnuplot string. */
void pl_plot_quote(pl_str *script, const char *text);

void pl_plot_free(pl_plot *p);

typedef struct pl_drawn {
  bool missing;      /* there is no gnuplot */
  bool svg, png;     /* what was drawn */
  char problem[200]; /* gnuplot's first complaint, or "" */
} pl_drawn;

/* Writes the script and the data into `folder` and lets gnuplot draw them there. That gnuplot is missing or cannot draw
 * is told in *out and is no error. */
PL_MUST_CHECK pl_status pl_plot_draw(const pl_plot *p, const char *folder, pl_drawn *out, pl_err *e);

#endif
