/* What a heat map shows. Private to plot_heat*.c. */
#ifndef PL_ANALYSIS_PLOT_HEAT_H
#define PL_ANALYSIS_PLOT_HEAT_H

#include "analysis/key_values.h"
#include "analysis/plots.h"

/* One axis: its values as texts, numbers by size, other texts in order of appearance behind them. */
typedef struct pl_heat_axis {
  const char *key;
  char **texts;
  size_t count;
} pl_heat_axis;

typedef struct pl_heat_spot {
  uint64_t panel;
  size_t at[2]; /* places on the axes */
  const pl_arm *arm;
  double value; /* NaN: nothing finished */
  size_t n, diverged;
} pl_heat_spot;

/* {0} is empty; released by pl_heat_free. */
typedef struct pl_heat {
  pl_heat_axis axes[2];
  bool by_rate; /* an axis is the learning rate: losses are shown, else gaps */
  pl_heat_spot *spots;
  size_t count;
  double low, high;
  size_t least, most;   /* seeds */
  pl_key_values keys;   /* of the arms: what titles tell panels apart by */
  const char **ignored; /* the axes and what goes along with them, closed by NULL */
} pl_heat;

/* The keys that are asked for, or learning rate and delay, over the arms of the range. */
PL_MUST_CHECK pl_status pl_heat_collect(const pl_plot_input *in, pl_arm_range range, pl_heat *out, pl_err *e);
void pl_heat_free(pl_heat *h);

/* What varies between panels and is no axis: "optimizer adamw, correction ef". Appended. */
void pl_heat_title(const pl_heat *h, const pl_arm *a, pl_str *out);

#endif
