#include "core/pipeline/engine.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/device/profile.h"
#include "core/pipeline/player.h"

/* Buffers of a microbatch in flight; slot i belongs to flight i. Of several chunks any may use it. */
typedef struct slot {
  void *tape;
  pl_real *in, *out, *dout, *din; /* NULL at the ends of the model */
  double loss;
} slot;

struct pl_engine {
  pl_engine_args args;
  pl_player player;
  pl_flight *flights[PL_MAX_STAGES]; /* of the schedule's stages */
  slot *slots[PL_MAX_STAGES];
  double loss;
  int64_t delay[PL_MAX_STAGES];  /* of the model's stages */
  int64_t latest[PL_MAX_STAGES]; /* update of the latest backward */
};

static size_t model_stage(const pl_engine *g, size_t p, const pl_instruction *in) {
  return in->chunk * g->args.schedule->stages + p;
}

/* The weights that the instruction names; false when that version is still being made. */
static bool weights(const pl_engine *g, size_t stage, const pl_instruction *in, int64_t update, int64_t *version,
                    const pl_real **x) {
  const pl_ring *ring = g->args.stage[stage].ring;
  *version = pl_ring_version(ring, update - in->ahead, in->lag);
  if (*version > ring->newest) return false;
  *x = pl_ring_at(ring, *version);
  return true;
}

static bool is_last(const pl_engine *g, size_t stage) {
  return stage + 1 == g->args.schedule->stages * pl_schedule_chunks(g->args.schedule);
}

static void forward(pl_engine *g, size_t stage, const pl_real *x, const pl_flight *f, slot *s) {
  const pl_engine_args *a = &g->args;
  const pl_batch *batch = a->batch(a->self, f->update, f->microbatch);
  const bool last = is_last(g, stage);
  a->model_type->forward(a->model, stage, x, batch, stage > 0 ? s->in : NULL, last ? NULL : s->out, s->tape);
  if (last) s->loss = a->model_type->loss(a->model, batch, s->tape);
}

/* The figures of an update belong to its backwards. */
static void note(pl_engine *g, size_t stage, const pl_flight *f, const slot *s) {
  const bool last = is_last(g, stage);
  if (g->latest[stage] != f->update) {
    g->latest[stage] = f->update;
    g->delay[stage] = 0;
    if (last) g->loss = 0;
  }
  int64_t delay = f->update - f->version;
  if (delay > g->delay[stage]) g->delay[stage] = delay;
  if (last) g->loss += s->loss;
}

static void backward(pl_engine *g, size_t stage, pl_op op, const pl_real *x, const pl_flight *f, slot *s) {
  const pl_engine_args *a = &g->args;
  const pl_batch *batch = a->batch(a->self, f->update, f->microbatch);
  pl_real *grad = a->stage[stage].grad[f->update % 2];
  const pl_real *in = stage > 0 ? s->in : NULL, *dout = is_last(g, stage) ? NULL : s->dout;
  pl_real *din = stage > 0 ? s->din : NULL;
  if (op == PL_OP_BACKWARD)
    a->model_type->backward(a->model, stage, x, batch, in, s->tape, dout, din, grad);
  else if (op == PL_OP_BACKWARD_INPUT)
    a->model_type->backward_input(a->model, stage, x, batch, in, s->tape, dout, din, grad);
  else
    a->model_type->backward_weight(a->model, stage, batch, in, s->tape, grad);
  if (op != PL_OP_BACKWARD_WEIGHT) note(g, stage, f, s);
}

static pl_status out_of_turn(const pl_engine *g, size_t p, const pl_instruction *in, int64_t t, pl_err *e) {
  return pl_fail(e, PL_FAIL, "schedule %s: stage %zu, \"%s\" of update %lld, microbatch %zu is out of turn",
                 g->args.schedule->name, p, pl_op_name(in->op), (long long)t, in->microbatch);
}

