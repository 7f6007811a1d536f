/* The figures of a run's outcome as a table: result.json and the collected file have them under the same names. */
#ifndef PL_RESULTS_FIGURES_H
#define PL_RESULTS_FIGURES_H

#include "core/train/trainer.h"

typedef struct pl_figure {
  const char *name;
  bool integer;  /* int64_t, else double */
  size_t offset; /* in pl_outcome */
} pl_figure;

enum { PL_FIGURES = 12 };
extern const pl_figure pl_figures[PL_FIGURES];

/* The figures of a run that trained nothing: -1, 0 and NaN. */
extern const pl_outcome pl_outcome_nothing;

int64_t pl_figure_int(const pl_figure *f, const pl_outcome *o);
double pl_figure_number(const pl_figure *f, const pl_outcome *o);

#endif
