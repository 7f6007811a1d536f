/* When a stage executed which instruction: kept in memory while it runs, written to RUN/trace.<stage>.tsv at the end.
 */
#ifndef PL_PIPELINE_TRACE_H
#define PL_PIPELINE_TRACE_H

#include "core/pipeline/schedule.h"

typedef struct pl_trace_row {
  int64_t update; /* that the instruction works for */
  pl_op op;
  size_t microbatch, chunk;
  double start, end; /* seconds on a clock that all stages share */
} pl_trace_row;

typedef struct pl_trace pl_trace;

/* Room for `room` rows. Nothing is written before the end. */
PL_MUST_CHECK pl_status pl_trace_open(const char *path, size_t room, pl_trace **out, pl_err *e);

/* Neither allocates nor writes. NULL keeps nothing; rows beyond the room are left out. */
void pl_trace_add(pl_trace *t, const pl_trace_row *row);

/* Replaces the file and releases the trace, also after a failure; NULL allowed. */
PL_MUST_CHECK pl_status pl_trace_close(pl_trace *t, pl_err *e);

typedef struct pl_trace_rows {
  pl_trace_row *rows;
  size_t count;
} pl_trace_rows;

/* PL_NOTHING, without text, when there is no such file; PL_BAD names file and line where it is no trace. The caller
 * frees the rows, also after a failure. */
PL_MUST_CHECK pl_status pl_trace_read(const char *path, pl_trace_rows *out, pl_err *e);
void pl_trace_rows_free(pl_trace_rows *r);

#endif
