/* One figure: a gnuplot script and its data, drawn as SVG, PNG and PDF. */
#ifndef PL_ANALYSIS_GNUPLOT_H
#define PL_ANALYSIS_GNUPLOT_H

#include "core/base/str.h"

/* {0} is an empty figure; released by pl_plot_free. */
typedef struct pl_plot {
  char name[48];     /* of its files: NAME.gp, NAME.dat, NAME.csv, NAME.svg, NAME.png, NAME.pdf */
  int width, height; /* of the SVG in pixels; the PNG is finer */
  pl_str caption;
  pl_str script;       /* draws from NAME.dat; terminal and output are set around it */
  pl_str data;         /* the numbers as gnuplot reads them */
  pl_str csv;          /* the same with the series they belong to */
  const char *columns; /* heads of the numbers in the CSV, "updates,loss"; NULL: "x,y" */
  pl_str series;       /* to which the next numbers belong */
  size_t blocks;       /* in data so far: gnuplot's "index" */
} pl_plot;

/* Names what the following numbers belong to. */
void pl_plot_series(pl_plot *p, const char *name);

/* Adds one line of `count` numbers to the current data block; NaN is a gap. */
void pl_plot_numbers(pl_plot *p, const double *numbers, size_t count);

/* Ends the current block and returns its index. */
size_t pl_plot_end_block(pl_plot *p);

/* Appends 'text' as a gnuplot string. */
void pl_plot_quote(pl_str *script, const char *text);

void pl_plot_free(pl_plot *p);

enum { PL_DRAWN_SVG, PL_DRAWN_PNG, PL_DRAWN_PDF, PL_DRAWN_FORMATS };
extern const char *const pl_drawn_endings[PL_DRAWN_FORMATS]; /* "svg", "png", "pdf" */

typedef struct pl_drawn {
  bool missing;                        /* there is no gnuplot */
  bool as[PL_DRAWN_FORMATS];           /* what was drawn */
  char problem[PL_DRAWN_FORMATS][200]; /* gnuplot's first complaint, or "" */
} pl_drawn;

/* Writes the script and the data into `folder` and lets gnuplot draw them there, in the C locale and in UTC. `date`
 * (2026-11-30T18:00:00Z, or "" for none) is what the PDF tells as its date. That gnuplot is missing or cannot draw is
 * told in *out and is no error. */
PL_MUST_CHECK pl_status pl_plot_draw(const pl_plot *p, const char *folder, const char *date, pl_drawn *out, pl_err *e);

/* What `gnuplot --version` says, appended; nothing when there is none. */
void pl_gnuplot_version(pl_str *out);

#endif
