#include "core/pipeline/measured.h"

#include "core/base/memory.h"

static bool is_shown(pl_op op) { return pl_op_computes(op) || op == PL_OP_UPDATE; }

/* Instructions of one update of a stage that compute: its body has one of each. */
static size_t computing_rows(const pl_schedule *s, size_t stage) {
  const pl_instructions *body = &s->program[stage].body;
  size_t n = 0;
  for (size_t i = 0; i < body->count; i++) n += pl_op_computes(body->items[i].op);
  return n;
}

/* The updates from the first to the last one that the stage traced whole. */
static pl_status find_whole(const pl_schedule *s, size_t stage, const pl_trace_rows *t, int64_t *first, int64_t *last,
                            pl_err *e) {
  const size_t whole = computing_rows(s, stage);
  int64_t low = INT64_MAX, high = -1;
  struct rows {
    size_t computing, updates;
  } *of = NULL;
  for (size_t i = 0; i < t->count; i++) {
    if (t->rows[i].update < low) low = t->rows[i].update;
    if (t->rows[i].update > high) high = t->rows[i].update;
  }
  *first = INT64_MAX;
  *last = -1;
  if (high < 0 || high - low >= (int64_t)t->count) return PL_OK;
  pl_status st = pl_alloc((size_t)(high - low) + 1, sizeof *of, "a trace", &of, e);
  if (st != PL_OK) return st;
  for (size_t i = 0; i < t->count; i++) {
    struct rows *r = &of[t->rows[i].update - low];
    r->computing += pl_op_computes(t->rows[i].op);
    r->updates += t->rows[i].op == PL_OP_UPDATE;
  }
  for (int64_t u = low; u <= high; u++) {
    if (of[u - low].computing != whole || of[u - low].updates == 0) continue;
    if (*first == INT64_MAX) *first = u;
    *last = u;
  }
  pl_free(of);
  return PL_OK;
}

static bool in_range(const pl_measured *m, int64_t update) { return update >= m->first && update <= m->last; }

static pl_status find_range(pl_measured *m, const pl_trace_rows *traces, pl_err *e) {
  m->first = 0;
  m->last = INT64_MAX;
  for (size_t p = 0; p < m->schedule->stages; p++) {
    int64_t first, last;
    pl_status st = find_whole(m->schedule, p, &traces[p], &first, &last, e);
    if (st != PL_OK) return st;
    if (first > m->first) m->first = first;
    if (last < m->last) m->last = last;
  }
  if (m->first <= m->last) return PL_OK;
  return pl_fail(e, PL_BAD, "the traces have no update in common that every stage of schedule %s traced whole",
                 m->schedule->name);
}

typedef struct mean {
  double sum, least;
  size_t count;
} mean;

static double mean_of(const mean *of, pl_op op) { return of[op].count > 0 ? of[op].sum / (double)of[op].count : 0; }

/* Of a whole stage: a chunk takes its share of computing, and may have an update of its own. */
static void find_costs(pl_measured *m, size_t stage, const pl_trace_rows *t) {
  const double chunks = (double)pl_schedule_chunks(m->schedule);
  mean of[PL_OP_BACKWARD_WEIGHT + 1] = {0};
  for (size_t i = 0; i < t->count; i++) {
    const pl_trace_row *r = &t->rows[i];
    const double seconds = r->end - r->start;
    if (!in_range(m, r->update)) continue;
    of[r->op].sum += seconds;
    if (of[r->op].count++ == 0 || seconds < of[r->op].least) of[r->op].least = seconds;
  }
  const double weight = mean_of(of, PL_OP_BACKWARD_WEIGHT);
  m->costs[stage] = (pl_stage_costs){
      .forward = chunks * mean_of(of, PL_OP_FORWARD),
      .backward = chunks * (mean_of(of, PL_OP_BACKWARD) + mean_of(of, PL_OP_BACKWARD_INPUT) + weight),
      .weight = chunks * weight,
      .update = of[PL_OP_UPDATE].least * (double)of[PL_OP_UPDATE].count / (double)(m->last - m->first + 1)};
}

/* Keeps the events of the updates from `base` on that stand for first..last. */
typedef struct keeper {
  const pl_measured *measured;
  pl_timeline *to;
  int64_t base;
} keeper;

