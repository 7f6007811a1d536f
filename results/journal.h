/* The journal: the truth about a run's curves. Checksummed fixed-size records, written whole; killing the writer loses
 * at most the last one, or those of the time that pl_journal_gather names. */
#ifndef PL_RESULTS_JOURNAL_H
#define PL_RESULTS_JOURNAL_H

#include "results/times.h"

/* Opens RUN/journal for appending (creates it); cuts a torn last record off; writes the attempt record (attempt, start
 * step). Attempts count from 1: the highest found plus one. The start step is written at the first point. */
PL_MUST_CHECK pl_status pl_journal_open(const char *path, pl_journal **out, pl_err *e);
void pl_journal_close(pl_journal *j);
int64_t pl_journal_attempt(const pl_journal *j);

/* From now on records are written together: when the first that waits is older than that, when there is no room for
 * more, and before a sync; closing drops those that wait. Without it each record is written at once. */
PL_MUST_CHECK pl_status pl_journal_gather(pl_journal *j, double seconds, pl_err *e);

/* The sink functions over a pl_journal as self. */
pl_status pl_journal_write(void *journal, const pl_point *p, pl_err *e);
pl_status pl_journal_sync(void *journal, uint64_t *length, pl_err *e);
uint64_t pl_journal_length(void *journal);

/* A run's curve: for a step the highest attempt counts; steps strictly increasing. */
typedef struct pl_curve_row {
  pl_point point;
  int64_t attempt;
} pl_curve_row;

typedef struct pl_curve {
  pl_curve_row *rows; /* released by pl_curve_free */
  size_t count;
  int64_t attempts;
  size_t damaged; /* records whose checksum failed or that were torn */
  pl_times times; /* for curves.h5, where the caller read them too */
} pl_curve;

/* Reads a journal, also while it is being written. A missing file is an empty curve. Points of an earlier attempt
 * beyond the step where a later attempt started are dropped. Damaged records are skipped and counted. Series that the
 * journal does not have are NaN. */
PL_MUST_CHECK pl_status pl_curve_read(const char *path, pl_curve *out, pl_err *e);
void pl_curve_free(pl_curve *c);

/* The end of a journal without reading it through (for progress bars): the last whole point, false when there is none;
 * its step, -1 when there is none; the highest attempt, 0 when there is none. */
bool pl_journal_last_point(const char *path, pl_curve_row *out);
int64_t pl_journal_last_step(const char *path);
int64_t pl_journal_last_attempt(const char *path);

#endif
