/* The named schedules against vectors/pipeline_schedules.json and the formulas of the literature, their slack, starts
 * and stops, and the event simulation. */
#include "core/base/json.h"
#include "core/pipeline/engine.h"
#include "tests/conform/schedules_rig.h"

/* Backwards that read the newest weights instead of the stashed ones. */
static void drop_stash(pl_schedule *s) {
  for (size_t p = 0; p < s->stages; p++) {
    const pl_instructions *const parts[] = {&s->program[p].prologue, &s->program[p].body, &s->program[p].epilogue};
    for (size_t part = 0; part < 3; part++)
      for (size_t i = 0; i < parts[part]->count; i++)
        if (parts[part]->items[i].op == PL_OP_BACKWARD) parts[part]->items[i].lag = 0;
  }
}

/* Of one stage of a vector: does the timeline do the same, in the same order, on the same versions? */
static bool stage_agrees(const pl_timeline *t, size_t stage, const pl_json *order, const pl_json *delay,
                         const pl_json *gap) {
  size_t at = 0, m = t->schedule->microbatches;
  int64_t *read = NULL; /* version that each microbatch's forward read */
  bool same = true;
  pl_err e = {0};
  must(pl_alloc(pl_json_size(delay), sizeof *read, "test", &read, &e), &e);
  for (size_t i = 0; i < t->count && same; i++) {
    const pl_event *event = &t->events[i];
    if (event->stage != stage) continue;
    char word[32];
    size_t number = (size_t)event->update * m + event->in->microbatch;
    if (event->in->op == PL_OP_UPDATE) number = (size_t)event->update;
    snprintf(word, sizeof word, "%c%zu", "FB....U"[event->in->op], number);
    same = at < pl_json_size(order) && strcmp(word, pl_json_string(pl_json_at(order, at))) == 0;
    at++;
    if (event->in->op == PL_OP_FORWARD) {
      read[number] = event->version;
      same = same && event->update - event->version == pl_json_int(pl_json_at(delay, number));
    } else if (event->in->op == PL_OP_BACKWARD) {
      same = same && event->version - read[number] == pl_json_int(pl_json_at(gap, number));
    }
  }
  pl_free(read);
  return same && at == pl_json_size(order);
}

static bool agrees(const pl_schedule *s, const pl_json *vector) {
  const int64_t updates = pl_json_get_int(vector, "T", 0);
  pl_timeline t = timeline(s, updates);
  pl_schedule_facts facts = check(s);
  pl_bubble b = bubble(s, updates);
  bool same = fabs(b.end - pl_json_get_number(vector, "makespan", 0)) < 1e-9 && t.end == b.end &&
              fabs(b.fraction - pl_json_get_number(vector, "bubble_fraction", 0)) < 1e-12;
  for (size_t p = 0; p < s->stages && same; p++) {
    char key[24];
    snprintf(key, sizeof key, "%zu", p);
    const pl_json *slots = pl_json_at(pl_json_get(vector, "max_inflight_microbatches"), p);
    same = pl_json_int(slots) == (int64_t)facts.slots[p] &&
           stage_agrees(&t, p, pl_json_get(pl_json_get(vector, "order"), key),
                        pl_json_get(pl_json_get(vector, "forward_delay_by_stage"), key),
                        pl_json_get(pl_json_get(vector, "fwd_bwd_version_gap_by_stage"), key));
  }
  pl_timeline_free(&t);
  return same;
}

static bool versions_agree(const pl_schedule *s, const pl_json *vector) {
  pl_schedule_facts facts = check(s);
  const pl_json *versions = pl_json_get(vector, "max_distinct_weight_versions_incl_latest");
  for (size_t p = 0; p < s->stages; p++)
    if (pl_json_int(pl_json_at(versions, p)) != (int64_t)facts.depth[p]) return false;
  return true;
}

