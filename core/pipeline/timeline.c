#include "core/pipeline/timeline.h"

#include "core/base/memory.h"

/* The steady period is measured after PASSES of the stages, over at least PERIODS updates: with unequal stages the
 * start is forgotten slowly. Less, but at least two passes and one update, where that would be more than MANY
 * microbatches in all stages together. */
enum { PASSES = 8, PERIODS = 16, MANY = 1 << 20 };

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

typedef struct measured {
  double busy, end;
} measured;

static pl_status measure(void *self, const pl_event *event, pl_err *e) {
  (void)e;
  measured *m = self;
  m->busy += event->end - event->start;
  if (event->end > m->end) m->end = event->end;
  return PL_OK;
}

/* Between two updates: the busy time, and how long it took all stages together. */
typedef struct steady {
  int64_t from, to;
  double busy, passed;
  size_t stages, arrived; /* how many there are; how many have made update `to` */
} steady;

/* Ends the simulation with PL_STOPPED when nothing is left to see. */
static pl_status measure_steady(void *self, const pl_event *event, pl_err *e) {
  (void)e;
  steady *m = self;
  if (event->update >= m->from && event->update < m->to) m->busy += event->end - event->start;
  if (event->in->op != PL_OP_UPDATE) return PL_OK;
  if (event->update == m->from) m->passed -= event->end;
  if (event->update != m->to) return PL_OK;
  m->passed += event->end;
  return ++m->arrived == m->stages ? PL_STOPPED : PL_OK;
}

/* With slow links the times repeat after as many microbatches as the first stage has on the way, one for each stage:
 * that is a whole number of updates after stages / gcd(stages, microbatches) of them. */
static int64_t whole_periods(size_t stages, size_t microbatches) {
  size_t a = stages, b = microbatches;
  while (b > 0) {
    size_t rest = a % b;
    a = b;
    b = rest;
  }
  size_t cycle = stages / a, most = MANY / (stages * microbatches);
  size_t periods = (PERIODS + cycle - 1) / cycle * cycle;
  if (periods > most) periods = most;
  return periods > 0 ? (int64_t)periods : 1;
}

/* Updates until the start is forgotten. */
static int64_t settling(size_t stages, size_t microbatches) {
  size_t passes = MANY / (stages * stages);
  if (passes > PASSES) passes = PASSES;
  if (passes < 2) passes = 2;
  return (int64_t)((passes * stages + microbatches - 1) / microbatches);
}

pl_status pl_schedule_steady(const pl_schedule *s, const pl_costs *costs, pl_bubble *out, pl_err *e) {
  steady *m = NULL;
  const int64_t periods = whole_periods(s->stages, s->microbatches);
  *out = (pl_bubble){0};
  pl_status st = pl_alloc(1, sizeof *m, "the schedule's times", &m, e);
  if (st != PL_OK) return st;
  m->stages = s->stages;
  m->from = pl_schedule_ramp(s) + settling(s->stages, s->microbatches);
  m->to = m->from + periods;
  st = pl_schedule_simulate(s, costs, 0, m->to + 1 + pl_schedule_tail(s), measure_steady, m, e);
  if (st == PL_STOPPED) st = PL_OK;
  out->period = m->passed / ((double)s->stages * (double)periods);
  if (m->passed > 0) out->steady = 1 - m->busy / m->passed;
  pl_free(m);
  return st;
}

pl_status pl_schedule_bubble(const pl_schedule *s, const pl_costs *costs, int64_t updates, pl_bubble *out, pl_err *e) {
  measured cold = {0};
  pl_status st = pl_schedule_steady(s, costs, out, e);
  if (st == PL_OK) st = pl_schedule_simulate(s, costs, 0, updates, measure, &cold, e);
  out->end = cold.end;
  if (cold.end > 0) out->fraction = 1 - cold.busy / ((double)s->stages * cold.end);
  return st;
}

double pl_schedule_memory(const pl_schedule *s, const pl_schedule_facts *facts, size_t stage,
                          const pl_stage_sizes *sizes) {
  return (double)facts->depth[stage] * sizes->weights + sizes->gradient + sizes->optimizer +
         (double)facts->slots[stage] / (double)pl_schedule_chunks(s) * sizes->activations;
}
