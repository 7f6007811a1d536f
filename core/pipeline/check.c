#include <string.h>

#include "core/base/memory.h"
#include "core/pipeline/player.h"

enum { SPARE_UPDATES = 4 };

typedef struct message {
  int64_t update;
  size_t microbatch;
} message;

/* Messages on their way between two stages in one direction. */
typedef struct link {
  message *waiting;
  size_t count, room;
} link;

typedef struct book {
  const pl_schedule *schedule;
  pl_schedule_facts *facts;
  pl_flight *flights[PL_MAX_STAGES];
  size_t room[PL_MAX_STAGES];
  link down[PL_MAX_STAGES], up[PL_MAX_STAGES]; /* between stage p and p + 1 */
  bool *applied[PL_MAX_STAGES];                /* microbatches whose gradient the current update has */
  int64_t arrived[PL_MAX_STAGES];              /* updates that the stage is ready to make */
} book;

static pl_status wrong(const book *b, size_t stage, const pl_instruction *in, int64_t update, const char *what,
                       pl_err *e) {
  return pl_fail(e, PL_FAIL, "schedule %s: stage %zu, \"%s\" of update %lld, microbatch %zu: %s", b->schedule->name,
                 stage, pl_op_name(in->op), (long long)update, in->microbatch, what);
}

static pl_status send(link *l, message m, size_t *most, pl_err *e) {
  pl_status st = PL_OK;
  if (l->count == l->room) {
    PL_TRY(pl_grow(l->room, 2 * l->room + 4, sizeof *l->waiting, "the schedule check", &l->waiting, e));
    l->room = 2 * l->room + 4;
  }
  l->waiting[l->count++] = m;
  if (l->count > *most) *most = l->count;
out:
  return st;
}

static bool receive(link *l, message m) {
  for (size_t i = 0; i < l->count; i++)
    if (l->waiting[i].update == m.update && l->waiting[i].microbatch == m.microbatch) {
      l->waiting[i] = l->waiting[--l->count];
      return true;
    }
  return false;
}

/* Moves the flight, with room for one more when none is free, and counts the flights that there are. */
static pl_status move(book *b, size_t p, const pl_instruction *in, int64_t update, pl_flight **out, pl_err *e) {
  pl_status st = PL_OK;
  bool first = p == 0, last = p == b->schedule->stages - 1;
  size_t used = 0;
  for (size_t i = 0; i < b->room[p]; i++) used += b->flights[p][i].state != PL_FLIGHT_FREE;
  if (used == b->room[p]) {
    PL_TRY(pl_grow(b->room[p], b->room[p] + 1, sizeof *b->flights[p], "the schedule check", &b->flights[p], e));
    b->room[p]++;
  }
  *out = pl_flight_move(b->flights[p], b->room[p], in->op, first, last, update, in->microbatch);
  if (!*out) return wrong(b, p, in, update, "out of turn: what has to come before it did not", e);
  if (used + ((*out)->state == (first ? PL_FLIGHT_FORWARDED : PL_FLIGHT_ARRIVED)) > b->facts->slots[p])
    b->facts->slots[p] = used + 1;
out:
  return st;
}

static void reads(book *b, size_t p, const pl_instruction *in) {
  size_t depth = (size_t)in->lag + 1;
  if (depth > b->facts->depth[p]) b->facts->depth[p] = depth;
  if ((size_t)in->ahead + 1 > b->facts->updates_open) b->facts->updates_open = (size_t)in->ahead + 1;
}

static pl_status compute(book *b, size_t p, const pl_instruction *in, int64_t update, pl_err *e) {
  pl_flight *flight = NULL;
  int64_t newest = update - in->ahead;
  pl_status st = move(b, p, in, update, &flight, e);
  if (st != PL_OK) return st;
  reads(b, p, in);
  if (in->op == PL_OP_FORWARD) {
    flight->version = newest > in->lag ? newest - in->lag : 0;
    return PL_OK;
  }
  if (in->ahead != 0) return wrong(b, p, in, update, "a backward works for the current update only", e);
  if (b->applied[p][in->microbatch]) return wrong(b, p, in, update, "the microbatch is repeated", e);
  b->applied[p][in->microbatch] = true;
  if (newest - flight->version > b->facts->delay[p]) b->facts->delay[p] = newest - flight->version;
  return PL_OK;
}

static pl_status update_stage(book *b, size_t p, const pl_instruction *in, int64_t update, bool *done, pl_err *e) {
  if (b->arrived[p] <= update) {
    for (size_t j = 0; j < b->schedule->microbatches; j++)
      if (!b->applied[p][j]) return wrong(b, p, in, update, "the gradient of a microbatch is missing", e);
    b->arrived[p] = update + 1;
  }
  for (size_t q = 0; q < b->schedule->stages; q++) *done = *done && b->arrived[q] > update;
  if (*done) memset(b->applied[p], 0, b->schedule->microbatches * sizeof *b->applied[p]);
  return PL_OK;
}