static void vectors_are_derived(void **state) {
  (void)state;
  pl_json *vectors = NULL;
  pl_err e = {0};
  must(pl_json_read(PL_TESTS "/vectors/pipeline_schedules.json", &vectors, &e), &e);
  assert_int_equal(pl_json_size(vectors), 13);
  for (size_t i = 0; i < pl_json_size(vectors); i++) {
    const pl_json *vector = pl_json_at(vectors, i);
    const char *kind = pl_json_get_string(vector, "kind", "");
    bool accum = strcmp(kind, "accum") == 0;
    pl_schedule s;
    make(accum ? "accumulate-newest" : kind, (size_t)pl_json_get_int(vector, "P", 0),
         (size_t)pl_json_get_int(vector, "m", 0), 0, &s);
    /* The vector's versions are those that forwards in flight have read. */
    if (!versions_agree(&s, vector)) fail_msg("vector %zu (%s): other versions", i, kind);
    if (accum) {
      assert_false(agrees(&s, vector)); /* it stashes nothing */
      drop_stash(&s);
    }
    if (!agrees(&s, vector)) fail_msg("vector %zu (%s) differs", i, kind);
    s.program[s.stages - 1].body.items[s.stages > 1].lag++; /* one forward on a version that is off by one */
    assert_false(agrees(&s, vector));
    pl_schedule_free(&s);
  }
  pl_json_release(vectors);
}

typedef struct expected {
  size_t versions;
  int64_t delay;
  double in_flight; /* activation sets of the whole stage */
} expected;

static size_t ceil_div(size_t a, size_t b) { return (a + b - 1) / b; }
static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* The table of methods: P stages, m microbatches, stage p, w stages behind it, v chunks. */
static expected of_gpipe(size_t P, size_t m, size_t p, size_t v) {
  (void)P, (void)p, (void)v;
  return (expected){1, 0, (double)m};
}
static expected of_1f1b(size_t P, size_t m, size_t p, size_t v) {
  (void)v;
  return (expected){1, 0, (double)least(m, P - p)};
}
static expected of_interleaved(size_t P, size_t m, size_t p, size_t v) {
  size_t forwards = 2 * (P - 1 - p) + (v - 1) * P + 1;
  return (expected){1, 0, (double)least(forwards, m * v) / (double)v};
}
static expected of_zb_h1(size_t P, size_t m, size_t p, size_t v) {
  (void)p, (void)v;
  return (expected){1, 0, (double)least(m, P)};
}
static expected of_2bw(size_t P, size_t m, size_t p, size_t v) {
  (void)m, (void)v;
  return (expected){2, 1, (double)(P - p)};
}
static expected of_pipedream(size_t P, size_t m, size_t p, size_t v) {
  (void)m, (void)v;
  return (expected){P - p, (int64_t)(P - 1 - p), (double)(P - p)};
}
static expected of_vertical(size_t P, size_t m, size_t p, size_t v) {
  (void)m, (void)v;
  return (expected){P, (int64_t)P - 1, (double)(P - p)};
}
static expected of_accumulate(size_t P, size_t m, size_t p, size_t v) {
  (void)v;
  size_t delay = ceil_div(P - 1 - p, m);
  return (expected){delay + 1, (int64_t)delay, (double)(P - p)};
}

typedef enum flush { EVERY_UPDATE, START_AND_STOP, THIRD } flush;

static void check_row(const char *name, expected (*of)(size_t, size_t, size_t, size_t), flush kind, size_t P, size_t m,
                      size_t v) {
  enum { UPDATES = 11 };
  pl_schedule s;
  make(name, P, m, v, &s);
  pl_schedule_facts facts = check(&s);
  for (size_t p = 0; p < P; p++) {
    expected want = of(P, m, p, v);
    assert_int_equal(facts.depth[p], want.versions);
    assert_int_equal(facts.delay[p], want.delay);
    assert_int_equal(facts.gap[p], 0);
    assert_true(fabs((double)facts.slots[p] / (double)v - want.in_flight) < 1e-12);
  }
  pl_bubble b = bubble(&s, UPDATES);
  const double stages = (double)P, work = (double)(m * v), lost = kind == THIRD ? (stages - 1) / 3 : stages - 1;
  if (kind == START_AND_STOP) {
    assert_true(fabs(b.fraction - lost / (UPDATES * work + lost)) < 1e-12);
    assert_true(fabs(b.steady) < 1e-12 && fabs(b.period - 3 * (double)m) < 1e-9);
  } else {
    assert_true(fabs(b.steady - lost / (work + lost)) < 1e-12);
    assert_true(fabs(b.fraction - lost / (work + lost)) < 1e-12);
  }
  pl_schedule_free(&s);
}

