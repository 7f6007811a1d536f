/* The checker and the engine on schedules that the program does not offer yet, written here by hand: GPipe, 1F1B,
 * PipeDream-2BW, PipeDream with stashing. Their delays are derived, and the engine gives the bits of `lagged` with the
 * same delays. Broken schedules are refused. */
#include "core/pipeline/engine.h"
#include "core/pipeline/library.h"
#include "core/train/batch.h"
#include "core/train/step.h"
#include "tests/conform/train_rig.h"

enum { STAGES = 4, UPDATES = 9 };

static void add(pl_instructions *list, pl_op op, size_t j, int64_t ahead, int64_t lag) {
  pl_err e = {0};
  rig_must(pl_instructions_add(list, (pl_instruction){op, j, ahead, lag, 0}, &e), &e);
}

static void add_forward(pl_instructions *list, size_t p, size_t j, int64_t ahead, int64_t lag) {
  if (p > 0) add(list, PL_OP_RECV_ACTIVATION, j, ahead, 0);
  add(list, PL_OP_FORWARD, j, ahead, lag);
  if (p + 1 < STAGES) add(list, PL_OP_SEND_ACTIVATION, j, ahead, 0);
}

static void add_backward(pl_instructions *list, size_t p, size_t j, int64_t lag) {
  if (p + 1 < STAGES) add(list, PL_OP_RECV_GRADIENT, j, 0, 0);
  add(list, PL_OP_BACKWARD, j, 0, lag);
  if (p > 0) add(list, PL_OP_SEND_GRADIENT, j, 0, 0);
}

static void gpipe(pl_schedule *s, size_t m) {
  *s = (pl_schedule){.name = "gpipe", .stages = STAGES, .microbatches = m};
  for (size_t p = 0; p < STAGES; p++) {
    pl_instructions *body = &s->program[p].body;
    for (size_t j = 0; j < m; j++) add_forward(body, p, j, 0, 0);
    for (size_t j = 0; j < m; j++) add_backward(body, p, j, 0);
    add(body, PL_OP_UPDATE, 0, 0, 0);
  }
}

static void one_f_one_b(pl_schedule *s, size_t m) {
  *s = (pl_schedule){.name = "1f1b", .stages = STAGES, .microbatches = m};
  for (size_t p = 0; p < STAGES; p++) {
    pl_instructions *body = &s->program[p].body;
    size_t ahead = STAGES - 1 - p;
    for (size_t j = 0; j < ahead && j < m; j++) add_forward(body, p, j, 0, 0);
    for (size_t j = 0; j < m; j++) {
      if (j + ahead < m) add_forward(body, p, j + ahead, 0, 0);
      add_backward(body, p, j, 0);
    }
    add(body, PL_OP_UPDATE, 0, 0, 0);
  }
}

/* PipeDream-2BW, arXiv 2006.09503. */
static void two_bw(pl_schedule *s, size_t m) {
  *s = (pl_schedule){.name = "2bw", .stages = STAGES, .microbatches = m};
  for (size_t p = 0; p < STAGES; p++) {
    pl_program *program = &s->program[p];
    size_t w = STAGES - 1 - p;
    for (size_t j = 0; j < w; j++) add_forward(&program->prologue, p, j, 0, 0);
    for (size_t j = 0; j < m; j++) {
      bool next = j + w >= m;
      add_forward(&program->body, p, next ? j + w - m : j + w, next, !next);
      add_backward(&program->body, p, j, 1);
      if (!next) add_forward(&program->epilogue, p, j + w, 0, 1);
      add_backward(&program->epilogue, p, j, 1);
    }
    add(&program->body, PL_OP_UPDATE, 0, 0, 0);
    add(&program->epilogue, PL_OP_UPDATE, 0, 0, 0);
  }
}