static pl_status push(pl_timeline *t, const pl_event *event, pl_err *e) {
  if (t->count == t->room) {
    size_t room = 2 * t->room + 64;
    pl_status st = pl_grow(t->room, room, sizeof *t->events, "the times of a pipeline", &t->events, e);
    if (st != PL_OK) return st;
    t->room = room;
  }
  t->events[t->count++] = *event;
  if (event->end > t->end) t->end = event->end;
  return PL_OK;
}

static pl_status keep(void *self, const pl_event *event, pl_err *e) {
  const keeper *k = self;
  pl_event moved = *event;
  moved.update += k->measured->first - k->base;
  moved.version += k->measured->first - k->base;
  return in_range(k->measured, moved.update) ? push(k->to, &moved, e) : PL_OK;
}

/* Far from the start one update is like the other, so that a few stand for those before the first one. */
static pl_status simulate(pl_measured *m, int64_t steps, pl_err *e) {
  const pl_schedule *s = m->schedule;
  const pl_costs costs = {.each = m->costs};
  const int64_t warm = pl_schedule_ramp(s) + (int64_t)(2 * s->stages / s->microbatches) + 1,
                base = m->first < warm ? m->first : warm, after = base + m->last - m->first + 1,
                left = steps - 1 - m->last, tail = pl_schedule_tail(s) + 1;
  keeper k = {.measured = m, .to = &m->ideal, .base = base};
  return pl_schedule_simulate(s, &costs, 0, after + (left < 0 ? 0 : left < tail ? left : tail), keep, &k, e);
}

static pl_status differs(const pl_measured *m, size_t stage, pl_err *e) {
  return pl_fail(e, PL_BAD,
                 "the trace of stage %zu is not one of schedule %s with %zu microbatches: its instructions come in "
                 "another order",
                 stage, m->schedule->name, m->schedule->microbatches);
}

/* The next event of the stage that computes, or that is an update. */
static const pl_event *next_of(const pl_timeline *t, size_t stage, bool computes, size_t *at) {
  while (*at < t->count && (t->events[*at].stage != stage || pl_op_computes(t->events[*at].in->op) != computes)) ++*at;
  return *at < t->count ? &t->events[(*at)++] : NULL;
}

/* Another row of the update that was taken last: of another chunk, the later one counts. */
static bool repeats(const pl_event *last, const pl_trace_row *r) {
  return last && r->op == PL_OP_UPDATE && last->update == r->update;
}

/* A stage computes in the order of its program: its rows are the simulation's events at other times. It makes its
 * updates in order too, but each of them when it can. */
static pl_status take_stage(pl_measured *m, size_t stage, const pl_trace_rows *t, pl_err *e) {
  size_t at[2] = {0, 0}, update = 0;
  const pl_event *event, *last = NULL;
  for (size_t i = 0; i < t->count; i++) {
    const pl_trace_row *r = &t->rows[i];
    const bool computes = pl_op_computes(r->op);
    if (!is_shown(r->op) || !in_range(m, r->update)) continue;
    event = repeats(last, r) ? last : next_of(&m->ideal, stage, computes, &at[computes]);
    if (!event || event->in->op != r->op || event->update != r->update ||
        (computes && (event->in->microbatch != r->microbatch || event->in->chunk != r->chunk)))
      return differs(m, stage, e);
    pl_event real = *event;
    real.start = r->start;
    real.end = r->end;
    if (event == last) {
      m->real.events[update] = real;
      if (real.end > m->real.end) m->real.end = real.end;
      continue;
    }
    if (!computes) {
      last = event;
      update = m->real.count;
    }
    pl_status st = push(&m->real, &real, e);
    if (st != PL_OK) return st;
  }
  bool more = next_of(&m->ideal, stage, true, &at[1]) || next_of(&m->ideal, stage, false, &at[0]);
  return more ? differs(m, stage, e) : PL_OK;
}

static void start_at_zero(pl_timeline *t) {
  double start = t->count > 0 ? t->events[0].start : 0;
  for (size_t i = 0; i < t->count; i++)
    if (t->events[i].start < start) start = t->events[i].start;
  for (size_t i = 0; i < t->count; i++) {
    t->events[i].start -= start;
    t->events[i].end -= start;
  }
  t->end -= start;
}