static void the_table_of_the_literature(void **state) {
  (void)state;
  for (size_t P = 1; P <= 8; P++) {
    for (size_t m = 1; m <= 2 * P + 1; m++) {
      check_row("gpipe", of_gpipe, EVERY_UPDATE, P, m, 1);
      check_row("1f1b", of_1f1b, EVERY_UPDATE, P, m, 1);
      if (m >= P) check_row("zb-h1", of_zb_h1, THIRD, P, m, 1);
      if (m + 1 >= P) check_row("2bw", of_2bw, START_AND_STOP, P, m, 1);
      check_row("accumulate-newest", of_accumulate, START_AND_STOP, P, m, 1);
      for (size_t v = 2; v <= 4 && P > 1 && m % P == 0; v++)
        check_row("interleaved-1f1b", of_interleaved, EVERY_UPDATE, P, m, v);
    }
    check_row("pipedream", of_pipedream, START_AND_STOP, P, 1, 1);
    check_row("pipedream-vertical", of_vertical, START_AND_STOP, P, 1, 1);
  }
}

static void delays_of_microbatches(void **state) {
  (void)state;
  pl_err e = {0};
  for (size_t m = 1; m <= 9; m++) {
    int64_t delay[8 * 9];
    pl_schedule s;
    make("accumulate-newest", 8, m, 0, &s);
    must(pl_schedule_delays(&s, delay, &e), &e);
    for (size_t p = 0; p < 8; p++)
      for (size_t r = 0; r < m; r++) assert_int_equal(delay[p * m + r], 7 - p > r ? ceil_div(7 - p - r, m) : 0);
    pl_schedule_free(&s);
  }
}

