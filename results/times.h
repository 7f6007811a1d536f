/* The journal of what the stages of a run spend their time on: RUN/times, for runs with more than one stage. It follows
 * the rules of `journal`. */
#ifndef PL_RESULTS_TIMES_H
#define PL_RESULTS_TIMES_H

#include "core/train/log_sink.h"

typedef struct pl_journal pl_journal;

/* Records of a run at the logged steps, of the highest attempt that has the step; steps strictly increasing. */
typedef struct pl_times {
  size_t stages, count;  /* stages: with the replicas; 0 when nothing was recorded */
  int64_t *steps;        /* [count] */
  int64_t *attempts_of;  /* [count] */
  pl_stage_times *times; /* [count * stages], step by step */
  size_t damaged;        /* records whose checksum failed or that were torn */
  int64_t attempts;      /* the highest one that recorded anything */
} pl_times;

/* Opens RUN/times of a run with so many stages for appending, as attempt `attempt` of the run. PL_FAIL when it has
 * records of another number of stages. Closed by pl_journal_close. */
PL_MUST_CHECK pl_status pl_times_open(const char *path, size_t stages, int64_t attempt, pl_journal **out, pl_err *e);

/* times[stages] */
PL_MUST_CHECK pl_status pl_times_write(pl_journal *j, int64_t step, const pl_stage_times *times, pl_err *e);

/* Reads it, also while it is being written. A missing file is empty. */
PL_MUST_CHECK pl_status pl_times_read(const char *path, pl_times *out, pl_err *e);
void pl_times_free(pl_times *t);

/* Sums over all records and stages. */
pl_stage_times pl_times_total(const pl_times *t);

/* Share of the time in which stages do not compute; NaN without any time. */
double pl_stage_times_bubble(const pl_stage_times *total);

#endif