static double duration(const pl_measured *m, const pl_event *event) {
  return event->in->op == PL_OP_UPDATE ? m->costs[event->stage].update : event->end - event->start;
}

/* Between the ends of the first and of the last update of each stage. */
static pl_status find_pace(const pl_measured *m, const pl_timeline *t, pl_pace *out, pl_err *e) {
  const size_t stages = m->schedule->stages;
  const bool alone = m->first == m->last;
  const double updates = alone ? 1 : (double)(m->last - m->first);
  double *from = NULL, sum = 0;
  pl_status st = PL_OK;
  PL_TRY(pl_alloc(stages, sizeof *from, "the times of a pipeline", &from, e));
  PL_TRY(pl_alloc(stages, sizeof *out->busy, "the times of a pipeline", &out->busy, e));
  for (size_t i = 0; i < t->count; i++) {
    const pl_event *v = &t->events[i];
    if (v->in->op == PL_OP_UPDATE && v->update == m->first && !alone) from[v->stage] = v->end;
    if (v->update > m->first || alone) out->busy[v->stage] += duration(m, v);
  }
  for (size_t i = 0; i < t->count; i++) {
    const pl_event *v = &t->events[i];
    if (v->in->op != PL_OP_UPDATE || v->update != m->last) continue;
    double period = (alone ? t->end : v->end - from[v->stage]) / updates;
    if (period > out->period) out->period = period;
  }
  for (size_t p = 0; p < stages; p++) {
    if (out->period > 0) out->busy[p] /= out->period * updates;
    sum += out->busy[p];
  }
  out->bubble = 1 - sum / (double)stages;
out:
  pl_free(from);
  return st;
}

pl_status pl_measured_make(const pl_schedule *s, const pl_trace_rows *traces, int64_t steps, pl_measured *out,
                           pl_err *e) {
  pl_status st = PL_OK;
  *out = (pl_measured){.schedule = s, .real = {.schedule = s}, .ideal = {.schedule = s}};
  PL_TRY(pl_alloc(s->stages, sizeof *out->costs, "the times of a pipeline", &out->costs, e));
  PL_TRY(find_range(out, traces, e));
  for (size_t p = 0; p < s->stages; p++) find_costs(out, p, &traces[p]);
  PL_TRY(simulate(out, steps, e));
  for (size_t p = 0; p < s->stages; p++) PL_TRY(take_stage(out, p, &traces[p], e));
  start_at_zero(&out->real);
  start_at_zero(&out->ideal);
  PL_TRY(find_pace(out, &out->real, &out->real_pace, e));
  PL_TRY(find_pace(out, &out->ideal, &out->ideal_pace, e));
out:
  return st;
}

void pl_measured_free(pl_measured *m) {
  pl_free(m->costs);
  pl_free(m->real_pace.busy);
  pl_free(m->ideal_pace.busy);
  pl_timeline_free(&m->real);
  pl_timeline_free(&m->ideal);
}

int64_t pl_measured_from(const pl_measured *m, int64_t updates) {
  int64_t more = m->last - m->first + 1 - updates;
  return m->first + (more > 0 ? more / 2 : 0);
}

/* What other updates do in the same time belongs to it. */
pl_status pl_measured_cut(const pl_measured *m, const pl_timeline *t, int64_t updates, pl_timeline *out, pl_err *e) {
  const int64_t from = pl_measured_from(m, updates), to = from + updates;
  double start = t->end, end = 0;
  pl_status st = PL_OK;
  *out = (pl_timeline){.schedule = t->schedule};
  for (size_t i = 0; i < t->count; i++) {
    const pl_event *v = &t->events[i];
    if (v->update < from || v->update >= to) continue;
    if (v->start < start) start = v->start;
    if (v->end > end) end = v->end;
  }
  for (size_t i = 0; i < t->count && st == PL_OK; i++)
    if (t->events[i].start >= start && t->events[i].end <= end) st = push(out, &t->events[i], e);
  start_at_zero(out);
  return st;
}
