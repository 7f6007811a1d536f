/* `pipelag schedule [NAME] --plan`: what schedules would cost on machines that are not at hand. */
#ifndef PL_RUNNERS_SCHEDULE_PLAN_H
#define PL_RUNNERS_SCHEDULE_PLAN_H

#include "core/base/json.h"
#include "core/pipeline/library.h"
#include "core/pipeline/plan.h"
#include "runners/options.h"
#include "runners/schedule_pieces.h"

/* A schedule with its plan. */
typedef struct pl_plan_row {
  char name[PL_SCHEDULE_NAME];
  pl_pipeline_plan plan;
} pl_plan_row;

enum { PL_PLAN_ROWS = 24 };

typedef struct pl_plan_table {
  const pl_pieces *pieces; /* borrowed */
  size_t stages, microbatches;
  bool named; /* row 0 is what was asked for; the others are what it is compared with */
  pl_plan_row *rows[PL_PLAN_ROWS];
  size_t count;
  const pl_plan_row *one_f_one_b, *gpipe; /* the synchronous ones that the others are compared with */
  pl_str left_out;                        /* a line for each schedule that does not take these numbers */
} pl_plan_table;

/* Plans o's schedule beside 1f1b and gpipe, or without a name or file every schedule that takes o's stages and
 * microbatches. The caller frees *out, also after a failure. */
PL_MUST_CHECK pl_status pl_plan_table_make(const pl_options *o, const pl_pieces *pieces, pl_plan_table *out, pl_err *e);
void pl_plan_table_free(pl_plan_table *t);

void pl_plan_table_text(const pl_plan_table *t, pl_str *out);
pl_json *pl_plan_table_json(const pl_plan_table *t); /* new reference; NULL when memory is out */

/* The command with --plan or --model. */
PL_MUST_CHECK pl_status pl_schedule_plan(const pl_options *o, pl_err *e);

#endif
