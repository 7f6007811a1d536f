#include <string.h>

#include "core/base/memory.h"
#include "core/pipeline/mailbox.h"
#include "core/pipeline/player.h"

typedef struct book {
  const pl_schedule *schedule;
  pl_schedule_facts *facts;
  int64_t steady; /* the update whose delay is the steady one */
  pl_flight *flights[PL_SCHEDULE_STAGES];
  size_t room[PL_SCHEDULE_STAGES], used[PL_SCHEDULE_STAGES];
  pl_mailbox down[PL_SCHEDULE_STAGES], up[PL_SCHEDULE_STAGES]; /* between stage p and the next */
  bool *applied[PL_SCHEDULE_STAGES]; /* [microbatches * chunks]: the current update has their gradient */
  bool arrived[PL_SCHEDULE_STAGES];  /* at its update `complete` */
  size_t arrivals;
  int64_t complete; /* updates that all stages are ready to make */
} book;

static pl_status wrong(const book *b, size_t stage, const pl_instruction *in, int64_t update, const char *what,
                       pl_err *e) {
  return pl_fail(e, PL_BAD, "schedule %s: stage %zu, \"%s\" of update %lld, microbatch %zu: %s", b->schedule->name,
                 stage, pl_op_name(in->op), (long long)update, in->microbatch, what);
}

static bool enters(const book *b, size_t p, const pl_instruction *in) {
  return in->op == PL_OP_RECV_ACTIVATION || (in->op == PL_OP_FORWARD && pl_schedule_first(b->schedule, p, in->chunk));
}

/* Moves the flight, with room for one more when none is free, and counts the flights that there are. */
static pl_status move(book *b, size_t p, const pl_instruction *in, int64_t update, pl_flight **out, pl_err *e) {
  size_t slots = b->schedule->program[p].slots;
  if (b->used[p] == b->room[p]) {
    size_t room = 2 * b->room[p] + 4;
    pl_status st = pl_grow(b->room[p], room, sizeof *b->flights[p], "the schedule check", &b->flights[p], e);
    if (st != PL_OK) return st;
    b->room[p] = room;
  }
  *out = pl_flight_move(b->flights[p], b->room[p], b->schedule, p, in, update);
  if (!*out) return wrong(b, p, in, update, "out of turn: what has to come before it did not", e);
  if (enters(b, p, in) && ++b->used[p] > b->facts->slots[p]) b->facts->slots[p] = b->used[p];
  if (slots > 0 && b->used[p] > slots)
    return wrong(b, p, in, update, "all of the stage's slots are taken by microbatches in flight", e);
  if ((*out)->state == PL_FLIGHT_FREE) b->used[p]--;
  return PL_OK;
}

static pl_status reads(book *b, size_t p, const pl_instruction *in, int64_t update, pl_err *e) {
  size_t depth = (size_t)in->lag + 1, versions = b->schedule->program[p].versions;
  if (versions > 0 && depth > versions)
    return wrong(b, p, in, update, "the weight version that it reads was dropped: the stage keeps too few", e);
  if (depth > b->facts->depth[p]) b->facts->depth[p] = depth;
  if ((size_t)in->ahead + 1 > b->facts->updates_open) b->facts->updates_open = (size_t)in->ahead + 1;
  return PL_OK;
}

static pl_status apply(book *b, size_t p, const pl_instruction *in, int64_t update, const pl_flight *flight,
                       pl_err *e) {
  bool *applied = &b->applied[p][in->microbatch * pl_schedule_chunks(b->schedule) + in->chunk];
  if (in->ahead != 0) return wrong(b, p, in, update, "a gradient is added for the current update only", e);
  if (*applied) return wrong(b, p, in, update, "the microbatch is repeated", e);
  *applied = true;
  int64_t delay = update - flight->version;
  if (update == b->steady && delay > b->facts->delay[p]) b->facts->delay[p] = delay;
  return PL_OK;
}

static pl_status compute(book *b, size_t p, const pl_instruction *in, int64_t update, pl_err *e) {
  pl_flight *flight = NULL;
  int64_t newest = update - in->ahead, version = newest > in->lag ? newest - in->lag : 0;
  pl_status st = move(b, p, in, update, &flight, e);
  if (st == PL_OK) st = reads(b, p, in, update, e);
  if (st != PL_OK) return st;
  if (in->op == PL_OP_FORWARD) {
    flight->version = version;
    return PL_OK;
  }
  if (version - flight->version > b->facts->gap[p]) b->facts->gap[p] = version - flight->version;
  return in->op == PL_OP_BACKWARD_INPUT ? PL_OK : apply(b, p, in, update, flight, e);
}

