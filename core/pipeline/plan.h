/* Planning: what a schedule would do on machines that are not at hand, from what its stages and links cost. */
#ifndef PL_PIPELINE_PLAN_H
#define PL_PIPELINE_PLAN_H

#include "core/pipeline/timeline.h"

typedef struct pl_stage_plan {
  double busy;   /* share of the step in which the stage computes */
  double memory; /* bytes; NaN when no sizes are given */
} pl_stage_plan;

typedef struct pl_pipeline_plan {
  double step;    /* time of an update while the pipeline runs, in the costs' unit */
  double bubble;  /* share of all stages' time in it that computes nothing */
  int64_t delay;  /* of the stage with the largest, in updates */
  double link;    /* share of the step in which a link between stages is taken, in each direction */
  size_t slowest; /* the stage that computes longest: no schedule's step is shorter than its time */
  size_t largest; /* the stage with the most memory */
  double memory;  /* bytes of all stages; NaN when no sizes are given */
  pl_stage_plan stage[PL_SCHEDULE_STAGES];
} pl_pipeline_plan;

/* slots, depth and delay as pl_schedule_check derives them, for a schedule that it would pass and that splits all of a
 * stage's backwards or none: read off the lists instead of played, which takes a tenth of the time. The rest is 0. */
void pl_schedule_read_facts(const pl_schedule *s, pl_schedule_facts *out);

/* An event simulation gives the times. `facts`: slots, depth and delay of the schedule. sizes: [stages], NULL when they
 * are not known. */
PL_MUST_CHECK pl_status pl_pipeline_plan_make(const pl_schedule *s, const pl_schedule_facts *facts,
                                              const pl_costs *costs, const pl_stage_sizes *sizes, pl_pipeline_plan *out,
                                              pl_err *e);

/* How many more tokens, as a share, a schedule may need to the same loss until it takes as long as a synchronous one:
 * 0.438 for a step of 1 against 1.438. */
double pl_pipeline_overhead(const pl_pipeline_plan *plan, const pl_pipeline_plan *synchronous);

#endif
