/* What a pipeline really did beside what its schedule would do with the same times: the traces of its stages, and the
 * event simulation fed by their means. */
#ifndef PL_PIPELINE_MEASURED_H
#define PL_PIPELINE_MEASURED_H

#include "core/pipeline/timeline.h"
#include "core/pipeline/trace.h"

/* Of the updates after the first shown one, or of that one alone where there is no other. */
typedef struct pl_pace {
  double period; /* seconds of an update, of the slowest stage */
  double bubble; /* share of that time in which stages do not compute */
  double *busy;  /* [stages] share in which each computes */
} pl_pace;

typedef struct pl_measured {
  const pl_schedule *schedule; /* borrowed */
  int64_t first, last;         /* updates that all stages traced whole */
  pl_stage_costs *costs;   /* [stages] measured: means, of an update the shortest, as it may wait for other stages */
  pl_timeline real, ideal; /* of these updates, in seconds from the beginning of each; ideal: no message takes time */
  pl_pace real_pace, ideal_pace;
} pl_measured;

/* traces[schedule stages] of one run that makes `steps` updates. PL_BAD when they have no update in common or do not
 * follow the schedule. The caller frees it, also after a failure. */
PL_MUST_CHECK pl_status pl_measured_make(const pl_schedule *s, const pl_trace_rows *traces, int64_t steps,
                                         pl_measured *out, pl_err *e);
void pl_measured_free(pl_measured *m);

/* The part of a timeline that is drawn: `updates` updates in its middle, from pl_measured_from on, and what happens
 * meanwhile; from 0 again. Events are copied. The caller frees it, also after a failure. */
PL_MUST_CHECK pl_status pl_measured_cut(const pl_measured *m, const pl_timeline *t, int64_t updates, pl_timeline *out,
                                        pl_err *e);
int64_t pl_measured_from(const pl_measured *m, int64_t updates);

#endif
