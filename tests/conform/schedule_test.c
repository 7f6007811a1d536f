/* The checker on schedules that are written here by hand: GPipe, 1F1B, PipeDream-2BW, PipeDream with stashing. Their
 * delays are derived; broken ones are refused. And all schedules trained in one process: they give the bits of `lagged`
 * with the delays that they are said to have. */
#include <unistd.h>

#include "core/pipeline/schedule_text.h"
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

/* Three updates that read two versions back, then for ever: the first microbatch one back, the second the newest. */
static void calms_down(pl_schedule *s, size_t m) {
  *s = (pl_schedule){.name = "calms-down", .stages = STAGES, .microbatches = m};
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

#define TRANSFORMER                                                                                                    \
  "{'model': {'type': 'transformer', 'layers': 4, 'd_model': 16, 'heads': 2, 'context': 8, 'tied': %s}, 'data': "      \
  "{'type': 'synthetic', 'vocab': 16}, 'optimizer': {'type': 'adamw', 'lr': 0.01}, 'correction': 'ef', 'train': "      \
  "{'steps': %d, 'batch_tokens': 56, 'val_tokens': 16, 'val_every': 4, 'clip': 0.5, 'clip_scope': '%s'}, "

static void open_run(rig *r, const char *tied, const char *scope, const char *pipeline, size_t m) {
  char json[RIG_TEXT];
  int length = snprintf(json, sizeof json, TRANSFORMER, tied, UPDATES, scope);
  snprintf(json + length, sizeof json - (size_t)length, "%s, 'microbatches': %zu, 'stages': %d}}", pipeline, m, STAGES);
  rig_open(r, NULL, json);
}

/* Weights, and every figure of every point. */
static bool same_run(const rig *a, const rig *b) {
  bool same = rig_same_weights(a, b) && a->point_count == b->point_count;
  for (size_t i = 0; i < a->point_count && same; i++)
    same = rig_same(a->points[i].values, b->points[i].values, PL_SERIES_seconds * sizeof(double));
  return same;
}

/* Lagged with these delays against another schedule that is said to have them. */
static bool same_bits(const char *schedule, size_t m, const char *delay, const char *tied, const char *scope) {
  rig simulated, real;
  char pipeline[256];
  snprintf(pipeline, sizeof pipeline, "'delay': %s, 'simulate_only': true, 'pipeline': {'partition': 'even'", delay);
  open_run(&simulated, tied, scope, pipeline, m);
  rig_train(&simulated);
  snprintf(pipeline, sizeof pipeline,
           "'pipeline': {'partition': 'even', 'allow_min_microbatches': %s, 'schedule': '%s'",
           strcmp(schedule, "2bw") == 0 ? "true" : "false", schedule);
  open_run(&real, tied, scope, pipeline, m);
  rig_train(&real);
  bool same = same_run(&simulated, &real);
  rig_close(&real);
  rig_close(&simulated);
  return same;
}

static void schedules_give_the_bits_of_lagged(void **state) {
  (void)state;
  static const char *const tied[] = {"false", "true"}, *const scopes[] = {"stage", "global"};
  for (size_t i = 0; i < 2; i++)
    for (size_t c = 0; c < 2; c++) {
      assert_true(same_bits("gpipe", 4, "0", tied[i], scopes[c]));
      assert_true(same_bits("1f1b", 3, "0", tied[i], scopes[c]));
      assert_true(same_bits("1f1b", 7, "0", tied[i], scopes[c]));
      assert_true(same_bits("zb-h1", 4, "0", tied[i], scopes[c]));
      assert_true(same_bits("2bw", 3, "1", tied[i], scopes[c]));
      assert_true(same_bits("2bw", 4, "1", tied[i], scopes[c]));
      assert_true(same_bits("2bw", 7, "1", tied[i], scopes[c]));
      assert_true(same_bits("pipedream-vertical", 1, "3", tied[i], scopes[c]));
    }
  assert_true(same_bits("pipedream", 1, "'pipedream'", "false", "stage"));
  assert_true(same_bits("pipedream", 1, "[3, 2, 1, 0]", "false", "stage"));
  assert_true(same_bits("wpipe", 2, "[1, 1, 0, 0]", "false", "stage"));
  assert_false(same_bits("2bw", 4, "2", "false", "stage"));
  assert_false(same_bits("2bw", 4, "0", "true", "global"));
  assert_false(same_bits("pipedream", 1, "[3, 2, 1, 1]", "false", "stage"));
}

/* The measured delay is the largest over the microbatches of this update, not of an earlier one. */
static void delay_is_measured_in_each_update(void **state) {
  (void)state;
  static const double delays[UPDATES] = {0, 1, 2, 1, 1, 1, 1, 1, 1};
  rig r;
  pl_schedule s;
  pl_str text = {0};
  char path[] = "/tmp/pl_schedule_test.XXXXXX", pipeline[256];
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  calms_down(&s, 2);
  pl_schedule_write(&s, &text);
  assert_int_equal(write(fd, text.text, text.length), text.length);
  assert_int_equal(close(fd), 0);
  snprintf(pipeline, sizeof pipeline, "'delay': 1, 'pipeline': {'schedule': 'custom', 'schedule_file': '%s'", path);
  open_run(&r, "false", "stage", pipeline, 2);
  rig_train(&r);
  for (size_t t = 0; t < UPDATES; t++) assert_true(r.points[t + 1].values[PL_SERIES_delay] == delays[t]);
  rig_close(&r);
  pl_str_free(&text);
  pl_schedule_free(&s);
  assert_int_equal(unlink(path), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(facts_are_derived),
      cmocka_unit_test(lagged_facts),
      cmocka_unit_test(broken_schedules),
      cmocka_unit_test(schedules_give_the_bits_of_lagged),
      cmocka_unit_test(delay_is_measured_in_each_update),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