static pl_status update_stage(book *b, size_t p, const pl_instruction *in, int64_t update, bool *done, pl_err *e) {
  size_t parts = b->schedule->microbatches * pl_schedule_chunks(b->schedule);
  if (in->ahead != 0) return wrong(b, p, in, update, "an update is the current one", e);
  if (b->complete <= update && !b->arrived[p]) {
    for (size_t i = 0; i < parts; i++)
      if (!b->applied[p][i]) return wrong(b, p, in, update, "the gradient of a microbatch is missing", e);
    b->arrived[p] = true;
    if (++b->arrivals == b->schedule->stages) {
      b->complete++;
      b->arrivals = 0;
      memset(b->arrived, 0, sizeof b->arrived);
    }
  }
  *done = b->complete > update;
  if (*done) memset(b->applied[p], 0, parts * sizeof *b->applied[p]);
  return PL_OK;
}

static pl_status transfer(book *b, size_t p, const pl_instruction *in, int64_t update, bool *done, pl_err *e) {
  pl_letter letter = {.update = update, .microbatch = in->microbatch};
  pl_flight *flight = NULL;
  size_t link = 0;
  if (!pl_schedule_link(b->schedule, p, in, &link, &letter.chunk))
    return wrong(b, p, in, update, "there is no stage on that side", e);
  bool gradient = in->op == PL_OP_SEND_GRADIENT || in->op == PL_OP_RECV_GRADIENT;
  bool sends = in->op == PL_OP_SEND_GRADIENT || in->op == PL_OP_SEND_ACTIVATION;
  pl_mailbox *box = gradient ? &b->up[link] : &b->down[link];
  if (!sends) *done = pl_mailbox_take(box, &letter);
  if (!*done) return PL_OK;
  pl_status st = move(b, p, in, update, &flight, e);
  return st == PL_OK && sends ? pl_mailbox_put(box, letter, e) : st;
}

static pl_status run(void *self, size_t p, const pl_instruction *in, int64_t update, bool *done, pl_err *e) {
  book *b = self;
  if (in->microbatch >= b->schedule->microbatches || in->lag < 0 || in->ahead < 0 ||
      in->chunk >= pl_schedule_chunks(b->schedule))
    return wrong(b, p, in, update, "microbatch, chunk, lag or ahead is out of range", e);
  if (in->op == PL_OP_UPDATE) return update_stage(b, p, in, update, done, e);
  if (pl_op_computes(in->op)) return compute(b, p, in, update, e);
  return transfer(b, p, in, update, done, e);
}

static pl_status check_shape(const pl_schedule *s, pl_err *e) {
  for (size_t p = 0; p < s->stages; p++) {
    int64_t updates = pl_instructions_updates(&s->program[p].body);
    if (updates != 1)
      return pl_fail(e, PL_BAD, "schedule %s: the body of stage %zu has %lld updates; it must have exactly one",
                     s->name, p, (long long)updates);
  }
  return PL_OK;
}

static pl_status check_rest(const book *b, pl_err *e) {
  for (size_t p = 0; p < b->schedule->stages; p++) {
    size_t left = pl_mailbox_count(&b->down[p]) + pl_mailbox_count(&b->up[p]);
    if (left > 0)
      return pl_fail(e, PL_BAD, "schedule %s: %zu messages between stage %zu and %zu are never received",
                     b->schedule->name, left, p, (p + 1) % b->schedule->stages);
    for (size_t i = 0; i < b->room[p]; i++)
      if (b->flights[p][i].state != PL_FLIGHT_FREE)
        return pl_fail(e, PL_BAD, "schedule %s: stage %zu never finishes microbatch %zu of update %lld",
                       b->schedule->name, p, b->flights[p][i].microbatch, (long long)b->flights[p][i].update);
  }
  return PL_OK;
}

static void close_book(book *b) {
  for (size_t p = 0; b && p < b->schedule->stages; p++) {
    pl_free(b->applied[p]);
    pl_free(b->flights[p]);
    pl_mailbox_free(&b->down[p]);
    pl_mailbox_free(&b->up[p]);
  }
  pl_free(b);
}

pl_status pl_schedule_check(const pl_schedule *s, pl_schedule_facts *out, pl_err *e) {
  pl_status st = PL_OK;
  book *b = NULL;
  *out = (pl_schedule_facts){.updates_open = 1};
  PL_TRY(pl_alloc(1, sizeof *b, "the schedule check", &b, e));
  b->schedule = s;
  b->facts = out;
  b->steady = pl_schedule_ramp(s);
  for (size_t p = 0; p < s->stages; p++)
    PL_TRY(pl_alloc(s->microbatches * pl_schedule_chunks(s), sizeof *b->applied[p], "the schedule check",
                    &b->applied[p], e));
  PL_TRY(check_shape(s, e));
  pl_player player = {.schedule = s, .self = b, .run = run};
  int64_t total = b->steady + 2 + pl_schedule_tail(s);
  pl_player_start(&player, 0, total);
  PL_TRY(pl_player_run(&player, e));
  PL_TRY(check_rest(b, e));
  /* A message that waits belongs to a microbatch in flight in the stage before the link, in whatever order stages run.
   */
  memcpy(out->messages, out->slots, sizeof out->messages);
out:
  close_book(b);
  return st;
}
