/* Which bars a figure has. Private to plot_bars*.c. */
#ifndef PL_ANALYSIS_PLOT_BARS_H
#define PL_ANALYSIS_PLOT_BARS_H

#include "analysis/plots.h"

/* What the bars measure. */
typedef struct pl_bar_measure {
  pl_estimate (*of)(const pl_gap_row *r); /* n is 0 where there is no bar */
  const char *title, *axis, *columns, *interval;
  const char *label; /* gnuplot: a number as text */
  double low, high;  /* beyond these bars and intervals are cut; NaN: nowhere */
  const char *extra; /* of the script */
} pl_bar_measure;

typedef struct pl_bar_plot {
  const pl_bar_measure *measure;
  const pl_arm *arms;      /* of the group */
  const pl_gap_row **rows; /* of each arm, NULL where it has no bar */
  size_t count;
  const pl_arm **series; /* an arm of each optimizer and correction */
  size_t series_count;
  size_t *delays; /* delay ranks that occur, ascending */
  size_t delay_count;
  size_t most_bars;  /* at one delay */
  int bar_width;     /* pixels */
  double delay_room; /* pixels between two delays */
} pl_bar_plot;

/* The bars of a group's arms; released by pl_bars_free. */
PL_MUST_CHECK pl_status pl_bars_collect(const pl_bar_measure *m, const pl_plot_input *in, pl_arm_range group,
                                        pl_bar_plot *out, pl_err *e);
void pl_bars_free(pl_bar_plot *b);

/* Whether two arms belong to one series: the same optimizer and correction. */
bool pl_bar_same_series(const pl_arm *a, const pl_arm *b);

/* How many of the first `series` have a bar at a delay, and which place that has among the delays. */
size_t pl_bars_at(const pl_bar_plot *b, size_t series, size_t rank);
size_t pl_bar_delay_place(const pl_bar_plot *b, size_t rank);

#endif
