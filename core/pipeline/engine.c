#include "core/pipeline/engine.h"

#include "core/base/memory.h"
#include "core/pipeline/player.h"

/* Buffers of a microbatch in flight; slot i belongs to flight i. */
typedef struct slot {
  void *tape;
  pl_real *in, *out, *dout, *din;
  double loss;
} slot;

struct pl_engine {
  pl_engine_args args;
  pl_player player;
  bool halt;
  pl_flight *flights[PL_MAX_STAGES];
  slot *slots[PL_MAX_STAGES];
  double loss;
  int64_t delay[PL_MAX_STAGES];
  bool fresh[PL_MAX_STAGES]; /* no backward since the stage's last update */
};

static const pl_real *weights(const pl_ring *ring, const pl_instruction *in, int64_t *version) {
  *version = pl_ring_version(ring, in->lag);
  return pl_ring_at(ring, *version);
}

static void forward(pl_engine *g, size_t p, const pl_instruction *in, pl_flight *f, slot *s) {
  const pl_engine_args *a = &g->args;
  const pl_batch *batch = a->batch(a->self, f->update, f->microbatch);
  const pl_real *x = weights(a->stage[p].ring, in, &f->version);
  a->model_type->forward(a->model, p, x, batch, s->in, s->out, s->tape);
  if (p == a->schedule->stages - 1) s->loss = a->model_type->loss(a->model, batch, s->tape);
}

static void backward(pl_engine *g, size_t p, const pl_instruction *in, const pl_flight *f, slot *s) {
  const pl_engine_args *a = &g->args;
  const pl_batch *batch = a->batch(a->self, f->update, f->microbatch);
  int64_t version = 0;
  const pl_real *x = weights(a->stage[p].ring, in, &version);
  a->model_type->backward(a->model, p, x, batch, s->in, s->tape, s->dout, s->din, a->stage[p].grad);
  if (g->fresh[p]) {
    g->fresh[p] = false;
    g->delay[p] = 0;
    if (p == a->schedule->stages - 1) g->loss = 0;
  }
  int64_t delay = a->stage[p].ring->newest - f->version;
  if (delay > g->delay[p]) g->delay[p] = delay;
  if (p == a->schedule->stages - 1) g->loss += s->loss;
}

static pl_status update(pl_engine *g, size_t p, int64_t t, bool *done) {
  pl_update_verdict verdict = g->args.update(g->args.self, p, t);
  g->halt = verdict == PL_UPDATE_HALT;
  *done = verdict == PL_UPDATE_DONE;
  if (*done) g->fresh[p] = true;
  return PL_OK;
}

/* The flight that the instruction is about, without moving it on. */
static bool find(const pl_engine *g, size_t p, const pl_instruction *in, int64_t t, pl_flight **f, slot **s) {
  size_t count = g->args.facts->slots[p];
  *f = pl_flight_move(g->flights[p], count, g->args.schedule, p, in, t);
  if (*f) *s = &g->slots[p][*f - g->flights[p]];
  return *f != NULL;
}

static pl_status transfer(pl_engine *g, size_t p, const pl_instruction *in, pl_flight *f, slot *s, bool *done,
                          pl_err *e) {
  pl_transport *t = g->args.transport;
  bool up = in->op == PL_OP_RECV_ACTIVATION || in->op == PL_OP_SEND_GRADIENT;
  pl_message m = {.gradient = in->op == PL_OP_SEND_GRADIENT || in->op == PL_OP_RECV_GRADIENT,
                  .link = up ? p - 1 : p,
                  .update = f->update,
                  .microbatch = f->microbatch,
                  .sequences = g->args.batch(g->args.self, f->update, f->microbatch)->sequences};
  switch (in->op) {
  case PL_OP_RECV_ACTIVATION:
    return t->type->receive(t, &m, s->in, done, e);
  case PL_OP_RECV_GRADIENT:
    return t->type->receive(t, &m, s->dout, done, e);
  case PL_OP_SEND_ACTIVATION:
    return t->type->send(t, &m, s->out, e);
  default:
    return t->type->send(t, &m, s->din, e);
  }
}

