#include "core/pipeline/player.h"

/* Steps over parts that are at their end. */
static void settle(const pl_program *program, pl_cursor *c) {
  while (c->part < 3 && (c->index >= pl_program_part(program, c->part)->count || (c->part == 1 && c->repeats == 0))) {
    c->index = 0;
    if (c->part == 1 && c->repeats > 1) {
      c->repeats--;
    } else {
      c->part++;
      if (c->part == 2) c->index = c->late;
    }
  }
}

/* Behind that many of the list's updates. */
static size_t behind(const pl_instructions *list, int64_t updates) {
  size_t i = 0;
  for (; i < list->count && updates > 0; i++) updates -= list->items[i].op == PL_OP_UPDATE;
  return i;
}

void pl_player_start(pl_player *p, int64_t done, int64_t total) {
  p->total = total;
  for (size_t s = 0; s < p->schedule->stages; s++) {
    const pl_program *program = &p->schedule->program[s];
    int64_t repeats =
        total - done - pl_instructions_updates(&program->prologue) - pl_instructions_updates(&program->epilogue);
    p->cursor[s] =
        (pl_cursor){.repeats = repeats > 0 ? repeats : 0, .late = behind(&program->epilogue, -repeats), .done = done};
    settle(program, &p->cursor[s]);
  }
}

/* One stage until it has computed something, waits, or its program ends: what others wait for comes between. */
static pl_status run_stage(pl_player *p, size_t stage, bool *moved, pl_err *e) {
  const pl_program *program = &p->schedule->program[stage];
  pl_cursor *c = &p->cursor[stage];
  while (c->part < 3) {
    const pl_instruction *in = &pl_program_part(program, c->part)->items[c->index];
    int64_t update = c->done + in->ahead;
    bool done = true;
    if (update < p->total || in->op == PL_OP_UPDATE) {
      pl_status st = p->run(p->self, stage, in, update, &done, e);
      if (st != PL_OK || !done) return st;
    }
    *moved = true;
    c->done += in->op == PL_OP_UPDATE;
    c->index++;
    settle(program, c);
    if (pl_op_computes(in->op)) return PL_OK;
  }
  return PL_OK;
}

static size_t end_of(const pl_player *p) { return p->end > 0 ? p->end : p->schedule->stages; }

/* Forwards pass through all stages in one sweep in their direction, backwards in one in the other. */
pl_status pl_player_step(pl_player *p, bool *moved, pl_err *e) {
  pl_status st = PL_OK;
  for (size_t s = p->first; s < end_of(p); s++) PL_TRY(run_stage(p, s, moved, e));
  for (size_t s = end_of(p); s-- > p->first;) PL_TRY(run_stage(p, s, moved, e));
out:
  return st;
}

bool pl_player_waits(const pl_player *p, size_t *stage, const pl_instruction **in, int64_t *update) {
  for (*stage = p->first; *stage < end_of(p); ++*stage) {
    const pl_cursor *c = &p->cursor[*stage];
    if (c->part == 3) continue;
    *in = &pl_program_part(&p->schedule->program[*stage], c->part)->items[c->index];
    *update = c->done + (*in)->ahead;
    return true;
  }
  return false;
}

pl_status pl_player_run(pl_player *p, pl_err *e) {
  pl_status st = PL_OK;
  const pl_instruction *in = NULL;
  size_t stage = 0;
  int64_t update = 0;
  while (pl_player_waits(p, &stage, &in, &update)) {
    bool moved = false;
    PL_TRY(pl_player_step(p, &moved, e));
    if (!moved)
      PL_TRY(pl_fail(e, PL_BAD,
                     "schedule %s: no stage can go on; stage %zu waits in \"%s\" of update %lld, microbatch %zu",
                     p->schedule->name, stage, pl_op_name(in->op), (long long)update, in->microbatch));
  }
out:
  return st;
}

/* One that is free, or the one of that microbatch in that state. Looks first where flights in order would lie. */
static pl_flight *find(pl_flight *flights, size_t count, pl_flight_state state, const pl_flight *wanted, size_t at) {
  for (size_t i = 0; i < count; i++) {
    pl_flight *f = &flights[(at + i) % count];
    if (f->state != state) continue;
    if (state == PL_FLIGHT_FREE ||
        (f->update == wanted->update && f->microbatch == wanted->microbatch && f->chunk == wanted->chunk))
      return f;
  }
  return NULL;
}

pl_flight *pl_flight_move(pl_flight *flights, size_t count, const pl_schedule *s, size_t stage,
                          const pl_instruction *in, int64_t update) {
  const bool first = pl_schedule_first(s, stage, in->chunk), last = pl_schedule_last(s, stage, in->chunk);
  const pl_flight_state ready = last ? PL_FLIGHT_FORWARDED : PL_FLIGHT_RETURNED;
  const struct {
    pl_op op;
    pl_flight_state from, to;
  } moves[] = {
      {PL_OP_RECV_ACTIVATION, PL_FLIGHT_FREE, PL_FLIGHT_ARRIVED},
      {PL_OP_FORWARD, first ? PL_FLIGHT_FREE : PL_FLIGHT_ARRIVED, PL_FLIGHT_FORWARDED},
      {PL_OP_SEND_ACTIVATION, PL_FLIGHT_FORWARDED, PL_FLIGHT_SENT},
      {PL_OP_RECV_GRADIENT, PL_FLIGHT_SENT, PL_FLIGHT_RETURNED},
      {PL_OP_BACKWARD, ready, first ? PL_FLIGHT_FREE : PL_FLIGHT_BACKWARDED},
      {PL_OP_SEND_GRADIENT, PL_FLIGHT_BACKWARDED, PL_FLIGHT_FREE},
      {PL_OP_BACKWARD_INPUT, ready, first ? PL_FLIGHT_PASSED : PL_FLIGHT_HALFWAY},
      {PL_OP_SEND_GRADIENT, PL_FLIGHT_HALFWAY, PL_FLIGHT_PASSED},
      {PL_OP_BACKWARD_WEIGHT, PL_FLIGHT_PASSED, PL_FLIGHT_FREE},
  };
  const pl_flight wanted = {.update = update, .microbatch = in->microbatch, .chunk = in->chunk};
  size_t at = ((size_t)update * s->microbatches + in->microbatch) * pl_schedule_chunks(s) + in->chunk;
  for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
    if (moves[i].op != in->op) continue;
    pl_flight *f = find(flights, count, moves[i].from, &wanted, at);
    if (!f) continue;
    f->state = moves[i].to;
    f->update = update;
    f->microbatch = in->microbatch;
    f->chunk = in->chunk;
    return f;
  }
  return NULL;
}
