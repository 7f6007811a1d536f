/* What `pipelag schedule` shows of a schedule: the grid, and what follows from it. */
#ifndef PL_RUNNERS_SCHEDULE_VIEW_H
#define PL_RUNNERS_SCHEDULE_VIEW_H

#include "core/pipeline/library.h"
#include "core/pipeline/timeline.h"

typedef struct pl_schedule_view {
  const pl_schedule *schedule;  /* borrowed */
  const pl_schedule_type *type; /* NULL: from a file */
  pl_costs costs;
  int64_t updates;
  pl_schedule_facts facts;
  int64_t *delay; /* [stages * microbatches] */
  pl_bubble bubble;
  pl_slack slack;
  pl_timeline timeline;
} pl_schedule_view;

/* Checks the schedule and derives everything. The caller frees the view, also after a failure. */
PL_MUST_CHECK pl_status pl_schedule_view_make(const pl_schedule *s, const pl_schedule_type *type, const pl_costs *costs,
                                              int64_t updates, pl_schedule_view *out, pl_err *e);
void pl_schedule_view_free(pl_schedule_view *v);

PL_MUST_CHECK pl_status pl_schedule_view_text(const pl_schedule_view *v, pl_str *out, pl_err *e);
pl_json *pl_schedule_view_json(const pl_schedule_view *v); /* new reference; NULL when memory is out */

#endif