/* PipeDream with weight stashing, arXiv 1806.03377. */
static void pipedream(pl_schedule *s, size_t m) {
  *s = (pl_schedule){.name = "pipedream", .stages = STAGES, .microbatches = m};
  for (size_t p = 0; p < STAGES; p++) {
    pl_program *program = &s->program[p];
    int64_t w = STAGES - 1 - (int64_t)p;
    for (int64_t b = 0; b < w; b++) add_forward(&program->prologue, p, 0, b, 0);
    add_forward(&program->body, p, 0, w, 0);
    add_backward(&program->body, p, 0, w);
    add(&program->body, PL_OP_UPDATE, 0, 0, 0);
    for (int64_t b = 0; b < w; b++) {
      add_backward(&program->epilogue, p, 0, w);
      add(&program->epilogue, PL_OP_UPDATE, 0, 0, 0);
    }
  }
}

/* The library's. */
static void named(const char *name, pl_schedule *s, size_t m) {
  pl_err e = {0};
  const pl_schedule_args a = {.stages = STAGES, .microbatches = m, .allow_min_microbatches = true};
  rig_must(pl_schedule_make(pl_schedule_find(name, &e), &a, s, &e), &e);
}
static void named_gpipe(pl_schedule *s, size_t m) { named("gpipe", s, m); }
static void named_1f1b(pl_schedule *s, size_t m) { named("1f1b", s, m); }
static void named_2bw(pl_schedule *s, size_t m) { named("2bw", s, m); }
static void named_pipedream(pl_schedule *s, size_t m) { named("pipedream", s, m); }
static void named_vertical(pl_schedule *s, size_t m) { named("pipedream-vertical", s, m); }
static void named_wpipe(pl_schedule *s, size_t m) { named("wpipe", s, m); }

/* Three updates that read two versions back, then for ever: the first microbatch one back, the second the newest. */
static void calms_down(pl_schedule *s, size_t m) {
  *s = (pl_schedule){.name = "calms down", .stages = STAGES, .microbatches = m};
  for (size_t p = 0; p < STAGES; p++) {
    pl_program *program = &s->program[p];
    for (size_t update = 0; update < 4; update++) {
      pl_instructions *list = update < 3 ? &program->prologue : &program->body;
      for (size_t j = 0; j < m; j++) {
        int64_t lag = update < 3 ? 2 : j == 0;
        add_forward(list, p, j, 0, lag);
        add_backward(list, p, j, lag);
      }
      add(list, PL_OP_UPDATE, 0, 0, 0);
    }
  }
}

static pl_schedule_facts check(const pl_schedule *s) {
  pl_schedule_facts facts;
  pl_err e = {0};
  rig_must(pl_schedule_check(s, &facts, &e), &e);
  return facts;
}