static void slack_is_derived(void **state) {
  (void)state;
  const struct {
    const char *name;
    size_t m;
    bool exists;
  } cases[] = {{"gpipe", 6, true},
               {"1f1b", 6, true},
               {"1f1b", 12, true},
               {"interleaved-1f1b", 12, true},
               {"zb-h1", 6, true},
               {"zb-h1", 9, true},
               {"2bw", 6, true},
               {"2bw", 5, true},
               {"2bw", 11, true},
               {"pipedream-vertical", 1, true},
               {"pipedream", 1, false},
               {"accumulate-newest", 2, false},
               {"accumulate-newest", 6, false},
               {"accumulate-newest", 15, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pl_schedule s;
    pl_slack slack;
    pl_err e = {0};
    make(cases[i].name, 6, cases[i].m, 0, &s);
    must(pl_schedule_slack(&s, &slack, &e), &e);
    if (slack.exists != cases[i].exists) fail_msg("%s with %zu microbatches", cases[i].name, cases[i].m);
    assert_int_equal(pl_schedule_allow_global(&s, "train.clip", &e), cases[i].exists ? PL_OK : PL_BAD);
    if (!slack.exists) {
      assert_int_equal(slack.stage, 5);
      assert_int_equal(slack.other, 0);
      assert_true(slack.least == -10); /* five backwards */
      assert_non_null(strstr(e.text, "update t of stage 5 needs data of stage 0 that does not exist yet"));
    }
    pl_schedule_free(&s);
  }
}

typedef struct tally {
  const pl_schedule *schedule;
  int64_t since, ramp;
  int64_t *delay; /* [stages * microbatches] */
  size_t updates, gradients, misfits;
} tally;

static pl_status count_event(void *self, const pl_event *event, pl_err *e) {
  (void)e;
  tally *t = self;
  pl_op op = event->in->op;
  t->updates += op == PL_OP_UPDATE;
  t->gradients += op == PL_OP_BACKWARD || op == PL_OP_BACKWARD_WEIGHT;
  if (op == PL_OP_UPDATE || t->since == 0) return PL_OK;
  int64_t steady = t->delay[event->stage * t->schedule->microbatches + event->in->microbatch];
  t->misfits += event->update - event->version != steady;
  return PL_OK;
}

/* However few updates are left, they are all made and nothing else; a start in the middle, where the older versions
 * exist, reads from its first instruction on what a run without a stop reads. */
static void starts_and_stops_anywhere(const pl_schedule *s) {
  const pl_costs costs = pl_costs_unit();
  pl_err e = {0};
  int64_t delay[8 * 16];
  must(pl_schedule_delays(s, delay, &e), &e);
  for (int64_t done = 0; done <= 40; done += 40)
    for (int64_t left = 1; left <= 9; left++) {
      tally t = {.schedule = s, .since = done, .delay = delay};
      must(pl_schedule_simulate(s, &costs, done, done + left, count_event, &t, &e), &e);
      assert_int_equal(t.updates, (size_t)left * s->stages);
      assert_int_equal(t.gradients, (size_t)left * s->stages * s->microbatches * pl_schedule_chunks(s));
      assert_int_equal(t.misfits, 0);
    }
}

static void any_number_of_updates(void **state) {
  (void)state;
  for_each(starts_and_stops_anywhere);
}

static double end_of(const pl_schedule *s, const pl_costs *costs, int64_t updates) {
  pl_bubble b;
  pl_err e = {0};
  must(pl_schedule_bubble(s, costs, updates, &b, &e), &e);
  return b.end;
}

static void links_take_time(void **state) {
  (void)state;
  pl_schedule s;
  /* F, message, F and B, message, B, U. */
  make("gpipe", 2, 1, 0, &s);
  pl_costs costs = {.all = {.forward = 1, .backward = 2, .update = 0.125}, .latency = 0.5, .transfer = 0.25};
  assert_true(fabs(end_of(&s, &costs, 1) - (1 + 0.75 + 3 + 0.75 + 2 + 0.125)) < 1e-12);
  pl_schedule_free(&s);
  /* The second message waits for the link: the activation is there at 1 + 2 * 3, then the gradients. */
  make("gpipe", 2, 2, 0, &s);
  costs = (pl_costs){.all = {.forward = 1, .backward = 2}, .transfer = 3};
  assert_true(fabs(end_of(&s, &costs, 1) - (7 + 1 + 2 + 3 + 3 + 2)) < 1e-12);
  pl_schedule_free(&s);
  /* Unequal stages: the slower one sets the period of 2bw, and waits for no message. */
  const pl_stage_costs each[] = {{.forward = 1, .backward = 2}, {.forward = 2, .backward = 3.5}};
  costs = (pl_costs){.each = each, .latency = 0.125};
  pl_bubble b;
  pl_err e = {0};
  make("2bw", 2, 4, 0, &s);
  must(pl_schedule_bubble(&s, &costs, 4, &b, &e), &e);
  assert_true(fabs(b.period - 4 * 5.5) < 1e-12);
  assert_true(fabs(b.steady - (1 - 8.5 / 11)) < 1e-12);
  assert_true(fabs(b.end - (1.125 + 16 * 5.5 + 0.125 + 2)) < 1e-12);
  pl_schedule_free(&s);
}

static void memory_of_a_stage(void **state) {
  (void)state;
  const pl_stage_sizes sizes = {.weights = 100, .gradient = 90, .optimizer = 200, .activations = 7};
  pl_schedule s;
  make("2bw", 4, 4, 0, &s);
  pl_schedule_facts facts = check(&s);
  assert_true(pl_schedule_memory(&s, &facts, 1, &sizes) == 2 * 100 + 90 + 200 + 3 * 7);
  pl_schedule_free(&s);
  make("interleaved-1f1b", 4, 8, 2, &s);
  facts = check(&s);
  assert_true(fabs(pl_schedule_memory(&s, &facts, 0, &sizes) - (100 + 90 + 200 + 5.5 * 7)) < 1e-12);
  pl_schedule_free(&s);
}

static void many_stages(void **state) {
  (void)state;
  const double P = PL_SCHEDULE_STAGES, m = 128;
  pl_schedule s;
  make("1f1b", PL_SCHEDULE_STAGES, (size_t)m, 0, &s);
  assert_true(fabs(bubble(&s, 1).fraction - (P - 1) / (m + P - 1)) < 1e-12);
  pl_schedule_free(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(vectors_are_derived),    cmocka_unit_test(the_table_of_the_literature),
      cmocka_unit_test(delays_of_microbatches), cmocka_unit_test(slack_is_derived),
      cmocka_unit_test(any_number_of_updates),  cmocka_unit_test(links_take_time),
      cmocka_unit_test(memory_of_a_stage),      cmocka_unit_test(many_stages),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
