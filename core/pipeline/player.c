#include "core/pipeline/player.h"

static const pl_instructions *part_of(const pl_program *program, int part) {
  const pl_instructions *const parts[] = {&program->prologue, &program->body, &program->epilogue};
  return parts[part];
}

/* Steps over parts that are at their end. */
static void settle(const pl_program *program, pl_cursor *c) {
  while (c->part < 3 && (c->index >= part_of(program, c->part)->count || (c->part == 1 && c->repeats == 0))) {
    c->index = 0;
    if (c->part == 1 && c->repeats > 1)
      c->repeats--;
    else
      c->part++;
  }
}

static int64_t updates_in(const pl_instructions *list) {
  int64_t n = 0;
  for (size_t i = 0; i < list->count; i++) n += list->items[i].op == PL_OP_UPDATE;
  return n;
}

void pl_player_start(pl_player *p, int64_t done, int64_t total) {
  for (size_t s = 0; s < p->schedule->stages; s++) {
    const pl_program *program = &p->schedule->program[s];
    int64_t repeats = total - done - updates_in(&program->prologue) - updates_in(&program->epilogue);
    p->cursor[s] = (pl_cursor){.repeats = repeats > 0 ? repeats : 0, .done = done};
    settle(program, &p->cursor[s]);
  }
}

static bool halted(const pl_player *p) { return p->halt && *p->halt; }

/* One stage until it waits, has passed `target` updates, or its program ends. */
static pl_status run_stage(pl_player *p, size_t stage, int64_t target, bool *moved, pl_err *e) {
  const pl_program *program = &p->schedule->program[stage];
  pl_cursor *c = &p->cursor[stage];
  while (c->part < 3 && c->done < target && !halted(p)) {
    const pl_instruction *in = &part_of(program, c->part)->items[c->index];
    bool done = true;
    pl_status st = p->run(p->self, stage, in, c->done + in->ahead, &done, e);
    if (st != PL_OK || !done) return st;
    *moved = true;
    c->done += in->op == PL_OP_UPDATE;
    c->index++;
    settle(program, c);
  }
  return PL_OK;
}

static pl_status stuck(const pl_player *p, size_t stage, pl_err *e) {
  const pl_cursor *c = &p->cursor[stage];
  const pl_instruction *in = &part_of(&p->schedule->program[stage], c->part)->items[c->index];
  return pl_fail(e, PL_FAIL,
                 "schedule %s: no stage can go on; stage %zu waits in \"%s\" of update %lld, microbatch %zu",
                 p->schedule->name, stage, pl_op_name(in->op), (long long)(c->done + in->ahead), in->microbatch);
}

pl_status pl_player_run(pl_player *p, int64_t target, pl_err *e) {
  size_t waiting = 0;
  do {
    bool moved = false;
    waiting = p->schedule->stages;
    for (size_t s = 0; s < p->schedule->stages; s++) {
      pl_status st = run_stage(p, s, target, &moved, e);
      if (st != PL_OK || halted(p)) return st;
      if (waiting == p->schedule->stages && p->cursor[s].part < 3 && p->cursor[s].done < target) waiting = s;
    }
    if (!moved && waiting < p->schedule->stages) return stuck(p, waiting, e);
  } while (waiting < p->schedule->stages);
  return PL_OK;
}

pl_flight *pl_flight_move(pl_flight *flights, size_t count, pl_op op, bool first, bool last, int64_t update,
                          size_t microbatch) {
  const struct {
    pl_flight_state from, to;
  } moves[] = {
      [PL_OP_RECV_ACTIVATION] = {PL_FLIGHT_FREE, PL_FLIGHT_ARRIVED},
      [PL_OP_FORWARD] = {first ? PL_FLIGHT_FREE : PL_FLIGHT_ARRIVED, PL_FLIGHT_FORWARDED},
      [PL_OP_SEND_ACTIVATION] = {PL_FLIGHT_FORWARDED, PL_FLIGHT_SENT},
      [PL_OP_RECV_GRADIENT] = {PL_FLIGHT_SENT, PL_FLIGHT_RETURNED},
      [PL_OP_BACKWARD] = {last ? PL_FLIGHT_FORWARDED : PL_FLIGHT_RETURNED,
                          first ? PL_FLIGHT_FREE : PL_FLIGHT_BACKWARDED},
      [PL_OP_SEND_GRADIENT] = {PL_FLIGHT_BACKWARDED, PL_FLIGHT_FREE},
  };
  for (size_t i = 0; i < count; i++) {
    pl_flight *f = &flights[i];
    if (f->state != moves[op].from) continue;
    if (f->state != PL_FLIGHT_FREE && (f->update != update || f->microbatch != microbatch)) continue;
    f->state = moves[op].to;
    f->update = update;
    f->microbatch = microbatch;
    return f;
  }
  return NULL;
}