static pl_status run(void *self, size_t p, const pl_instruction *in, int64_t update, bool *done, pl_err *e) {
  book *b = self;
  pl_flight *flight = NULL;
  message m = {update, in->microbatch};
  size_t last = b->schedule->stages - 1;
  if (in->microbatch >= b->schedule->microbatches || in->lag < 0 || in->ahead < 0)
    return wrong(b, p, in, update, "microbatch, lag or ahead is out of range", e);
  bool from_above = in->op == PL_OP_RECV_ACTIVATION || in->op == PL_OP_SEND_GRADIENT;
  bool from_below = in->op == PL_OP_RECV_GRADIENT || in->op == PL_OP_SEND_ACTIVATION;
  if ((from_above && p == 0) || (from_below && p == last))
    return wrong(b, p, in, update, "there is no stage on that side", e);
  switch (in->op) {
  case PL_OP_FORWARD:
  case PL_OP_BACKWARD:
    return compute(b, p, in, update, e);
  case PL_OP_UPDATE:
    return update_stage(b, p, in, update, done, e);
  case PL_OP_RECV_ACTIVATION:
    *done = receive(&b->down[p - 1], m);
    return *done ? move(b, p, in, update, &flight, e) : PL_OK;
  case PL_OP_RECV_GRADIENT:
    *done = receive(&b->up[p], m);
    return *done ? move(b, p, in, update, &flight, e) : PL_OK;
  case PL_OP_SEND_ACTIVATION:
  case PL_OP_SEND_GRADIENT:
    break;
  }
  pl_status st = move(b, p, in, update, &flight, e);
  if (st != PL_OK) return st;
  size_t between = from_below ? p : p - 1;
  return send(from_below ? &b->down[between] : &b->up[between], m, &b->facts->messages[between], e);
}

static pl_status check_shape(const pl_schedule *s, int64_t *longest, pl_err *e) {
  for (size_t p = 0; p < s->stages; p++) {
    const pl_program *program = &s->program[p];
    const pl_instructions *parts[] = {&program->prologue, &program->body, &program->epilogue};
    int64_t updates = 0;
    for (size_t part = 0; part < 3; part++)
      for (size_t i = 0; i < parts[part]->count; i++) {
        const pl_instruction *in = &parts[part]->items[i];
        if (in->lag > *longest) *longest = in->lag;
        updates += part == 1 && in->op == PL_OP_UPDATE;
      }
    if (updates != 1)
      return pl_fail(e, PL_FAIL, "schedule %s: the body of stage %zu has %lld updates; it must have exactly one",
                     s->name, p, (long long)updates);
  }
  return PL_OK;
}

static pl_status check_rest(const book *b, pl_err *e) {
  for (size_t p = 0; p < b->schedule->stages; p++) {
    if (b->down[p].count + b->up[p].count > 0)
      return pl_fail(e, PL_FAIL, "schedule %s: %zu messages between stage %zu and %zu are never received",
                     b->schedule->name, b->down[p].count + b->up[p].count, p, p + 1);
    for (size_t i = 0; i < b->room[p]; i++)
      if (b->flights[p][i].state != PL_FLIGHT_FREE)
        return pl_fail(e, PL_FAIL, "schedule %s: stage %zu never finishes microbatch %zu of update %lld",
                       b->schedule->name, p, b->flights[p][i].microbatch, (long long)b->flights[p][i].update);
  }
  return PL_OK;
}

pl_status pl_schedule_check(const pl_schedule *s, pl_schedule_facts *out, pl_err *e) {
  pl_status st = PL_OK;
  int64_t longest = 0;
  book b = {.schedule = s, .facts = out};
  pl_player player = {.schedule = s, .self = &b, .run = run};
  *out = (pl_schedule_facts){.updates_open = 1};
  for (size_t p = 0; p < s->stages; p++)
    PL_TRY(pl_alloc(s->microbatches, sizeof *b.applied[p], "the schedule check", &b.applied[p], e));
  PL_TRY(check_shape(s, &longest, e));
  int64_t total = longest + (int64_t)s->stages + SPARE_UPDATES;
  pl_player_start(&player, 0, total);
  PL_TRY(pl_player_run(&player, total - 1, e));
  memset(out->delay, 0, sizeof out->delay); /* what the ramp had is not the steady delay */
  PL_TRY(pl_player_run(&player, total, e));
  PL_TRY(check_rest(&b, e));
out:
  for (size_t p = 0; p < s->stages; p++) {
    pl_free(b.applied[p]);
    pl_free(b.flights[p]);
    pl_free(b.down[p].waiting);
    pl_free(b.up[p].waiting);
  }
  return st;
}