/* The flight that the instruction is about, moved on. */
static bool find(const pl_engine *g, size_t p, const pl_instruction *in, int64_t t, pl_flight **f, slot **s) {
  size_t count = g->args.facts->slots[p];
  *f = pl_flight_move(g->flights[p], count, g->args.schedule, p, in, t);
  if (*f) *s = &g->slots[p][*f - g->flights[p]];
  return *f != NULL;
}

static pl_status compute(pl_engine *g, size_t p, const pl_instruction *in, int64_t t, bool *done, pl_err *e) {
  const pl_engine_args *a = &g->args;
  const size_t stage = model_stage(g, p, in);
  const pl_real *x = NULL;
  pl_flight *f = NULL;
  slot *s = NULL;
  int64_t version = 0;
  *done = weights(g, stage, in, t, &version, &x);
  if (!*done) return PL_OK;
  if (!find(g, p, in, t, &f, &s)) return out_of_turn(g, p, in, t, e);
  double start = pl_clock_seconds();
  if (in->op == PL_OP_FORWARD) {
    f->version = version;
    forward(g, stage, x, f, s);
  } else {
    backward(g, stage, in->op, x, f, s);
  }
  if (a->computed) a->computed(a->self, p, in, t, start, pl_clock_seconds());
  return PL_OK;
}

/* A flight that waits for its message stays where it was. */
static pl_status transfer(pl_engine *g, size_t p, const pl_instruction *in, int64_t t, bool *done, pl_err *e) {
  pl_transport *transport = g->args.transport;
  const bool gradient = in->op == PL_OP_SEND_GRADIENT || in->op == PL_OP_RECV_GRADIENT;
  const bool receives = in->op == PL_OP_RECV_ACTIVATION || in->op == PL_OP_RECV_GRADIENT;
  pl_message m = {
      .kind = gradient ? PL_MESSAGE_GRADIENT : PL_MESSAGE_ACTIVATION, .update = t, .microbatch = in->microbatch};
  pl_flight *f = NULL;
  slot *s = NULL;
  if (!pl_schedule_link(g->args.schedule, p, in, &m.link, &m.chunk) || !find(g, p, in, t, &f, &s))
    return out_of_turn(g, p, in, t, e);
  pl_flight_state before = PL_FLIGHT_FORWARDED;
  if (in->op == PL_OP_RECV_ACTIVATION) before = PL_FLIGHT_FREE;
  if (in->op == PL_OP_RECV_GRADIENT) before = PL_FLIGHT_SENT;
  if (in->op == PL_OP_SEND_GRADIENT) before = f->state == PL_FLIGHT_PASSED ? PL_FLIGHT_HALFWAY : PL_FLIGHT_BACKWARDED;
  pl_real **buffer = gradient ? (receives ? &s->dout : &s->din) : (receives ? &s->in : &s->out);
  const pl_profile_part outside = pl_profile_enter(g->args.device, PL_PROFILE_waiting);
  pl_status st = (receives ? transport->type->receive : transport->type->send)(transport, &m, buffer, done, e);
  pl_profile_leave(g->args.device, outside);
  if (!*done) f->state = before;
  return st;
}

static pl_status run(void *self, size_t p, const pl_instruction *in, int64_t t, bool *done, pl_err *e) {
  pl_engine *g = self;
  if (in->op == PL_OP_UPDATE) return g->args.update(g->args.self, p, t, done, e);
  return pl_op_computes(in->op) ? compute(g, p, in, t, done, e) : transfer(g, p, in, t, done, e);
}

static bool splits(const pl_program *program) {
  for (size_t i = 0; i < program->body.count; i++)
    if (program->body.items[i].op == PL_OP_BACKWARD_INPUT) return true;
  return false;
}

/* Room for whichever of the stage's chunks a slot is used by. */
static size_t tape_bytes(const pl_engine_args *a, size_t p) {
  const bool split = splits(&a->schedule->program[p]);
  size_t most = 0;
  for (size_t c = 0; c < pl_schedule_chunks(a->schedule); c++) {
    size_t stage = c * a->schedule->stages + p;
    size_t bytes = (split ? a->model_type->split_tape_bytes : a->model_type->tape_bytes)(a->model, stage);
    if (bytes > most) most = bytes;
  }
  return most;
}

