#include "core/pipeline/timeline.h"

#include "core/base/memory.h"

enum { PERIODS = 4 }; /* updates over which the steady period is measured */

static pl_status keep(void *self, const pl_event *event, pl_err *e) {
  pl_timeline *t = self;
  if (t->count == t->room) {
    size_t room = 2 * t->room + 64;
    pl_status st = pl_grow(t->room, room, sizeof *t->events, "the schedule's times", &t->events, e);
    if (st != PL_OK) return st;
    t->room = room;
  }
  t->events[t->count++] = *event;
  if (event->end > t->end) t->end = event->end;
  return PL_OK;
}

pl_status pl_timeline_make(const pl_schedule *s, const pl_costs *costs, int64_t updates, pl_timeline *out, pl_err *e) {
  *out = (pl_timeline){.schedule = s};
  return pl_schedule_simulate(s, costs, 0, updates, keep, out, e);
}

void pl_timeline_free(pl_timeline *t) {
  pl_free(t->events);
  *t = (pl_timeline){0};
}

typedef struct delays {
  size_t microbatches;
  int64_t update;
  int64_t *out;
} delays;

static pl_status take_delay(void *self, const pl_event *event, pl_err *e) {
  (void)e;
  delays *d = self;
  if (event->in->op != PL_OP_FORWARD || event->update != d->update) return PL_OK;
  int64_t *delay = &d->out[event->stage * d->microbatches + event->in->microbatch];
  if (event->update - event->version > *delay) *delay = event->update - event->version;
  return PL_OK;
}

pl_status pl_schedule_delays(const pl_schedule *s, int64_t *out, pl_err *e) {
  const pl_costs costs = pl_costs_unit();
  delays d = {s->microbatches, pl_schedule_ramp(s), out};
  for (size_t i = 0; i < s->stages * s->microbatches; i++) out[i] = 0;
  return pl_schedule_simulate(s, &costs, 0, d.update + 1 + pl_schedule_tail(s), take_delay, &d, e);
}

/* Busy time, and the time between two updates of the stage whose two lie farthest apart. */
typedef struct measured {
  int64_t from, to; /* updates; from = to: none */
  double first[PL_SCHEDULE_STAGES];
  double busy, busy_between, end, period;
} measured;

static pl_status measure(void *self, const pl_event *event, pl_err *e) {
  (void)e;
  measured *m = self;
  m->busy += event->end - event->start;
  if (event->update >= m->from && event->update < m->to) m->busy_between += event->end - event->start;
  if (event->end > m->end) m->end = event->end;
  if (event->in->op != PL_OP_UPDATE) return PL_OK;
  if (event->update == m->from) m->first[event->stage] = event->end;
  double between = event->end - m->first[event->stage];
  if (event->update == m->to && between > m->period) m->period = between;
  return PL_OK;
}

pl_status pl_schedule_bubble(const pl_schedule *s, const pl_costs *costs, int64_t updates, pl_bubble *out, pl_err *e) {
  pl_status st = PL_OK;
  measured *cold = NULL, *warm = NULL;
  *out = (pl_bubble){0};
  PL_TRY(pl_alloc(1, sizeof *cold, "the schedule's times", &cold, e));
  PL_TRY(pl_alloc(1, sizeof *warm, "the schedule's times", &warm, e));
  PL_TRY(pl_schedule_simulate(s, costs, 0, updates, measure, cold, e));
  /* It takes two passes through the stages until the start is forgotten. */
  warm->from = pl_schedule_ramp(s) + (int64_t)(2 * s->stages / s->microbatches) + 1;
  warm->to = warm->from + PERIODS;
  PL_TRY(pl_schedule_simulate(s, costs, 0, warm->to + 1 + pl_schedule_tail(s), measure, warm, e));
  out->end = cold->end;
  out->period = warm->period / PERIODS;
  if (cold->end > 0) out->fraction = 1 - cold->busy / ((double)s->stages * cold->end);
  if (warm->period > 0) out->steady = 1 - warm->busy_between / ((double)s->stages * warm->period);
out:
  pl_free(cold);
  pl_free(warm);
  return st;
}

double pl_schedule_memory(const pl_schedule *s, const pl_schedule_facts *facts, size_t stage,
                          const pl_stage_sizes *sizes) {
  return (double)facts->depth[stage] * sizes->weights + sizes->gradient + sizes->optimizer +
         (double)facts->slots[stage] / (double)pl_schedule_chunks(s) * sizes->activations;
}