static pl_status run(void *self, size_t p, const pl_instruction *in, int64_t t, bool *done, pl_err *e) {
  pl_engine *g = self;
  pl_flight *f = NULL;
  slot *s = NULL;
  if (in->op == PL_OP_UPDATE) return update(g, p, t, done);
  if (!find(g, p, in, t, &f, &s))
    return pl_fail(e, PL_FAIL, "schedule %s: stage %zu, \"%s\" of update %lld, microbatch %zu is out of turn",
                   g->args.schedule->name, p, pl_op_name(in->op), (long long)t, in->microbatch);
  if (in->op == PL_OP_FORWARD)
    forward(g, p, in, f, s);
  else if (in->op == PL_OP_BACKWARD)
    backward(g, p, in, f, s);
  else {
    pl_status st = transfer(g, p, in, f, s, done, e);
    /* Not there yet: the flight stays where it was. */
    if (!*done) f->state = in->op == PL_OP_RECV_ACTIVATION ? PL_FLIGHT_FREE : PL_FLIGHT_SENT;
    return st;
  }
  return PL_OK;
}

static pl_status add_slot(pl_engine *g, size_t p, slot *s, pl_err *e) {
  const pl_engine_args *a = &g->args;
  pl_status st = PL_OK;
  size_t message = a->model_type->boundary_size(a->model) * sizeof(pl_real);
  bool first = p == 0, last = p == a->schedule->stages - 1;
  void *in = NULL, *out = NULL, *dout = NULL, *din = NULL;
  PL_TRY(a->device->ops->alloc(a->device, a->model_type->tape_bytes(a->model, p), "activations", &s->tape, e));
  if (!first) PL_TRY(a->device->ops->alloc(a->device, message, "activations between stages", &in, e));
  s->in = in;
  if (!first) PL_TRY(a->device->ops->alloc(a->device, message, "gradients between stages", &din, e));
  s->din = din;
  if (!last) PL_TRY(a->device->ops->alloc(a->device, message, "activations between stages", &out, e));
  s->out = out;
  if (!last) PL_TRY(a->device->ops->alloc(a->device, message, "gradients between stages", &dout, e));
  s->dout = dout;
out:
  return st;
}

/* What a schedule may say and models do not offer. */
static pl_status check_runnable(const pl_schedule *s, pl_err *e) {
  if (s->stages > PL_MAX_STAGES)
    return pl_fail(e, PL_BAD, "schedule %s: the engine cannot run %zu stages; allowed: at most %d", s->name, s->stages,
                   PL_MAX_STAGES);
  if (pl_schedule_chunks(s) > 1)
    return pl_fail(e, PL_BAD, "schedule %s: the engine cannot run %zu chunks a stage; allowed: 1", s->name, s->chunks);
  for (size_t p = 0; p < s->stages; p++)
    for (size_t i = 0; i < s->program[p].body.count; i++)
      if (s->program[p].body.items[i].op == PL_OP_BACKWARD_INPUT)
        return pl_fail(e, PL_BAD,
                       "schedule %s: the engine cannot run a split backward; allowed: schedules that do not split it",
                       s->name);
  return PL_OK;
}

pl_status pl_engine_create(const pl_engine_args *args, pl_engine **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_engine *g = NULL;
  *out = NULL;
  PL_TRY(check_runnable(args->schedule, e));
  PL_TRY(pl_alloc(1, sizeof *g, "the engine", &g, e));
  g->args = *args;
  g->player = (pl_player){.schedule = args->schedule, .self = g, .run = run, .halt = &g->halt};
  for (size_t p = 0; p < args->schedule->stages; p++) {
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
  for (size_t p = 0; p < g->args.schedule->stages; p++) {
    for (size_t i = 0; g->slots[p] && i < g->args.facts->slots[p]; i++) {
      slot *s = &g->slots[p][i];
      void *const arrays[] = {s->tape, s->in, s->out, s->dout, s->din};
      for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++)
        if (arrays[a]) d->ops->free(d, arrays[a]);
    }
    pl_free(g->slots[p]);
    pl_free(g->flights[p]);
  }
  pl_free(g);
}

void pl_engine_start(pl_engine *g, int64_t done, int64_t total) {
  g->halt = false;
  g->loss = 0;
  for (size_t p = 0; p < g->args.schedule->stages; p++) {
    g->delay[p] = 0;
    g->fresh[p] = true;
    for (size_t i = 0; i < g->args.facts->slots[p]; i++) g->flights[p][i].state = PL_FLIGHT_FREE;
  }
  pl_player_start(&g->player, done, total);
}

pl_status pl_engine_run(pl_engine *g, int64_t target, bool *halted, pl_err *e) {
  pl_status st = pl_player_run(&g->player, target, e);
  *halted = g->halt;
  return st;
}

double pl_engine_loss(const pl_engine *g) { return g->loss; }

int64_t pl_engine_delay(const pl_engine *g, size_t stage) { return g->delay[stage]; }
