/* What `status` prints. */
#ifndef PL_RUNNERS_STATUS_TEXT_H
#define PL_RUNNERS_STATUS_TEXT_H

#include "runners/launchers/slurm/states.h"

enum { PL_STATUS_REASONS = 32, PL_STATUS_REASON = 128 };

/* Runs that wait or run in Slurm by its state and reason: "PENDING Resources" 4. */
typedef struct pl_reason_count {
  pl_shown shown;
  char text[PL_STATUS_REASON];
  size_t runs;
} pl_reason_count;

typedef struct pl_status_counts {
  size_t runs;
  size_t shown[PL_SHOWN_STATES];
  size_t ends[PL_SHOWN_STATES][PL_ATTEMPT_ENDS];
  pl_reason_count reasons[PL_STATUS_REASONS]; /* the first ones that were met */
  size_t reason_count;
  bool more_reasons;   /* than those */
  double seconds_left; /* estimate; NaN when nothing can be said */
} pl_status_counts;

/* Runs that left the sweep file count only with `all`. Reads the results of a few finished runs for the estimate. */
void pl_status_count(const pl_states *s, bool all, pl_status_counts *out);

/* A bar, then one line per group; appended. */
void pl_status_print(const pl_states *s, const pl_status_counts *c, pl_str *out);

/* A line for each run, with its step, last loss, attempt, place and reason, read from its folder; appended. */
void pl_status_runs(const pl_states *s, bool all, pl_str *out);

/* One JSON object (new reference; NULL when memory is out), with a list of the runs when `runs`. */
pl_json *pl_status_json(const pl_states *s, const pl_status_counts *c, bool all, bool runs);

#endif