static pl_status add_slot(pl_engine *g, size_t p, slot *s, pl_err *e) {
  const pl_engine_args *a = &g->args;
  const size_t chunks = pl_schedule_chunks(a->schedule), size = a->model_type->boundary_size(a->model);
  const size_t bytes = tape_bytes(a, p);
  pl_status st = PL_OK;
  if (a->spare && s == g->slots[a->first] && bytes <= a->spare_bytes)
    s->tape = a->spare;
  else
    PL_TRY(a->device->ops->alloc(a->device, bytes, "activations", &s->tape, e));
  if (p > 0 || chunks > 1) {
    PL_TRY(pl_transport_buffer(a->device, size, &s->in, e));
    PL_TRY(pl_transport_buffer(a->device, size, &s->din, e));
  }
  if (p + 1 < a->schedule->stages || chunks > 1) {
    PL_TRY(pl_transport_buffer(a->device, size, &s->out, e));
    PL_TRY(pl_transport_buffer(a->device, size, &s->dout, e));
  }
out:
  return st;
}

pl_status pl_engine_create(const pl_engine_args *args, pl_engine **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_engine *g = NULL;
  size_t stages = args->schedule->stages * pl_schedule_chunks(args->schedule);
  *out = NULL;
  if (stages > PL_MAX_STAGES)
    return pl_fail(e, PL_BAD, "schedule %s: %zu stages, chunks counted; allowed to run: at most %d",
                   args->schedule->name, stages, PL_MAX_STAGES);
  PL_TRY(pl_alloc(1, sizeof *g, "the engine", &g, e));
  g->args = *args;
  g->player = (pl_player){.schedule = args->schedule, .self = g, .run = run, .first = args->first, .end = args->end};
  for (size_t p = args->first; p < args->end; p++) {
    size_t count = args->facts->slots[p];
    PL_TRY(pl_alloc(count, sizeof *g->flights[p], "the engine", &g->flights[p], e));
    PL_TRY(pl_alloc(count, sizeof *g->slots[p], "the engine", &g->slots[p], e));
    for (size_t i = 0; i < count; i++) PL_TRY(add_slot(g, p, &g->slots[p][i], e));
  }
  *out = g;
out:
  if (st != PL_OK) pl_engine_destroy(g);
  return st;
}

void pl_engine_destroy(pl_engine *g) {
  if (!g) return;
  pl_device *d = g->args.device;
  for (size_t p = g->args.first; p < g->args.end; p++) {
    for (size_t i = 0; g->slots[p] && i < g->args.facts->slots[p]; i++) {
      slot *s = &g->slots[p][i];
      void *const arrays[] = {s->tape, s->in, s->out, s->dout, s->din};
      for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++)
        if (arrays[a] && arrays[a] != g->args.spare) d->ops->free(d, arrays[a]);
    }
    pl_free(g->slots[p]);
    pl_free(g->flights[p]);
  }
  pl_free(g);
}

void pl_engine_start(pl_engine *g, int64_t done, int64_t total) {
  g->loss = 0;
  for (size_t s = 0; s < PL_MAX_STAGES; s++) {
    g->delay[s] = 0;
    g->latest[s] = -1;
  }
  for (size_t p = g->args.first; p < g->args.end; p++)
    for (size_t i = 0; i < g->args.facts->slots[p]; i++) g->flights[p][i].state = PL_FLIGHT_FREE;
  pl_player_start(&g->player, done, total);
}

pl_status pl_engine_step(pl_engine *g, bool *moved, pl_err *e) { return pl_player_step(&g->player, moved, e); }

bool pl_engine_waits(const pl_engine *g, size_t *stage, const pl_instruction **in, int64_t *update) {
  return pl_player_waits(&g->player, stage, in, update);
}

double pl_engine_loss(const pl_engine *g) { return g->loss; }

int64_t pl_engine_delay(const pl_engine *g, size_t stage) { return g->delay[stage]; }
