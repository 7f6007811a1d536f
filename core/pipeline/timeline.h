/* When each instruction of a schedule runs, if computing and sending take given times: an event simulation of the
 * instruction lists. Stages wait for messages only: an UPDATE waits for no other stage. */
#ifndef PL_PIPELINE_TIMELINE_H
#define PL_PIPELINE_TIMELINE_H

#include "core/pipeline/schedule.h"

/* Of one microbatch in a whole stage, in any unit of time; a chunk takes its share, 1 / chunks. */
typedef struct pl_stage_costs {
  double forward, backward; /* backward: both halves */
  double weight;            /* the weight gradient's part of `backward`, where it is split */
  double update;
} pl_stage_costs;

typedef struct pl_costs {
  pl_stage_costs all;
  const pl_stage_costs *each; /* [stages], instead of `all`; NULL: all stages are equal; borrowed */
  double latency;             /* of a message */
  double transfer;            /* of a message: a link carries one at a time in each direction; its size / bandwidth */
} pl_costs;

/* Forward 1, backward 2 (1 + 1), everything else free: what the tables of the literature assume. */
pl_costs pl_costs_unit(void);

/* Something that a stage did: what computes, or an update. */
typedef struct pl_event {
  size_t stage;
  const pl_instruction *in; /* borrowed from the schedule */
  int64_t update;           /* that it works for */
  int64_t version;          /* of the weights that it reads; of an update: that it makes */
  double start, end;
} pl_event;

typedef pl_status (*pl_event_fn)(void *self, const pl_event *event, pl_err *e);

/* Runs the updates `done`..`total` - 1 of a schedule that pl_schedule_check has passed. Events of a stage come in
 * order; those of different stages do not. */
PL_MUST_CHECK pl_status pl_schedule_simulate(const pl_schedule *s, const pl_costs *costs, int64_t done, int64_t total,
                                             pl_event_fn event, void *self, pl_err *e);

typedef struct pl_timeline {
  const pl_schedule *schedule; /* borrowed */
  pl_event *events;
  size_t count, room;
  double end;
} pl_timeline;

/* All events of the updates 0..updates - 1. The caller frees it, also after a failure. */
PL_MUST_CHECK pl_status pl_timeline_make(const pl_schedule *s, const pl_costs *costs, int64_t updates, pl_timeline *out,
                                         pl_err *e);
void pl_timeline_free(pl_timeline *t);

/* Steady delay of every microbatch: newest version when its gradient is applied minus the version that its forward
 * read, the largest over chunks. out: [stages * microbatches]. */
PL_MUST_CHECK pl_status pl_schedule_delays(const pl_schedule *s, int64_t *out, pl_err *e);

typedef struct pl_bubble {
  double end;      /* when the last stage is ready, from a cold start */
  double fraction; /* of all stages' time from 0 to `end` that computes nothing */
  double period;   /* of one update when the pipeline runs */
  double steady;   /* the fraction of that period */
} pl_bubble;

/* `period` and `steady` alone; the others are 0. */
PL_MUST_CHECK pl_status pl_schedule_steady(const pl_schedule *s, const pl_costs *costs, pl_bubble *out, pl_err *e);
PL_MUST_CHECK pl_status pl_schedule_bubble(const pl_schedule *s, const pl_costs *costs, int64_t updates, pl_bubble *out,
                                           pl_err *e);

/* Whether what needs every stage (a global clip norm, a tied head) has time between an update and the first use of its
 * weights: derived with pl_costs_unit, so it belongs to the schedule, not to a machine. */
typedef struct pl_slack {
  bool exists;
  size_t stage, other; /* the worst pair: `stage` uses its weights when `other` is not ready; with one stage 0, 0 */
  double least;        /* from the other's last gradient of an update to the stage's first use of the next weights, in
                          forwards; negative where there is none; infinite with one stage */
} pl_slack;

PL_MUST_CHECK pl_status pl_schedule_slack(const pl_schedule *s, pl_slack *out, pl_err *e);

/* PL_BAD when there is no slack: "WHAT needs every stage, but in schedule pipedream update t of stage 3 needs data of
 * stage 0 that does not exist yet; allowed: ...". */
PL_MUST_CHECK pl_status pl_schedule_allow_global(const pl_schedule *s, const char *what, pl_err *e);

/* Bytes of a stage, per array and per microbatch of the whole stage. */
typedef struct pl_stage_sizes {
  double weights, gradient, optimizer, activations;
} pl_stage_sizes;

double pl_schedule_memory(const pl_schedule *s, const pl_schedule_facts *facts, size_t stage,
                          const pl_stage_sizes *sizes);

#endif
