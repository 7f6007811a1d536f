#include "core/base/memory.h"
#include "core/pipeline/mailbox.h"
#include "core/pipeline/player.h"
#include "core/pipeline/timeline.h"

/* A link in one direction. */
typedef struct wire {
  pl_mailbox box;
  double free; /* when it can carry the next message */
} wire;

typedef struct simulation {
  const pl_schedule *schedule;
  const pl_costs *costs;
  pl_event_fn event;
  void *self;
  double clock[PL_SCHEDULE_STAGES];
  wire down[PL_SCHEDULE_STAGES], up[PL_SCHEDULE_STAGES];
} simulation;

pl_costs pl_costs_unit(void) { return (pl_costs){.all = {.forward = 1, .backward = 2, .weight = 1}}; }

static double duration(const simulation *m, size_t stage, pl_op op) {
  const pl_stage_costs *c = m->costs->each ? &m->costs->each[stage] : &m->costs->all;
  const double chunks = (double)pl_schedule_chunks(m->schedule);
  switch (op) {
  case PL_OP_FORWARD:
    return c->forward / chunks;
  case PL_OP_BACKWARD:
    return c->backward / chunks;
  case PL_OP_BACKWARD_INPUT:
    return (c->backward - c->weight) / chunks;
  case PL_OP_BACKWARD_WEIGHT:
    return c->weight / chunks;
  default:
    return c->update;
  }
}

static pl_status compute(simulation *m, size_t stage, const pl_instruction *in, int64_t update, pl_err *e) {
  int64_t newest = update - in->ahead;
  pl_event event = {.stage = stage, .in = in, .update = update, .start = m->clock[stage]};
  event.version = in->op == PL_OP_UPDATE ? update + 1 : newest > in->lag ? newest - in->lag : 0;
  event.end = event.start + duration(m, stage, in->op);
  m->clock[stage] = event.end;
  return m->event(m->self, &event, e);
}

static pl_status send(simulation *m, size_t stage, wire *w, pl_letter letter, pl_err *e) {
  double start = m->clock[stage] > w->free ? m->clock[stage] : w->free;
  w->free = start + m->costs->transfer;
  letter.time = w->free + m->costs->latency;
  return pl_mailbox_put(&w->box, letter, e);
}

static pl_status run(void *self, size_t stage, const pl_instruction *in, int64_t update, bool *done, pl_err *e) {
  simulation *m = self;
  if (in->op == PL_OP_UPDATE || pl_op_computes(in->op)) return compute(m, stage, in, update, e);
  pl_letter letter = {.update = update, .microbatch = in->microbatch};
  size_t link = 0;
  if (!pl_schedule_link(m->schedule, stage, in, &link, &letter.chunk))
    return pl_fail(e, PL_BAD, "schedule %s: stage %zu has no stage on that side", m->schedule->name, stage);
  bool gradient = in->op == PL_OP_SEND_GRADIENT || in->op == PL_OP_RECV_GRADIENT;
  wire *w = gradient ? &m->up[link] : &m->down[link];
  if (in->op == PL_OP_SEND_ACTIVATION || in->op == PL_OP_SEND_GRADIENT) return send(m, stage, w, letter, e);
  *done = pl_mailbox_take(&w->box, &letter);
  if (*done && letter.time > m->clock[stage]) m->clock[stage] = letter.time;
  return PL_OK;
}

pl_status pl_schedule_simulate(const pl_schedule *s, const pl_costs *costs, int64_t done, int64_t total,
                               pl_event_fn event, void *self, pl_err *e) {
  pl_status st = PL_OK;
  simulation *m = NULL;
  PL_TRY(pl_alloc(1, sizeof *m, "the schedule's times", &m, e));
  m->schedule = s;
  m->costs = costs;
  m->event = event;
  m->self = self;
  pl_player player = {.schedule = s, .self = m, .run = run};
  pl_player_start(&player, done, total);
  PL_TRY(pl_player_run(&player, e));
out:
  for (size_t p = 0; m && p < s->stages; p++) {
    pl_mailbox_free(&m->down[p].box);
    pl_mailbox_free(&m->up[p].box);
  }
  pl_free(m);
  return st;
}