static void facts_are_derived(void **state) {
  (void)state;
  const struct {
    void (*make)(pl_schedule *s, size_t m);
    size_t m;
    int64_t delay[STAGES];
    size_t slots[STAGES], depth[STAGES], open;
  } cases[] = {
      {gpipe, 5, {0, 0, 0, 0}, {5, 5, 5, 5}, {1, 1, 1, 1}, 1},
      {one_f_one_b, 5, {0, 0, 0, 0}, {4, 3, 2, 1}, {1, 1, 1, 1}, 1},
      {two_bw, 4, {1, 1, 1, 1}, {4, 3, 2, 1}, {2, 2, 2, 2}, 2},
      {two_bw, 3, {1, 1, 1, 1}, {4, 3, 2, 1}, {2, 2, 2, 2}, 2},
      {pipedream, 1, {3, 2, 1, 0}, {4, 3, 2, 1}, {4, 3, 2, 1}, 4},
      {calms_down, 2, {1, 1, 1, 1}, {1, 1, 1, 1}, {3, 3, 3, 3}, 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pl_schedule s;
    cases[i].make(&s, cases[i].m);
    pl_schedule_facts facts = check(&s);
    for (size_t p = 0; p < STAGES; p++) {
      assert_int_equal(facts.delay[p], cases[i].delay[p]);
      assert_int_equal(facts.slots[p], cases[i].slots[p]);
      assert_int_equal(facts.depth[p], cases[i].depth[p]);
    }
    assert_int_equal(facts.updates_open, cases[i].open);
    pl_schedule_free(&s);
  }
}

static void lagged_facts(void **state) {
  (void)state;
  static const int64_t delay[STAGES] = {5, 0, 2, 1};
  pl_schedule s;
  pl_err e = {0};
  rig_must(pl_schedule_lagged(STAGES, 3, delay, &s, &e), &e);
  pl_schedule_facts facts = check(&s);
  for (size_t p = 0; p < STAGES; p++) {
    assert_int_equal(facts.delay[p], delay[p]);
    assert_int_equal(facts.depth[p], delay[p] + 1);
    assert_int_equal(facts.slots[p], 1);
  }
  assert_int_equal(facts.updates_open, 1);
  pl_schedule_free(&s);
}

static pl_instruction *find(pl_instructions *list, pl_op op, size_t j) {
  for (size_t i = 0; i < list->count; i++)
    if (list->items[i].op == op && list->items[i].microbatch == j) return &list->items[i];
  fail();
  return NULL;
}

static void drop(pl_instructions *list, pl_op op, size_t j) {
  pl_instruction *at = find(list, op, j);
  memmove(at, at + 1, (size_t)(list->items + list->count - at - 1) * sizeof *at);
  list->count--;
}

/* Each breaks a good 2BW schedule in one way. */
static void no_send(pl_schedule *s) { drop(&s->program[1].body, PL_OP_SEND_ACTIVATION, 2); }
static void no_forward(pl_schedule *s) { drop(&s->program[1].body, PL_OP_FORWARD, 2); }
static void nobody_asked(pl_schedule *s) { add_forward(&s->program[0].prologue, 0, 0, 5, 0); }
static void no_backward(pl_schedule *s) { drop(&s->program[0].body, PL_OP_BACKWARD, 3); }
static void two_updates(pl_schedule *s) { add(&s->program[1].body, PL_OP_UPDATE, 0, 0, 0); }
static void above_first(pl_schedule *s) { add(&s->program[0].body, PL_OP_SEND_GRADIENT, 0, 0, 0); }
static void negative_lag(pl_schedule *s) { find(&s->program[1].body, PL_OP_FORWARD, 2)->lag = -1; }
static void no_microbatch(pl_schedule *s) { find(&s->program[1].body, PL_OP_FORWARD, 2)->microbatch = 4; }
static void too_early(pl_schedule *s) { find(&s->program[2].body, PL_OP_RECV_GRADIENT, 0)->ahead = 1; }
static void repeated(pl_schedule *s) {
  for (size_t p = 0; p < STAGES; p++) {
    pl_instructions *body = &s->program[p].body;
    drop(body, PL_OP_UPDATE, 0);
    add_forward(body, p, 0, 0, 1);
    add_backward(body, p, 0, 1);
    add(body, PL_OP_UPDATE, 0, 0, 0);
  }
}
static void backward_ahead(pl_schedule *s) {
  add(&s->program[3].prologue, PL_OP_RECV_ACTIVATION, 0, 0, 0);
  add(&s->program[3].prologue, PL_OP_FORWARD, 0, 0, 0);
  add(&s->program[3].prologue, PL_OP_BACKWARD, 0, 0, 0);
  for (size_t i = 0; i < s->program[3].prologue.count; i++) s->program[3].prologue.items[i].ahead = 1;
  for (size_t p = 0; p < 3; p++) add_forward(&s->program[p].prologue, p, 0, 1, 0);
}
static void broken_schedules(void **state) {
  (void)state;
  const struct {
    void (*damage)(pl_schedule *s);
    const char *message;
  } cases[] = {
      {no_send, "no stage can go on"},
      {no_forward, "out of turn"},
      {nobody_asked, "never received"},
      {no_backward, "is missing"},
      {two_updates, "exactly one"},
      {above_first, "no stage on that side"},
      {negative_lag, "out of range"},
      {no_microbatch, "out of range"},
      {too_early, "no stage can go on"},
      {repeated, "repeated"},
      {backward_ahead, "for the current update only"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pl_schedule s;
    pl_schedule_facts facts;
    pl_err e = {0};
    two_bw(&s, 4);
    cases[i].damage(&s);
    assert_int_equal(pl_schedule_check(&s, &facts, &e), PL_BAD);
    if (!strstr(e.text, cases[i].message)) fail_msg("case %zu: \"%s\" lacks \"%s\"", i, e.text, cases[i].message);
    pl_schedule_free(&s);
  }
}

/* Everything that the trainer puts around the engine, but for the schedule. */
typedef struct bench {
  rig r;
  pl_model *model;
  pl_stage stage[STAGES];
  pl_batches batches;
  pl_counters counters;
  pl_step step;
  pl_engine *engine;
  bool arrived[STAGES];
  double losses[UPDATES];
  const int64_t *delays; /* [UPDATES] to be measured; NULL: the steady one after its ramp */
} bench;

static const pl_batch *on_batch(void *self, int64_t update, size_t microbatch) {
  return pl_batches_get(&((bench *)self)->batches, update, microbatch);
}

static pl_update_verdict on_update(void *self, size_t stage, int64_t update) {
  bench *b = self;
  if (b->counters.step > update) return PL_UPDATE_DONE;
  b->arrived[stage] = true;
  for (size_t p = 0; p < STAGES; p++)
    if (!b->arrived[p]) return PL_UPDATE_WAIT;
  for (size_t p = 0; p < STAGES; p++) {
    int64_t steady = b->stage[p].delay;
    int64_t ramp = update < steady ? update : steady;
    assert_int_equal(pl_engine_delay(b->engine, p), b->delays ? b->delays[update] : ramp);
    b->arrived[p] = false;
  }
  pl_update u = {.loss = pl_engine_loss(b->engine) / (double)b->r.config.train.batch_tokens};
  b->losses[update] = u.loss;
  pl_step_apply(&b->step, false, &u);
  return PL_UPDATE_DONE;
}

static void run_engine(bench *b, const pl_schedule *s) {
  static const size_t first[STAGES + 1] = {0, 1, 2, 3, 4};
  pl_err e = {0};
  pl_device *d = b->r.device;
  const pl_run_config *c = &b->r.config;
  const pl_model_type *type = (const pl_model_type *)c->model.type;
  pl_schedule_facts facts = check(s);
  pl_transport *transport = NULL;
  pl_model_shape shape = {0};
  bool halted = false;
  type->shape(c->model.config, &shape);
  const pl_model_env env = {.device = d,
                            .stages = STAGES,
                            .first_layer = first,
                            .vocab = b->r.args.dataset_type->vocab(b->r.dataset),
                            .max_sequences = 8};
  rig_must(type->create(c->model.config, &env, &b->model, &e), &e);
  rig_must(pl_batches_create(c, &shape, d, b->r.args.dataset_type, b->r.dataset, facts.updates_open, &b->batches, &e),
           &e);
  rig_must(pl_transport_local(d, s, &facts, type->boundary_size(b->model), &transport, &e), &e);
  pl_engine_args args = {.device = d,
                         .model_type = type,
                         .model = b->model,
                         .schedule = s,
                         .facts = &facts,
                         .transport = transport,
                         .self = b,
                         .batch = on_batch,
                         .update = on_update};
  b->counters = pl_counters_new();
  b->step = (pl_step){.config = c, .device = d, .stages = b->stage, .counters = &b->counters};
  b->step.tied = type->tie && type->tie(b->model, &b->step.tie);
  for (size_t p = 0; p < STAGES; p++) {
    const pl_layout *layout = type->layout(b->model, p);
    pl_real *x = NULL;
    rig_must(pl_alloc(layout->size, sizeof *x, "test", &x, &e), &e);
    pl_layout_init(layout, (uint64_t)c->root.seed, x);
    rig_must(pl_stage_create(c, d, layout, facts.delay[p], facts.depth[p], &b->stage[p], &e), &e);
    pl_stage_start(&b->stage[p], x);
    pl_free(x);
    args.stage[p] = (pl_engine_stage){.ring = &b->stage[p].ring, .grad = b->stage[p].grad};
  }
  rig_must(pl_engine_create(&args, &b->engine, &e), &e);
  pl_engine_start(b->engine, 0, UPDATES);
  for (int64_t t = 1; t <= UPDATES; t++) rig_must(pl_engine_run(b->engine, t, &halted, &e), &e);
  assert_false(halted);
  pl_engine_destroy(b->engine);
  transport->type->destroy(transport);
}

static void close_engine(bench *b) {
  for (size_t p = 0; p < STAGES; p++) pl_stage_free(&b->stage[p]);
  pl_batches_free(&b->batches);
  ((const pl_model_type *)b->r.config.model.type)->destroy(b->model);
}

/* The trainer's `lagged` against the engine with another schedule of the same delays. */
static bool same_bits(void (*make)(pl_schedule *s, size_t m), size_t m, const char *delay, const char *tied) {
  bench b = {0};
  pl_schedule s;
  char json[RIG_TEXT];
  snprintf(
      json, sizeof json,
      "{'model': {'type': 'transformer', 'layers': 4, 'd_model': 16, 'heads': 2, 'context': 8, 'tied': %s}, 'data': "
      "{'type': 'synthetic', 'vocab': 16}, 'optimizer': {'type': 'adamw', 'lr': 0.01}, 'correction': 'ef', 'delay': "
      "%s, "
      "'simulate_only': true, 'train': {'steps': %d, 'batch_tokens': 56, 'val_tokens': 16, 'clip': 0.5}, 'pipeline': "
      "{'stages': %d, 'microbatches': %zu}}",
      tied, delay, UPDATES, STAGES, m);
  rig_open(&b.r, NULL, json);
  rig_train(&b.r);
  make(&s, m);
  run_engine(&b, &s);
  size_t at = 0;
  bool same = true;
  for (size_t p = 0; p < STAGES; p++) {
    size_t n = b.stage[p].layout->size;
    same = same && rig_same(pl_ring_newest(&b.stage[p].ring), b.r.weights + at, n * sizeof(pl_real));
    at += n;
  }
  for (size_t t = 0; t < UPDATES; t++)
    same = same && rig_same(&b.losses[t], &b.r.points[t + 1].values[PL_SERIES_train_loss], sizeof(double));
  close_engine(&b);
  pl_schedule_free(&s);
  rig_close(&b.r);
  return same;
}

static void engine_gives_the_bits_of_lagged(void **state) {
  (void)state;
  static const char *const tied[] = {"false", "true"};
  for (size_t i = 0; i < 2; i++) {
    assert_true(same_bits(gpipe, 3, "0", tied[i]));
    assert_true(same_bits(one_f_one_b, 4, "0", tied[i]));
    assert_true(same_bits(two_bw, 4, "1", tied[i]));
    assert_true(same_bits(two_bw, 7, "1", tied[i]));
    assert_true(same_bits(pipedream, 1, "'pipedream'", tied[i]));
  }
  for (size_t i = 0; i < 2; i++) {
    assert_true(same_bits(named_gpipe, 4, "0", tied[i]));
    assert_true(same_bits(named_1f1b, 3, "0", tied[i]));
    assert_true(same_bits(named_2bw, 3, "1", tied[i]));
    assert_true(same_bits(named_2bw, 5, "1", tied[i]));
    assert_true(same_bits(named_pipedream, 1, "'pipedream'", tied[i]));
    assert_true(same_bits(named_vertical, 1, "3", tied[i]));
    assert_true(same_bits(named_wpipe, 2, "[1, 1, 0, 0]", tied[i]));
  }
  assert_false(same_bits(two_bw, 4, "2", "false"));
  assert_false(same_bits(pipedream, 1, "[3, 2, 1, 1]", "false"));
}

/* The largest over the microbatches of this update, not of an earlier one. */
static void engine_measures_each_update(void **state) {
  (void)state;
  static const int64_t delays[UPDATES] = {0, 1, 2, 1, 1, 1, 1, 1, 1};
  bench b = {.delays = delays};
  pl_schedule s;
  rig_open(&b.r, NULL,
           "{'model': {'type': 'mlp', 'layers': 4, 'hidden': 6, 'context': 8}, 'data': {'type': 'synthetic', 'vocab': "
           "16}, 'optimizer': 'sgd', 'train': {'steps': 9, 'batch_tokens': 32, 'val_tokens': 16}, 'pipeline': "
           "{'stages': 4, 'microbatches': 2}}");
  calms_down(&s, 2);
  run_engine(&b, &s);
  close_engine(&b);
  pl_schedule_free(&s);
  rig_close(&b.r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(facts_are_derived),
      cmocka_unit_test(lagged_facts),
      cmocka_unit_test(broken_schedules),
      cmocka_unit_test(engine_gives_the_bits_of_lagged),
      cmocka_unit_test(engine_measures_each_update),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
