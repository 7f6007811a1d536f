/* The options of the commands that compare runs. */
#ifndef PL_RUNNERS_GAP_OPTIONS_H
#define PL_RUNNERS_GAP_OPTIONS_H

#include "analysis/gap.h"
#include "runners/options.h"

enum { PL_MAX_AGAINST = 16 };

/* What the texts of --at, --select-on, --target, --against and --resolve mean. {0} is empty; `gap` points into it. */
typedef struct pl_gap_choice {
  pl_gap_options gap;
  char *texts; /* owned */
  int64_t seed;
  double target;
  const char *against[PL_MAX_AGAINST + 1];
} pl_gap_choice;

PL_MUST_CHECK pl_status pl_gap_choice_read(const pl_options *o, pl_gap_choice *out, pl_err *e);
void pl_gap_choice_free(pl_gap_choice *c);

#endif
