/* Plans against closed forms: forward 1 and backward 2 as in the literature, unequal stages, slow links, memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/pipeline/library.h"
#include "core/pipeline/plan.h"

enum { MOST = 8 };

/* A schedule and its plan; large, so one of each kind is enough. */
typedef struct bed {
  pl_schedule schedule;
  pl_schedule_facts facts;
  pl_pipeline_plan plan;
} bed;

static void must(pl_status st, const pl_err *e) {
  if (st != PL_OK) fail_msg("%s", e->text);
}

static void make(const char *name, size_t stages, size_t microbatches, bed *b) {
  pl_err e = {0};
  const pl_schedule_type *type = pl_schedule_find(name, &e);
  const int64_t delay[MOST] = {3, 0, 2, 1, 1, 1, 1, 5};
  const pl_schedule_args args = {
      .stages = stages, .microbatches = microbatches, .delay = type && type->takes_delay ? delay : NULL};
  if (!type) fail_msg("%s", e.text);
  must(pl_schedule_make(type, &args, &b->schedule, &e), &e);
  pl_schedule_read_facts(&b->schedule, &b->facts);
}

static void plan_with(const char *name, size_t stages, size_t microbatches, const pl_costs *costs,
                      const pl_stage_sizes *sizes, bed *b) {
  pl_err e = {0};
  make(name, stages, microbatches, b);
  must(pl_pipeline_plan_make(&b->schedule, &b->facts, costs, sizes, &b->plan, &e), &e);
  pl_schedule_free(&b->schedule);
}

static double step_of(const char *name, size_t stages, size_t microbatches, const pl_costs *costs) {
  static bed b;
  plan_with(name, stages, microbatches, costs, NULL, &b);
  return b.plan.step;
}

static void near(double seen, double expected) {
  if (!(fabs(seen - expected) <= 1e-9 * (1 + fabs(expected)))) fail_msg("saw %.17g, expected %.17g", seen, expected);
}

static void test_facts(void **state) {
  (void)state;
  static bed b;
  static pl_schedule_facts checked;
  size_t count = 0;
  const pl_schedule_type *const *types = pl_schedule_types(&count);
  for (size_t i = 0; i < count; i++)
    for (size_t stages = 1; stages <= MOST; stages++)
      for (size_t m = 1; m <= 2 * MOST; m++) {
        pl_err e = {0};
        const int64_t delay[MOST] = {3, 0, 2, 1, 1, 1, 1, 5};
        const pl_schedule_args args = {
            .stages = stages, .microbatches = m, .delay = types[i]->takes_delay ? delay : NULL};
        if (pl_schedule_make(types[i], &args, &b.schedule, &e) == PL_OK) {
          must(pl_schedule_check(&b.schedule, &checked, &e), &e);
          pl_schedule_read_facts(&b.schedule, &b.facts);
          assert_memory_equal(b.facts.slots, checked.slots, sizeof checked.slots);
          assert_memory_equal(b.facts.depth, checked.depth, sizeof checked.depth);
          assert_memory_equal(b.facts.delay, checked.delay, sizeof checked.delay);
        }
        pl_schedule_free(&b.schedule);
      }
}

/* methods: bubbles (P-1)/(m+P-1), (P-1)/(vm+P-1), (P-1)/(3m+P-1); the gain of 2bw over 1f1b (m+P-1)/m. */
static void test_equal_stages(void **state) {
  (void)state;
  static bed sync, async, other;
  const pl_costs unit = pl_costs_unit();
  for (size_t stages = 1; stages <= MOST; stages++)
    for (size_t m = stages; m <= 4 * stages; m += stages) {
      double p = (double)stages, n = (double)m;
      plan_with("1f1b", stages, m, &unit, NULL, &sync);
      near(sync.plan.step, 3 * (n + p - 1));
      near(sync.plan.bubble, (p - 1) / (n + p - 1));
      assert_int_equal(sync.plan.delay, 0);
      plan_with("2bw", stages, m, &unit, NULL, &async);
      near(async.plan.step, 3 * n);
      near(async.plan.bubble, 0);
      assert_int_equal(async.plan.delay, 1);
      near(pl_pipeline_overhead(&async.plan, &sync.plan), (n + p - 1) / n - 1);
      plan_with("gpipe", stages, m, &unit, NULL, &other);
      near(other.plan.step, sync.plan.step);
      plan_with("zb-h1", stages, m, &unit, NULL, &other);
      near(other.plan.bubble, (p - 1) / (3 * n + p - 1));
      if (stages < 2) continue;
      plan_with("interleaved-1f1b", stages, m, &unit, NULL, &other);
      near(other.plan.bubble, (p - 1) / (2 * n + p - 1));
    }
}

static const pl_stage_costs unequal[] = {{.forward = 1, .backward = 2.5, .update = 0.25},
                                         {.forward = 1.5, .backward = 2, .update = 0.25},
                                         {.forward = 0.75, .backward = 4.25, .update = 0.25},
                                         {.forward = 1.25, .backward = 1, .update = 0.25}};

/* The slowest stage alone sets the period of 2bw; gpipe takes one pass of all stages each way and waits m - 1 times for
 * the slowest. */
static void test_unequal_stages(void **state) {
  (void)state;
  static bed b;
  const pl_costs costs = {.each = unequal};
  for (size_t m = 4; m <= 12; m++) {
    plan_with("2bw", 4, m, &costs, NULL, &b);
    near(b.plan.step, (double)m * 5 + 0.25);
    assert_int_equal(b.plan.slowest, 2);
    near(b.plan.stage[2].busy, 1);
    near(b.plan.stage[0].busy, ((double)m * 3.5 + 0.25) / b.plan.step);
    plan_with("gpipe", 4, m, &costs, NULL, &b);
    near(b.plan.step, 4.5 + 1.5 * (double)(m - 1) + 9.75 + 4.25 * (double)(m - 1) + 0.25);
  }
}

/* Stage p has P - p microbatches on the way, and each goes to the last stage and back: the first stage waits most. */
static void test_slow_links(void **state) {
  (void)state;
  static bed b;
  for (size_t stages = 2; stages <= MOST; stages++)
    for (size_t latency = 0; latency < 5; latency++) {
      pl_costs costs = pl_costs_unit();
      const double p = (double)stages, m = 4 * p, x = (double)latency;
      costs.latency = x;
      plan_with("2bw", stages, 4 * stages, &costs, NULL, &b);
      near(b.plan.step, m * (3 + 2 * x * (p - 1) / p));
      assert_true(b.plan.link == 0);
      costs.latency = 0;
      costs.transfer = x;
      plan_with("2bw", stages, 4 * stages, &costs, NULL, &b);
      near(b.plan.link, m * x / b.plan.step);
      assert_true(b.plan.link <= 1 && b.plan.step >= m * 3 && b.plan.step <= m * (3 + 2 * x * (p - 1) / p) + 1e-9);
    }
}

/* A transient is forgotten: the step is the one that a run of many updates has on average. */
static pl_status note_last(void *self, const pl_event *event, pl_err *e) {
  (void)e;
  double *end = self;
  if (event->in->op == PL_OP_UPDATE && event->stage == 0) end[event->update] = event->end;
  return PL_OK;
}

static void test_steady(void **state) {
  (void)state;
  static const char *const names[] = {"2bw", "1f1b", "gpipe", "zb-h1", "interleaved-1f1b", "accumulate-newest"};
  static bed b;
  double end[200] = {0};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    for (size_t slow = 0; slow < 4; slow++) {
      pl_stage_costs each[4];
      pl_err e = {0};
      for (size_t p = 0; p < 4; p++) each[p] = (pl_stage_costs){.forward = 1, .backward = 2, .weight = 1};
      each[slow] = (pl_stage_costs){.forward = 3, .backward = 5, .weight = 2};
      const pl_costs costs = {.each = each, .latency = 0.5, .transfer = 0.25};
      make(names[i], 4, 4, &b);
      must(pl_pipeline_plan_make(&b.schedule, &b.facts, &costs, NULL, &b.plan, &e), &e);
      must(pl_schedule_simulate(&b.schedule, &costs, 0, 200, note_last, end, &e), &e);
      near(b.plan.step, (end[180] - end[100]) / 80);
      pl_schedule_free(&b.schedule);
    }
}

static void test_memory(void **state) {
  (void)state;
  static bed b;
  const pl_costs unit = pl_costs_unit();
  pl_stage_sizes sizes[4];
  double all = 0;
  for (size_t p = 0; p < 4; p++) {
    double x = (double)p;
    sizes[p] = (pl_stage_sizes){
        .weights = 100 + x, .gradient = 10 + 2 * x, .optimizer = 200 + 3 * x, .activations = 1000 - 7 * x};
  }
  plan_with("2bw", 4, 8, &unit, sizes, &b);
  for (size_t p = 0; p < 4; p++) {
    double x = (double)p, expected = 2 * (100 + x) + 10 + 2 * x + 200 + 3 * x + (4 - x) * (1000 - 7 * x);
    near(b.plan.stage[p].memory, expected);
    all += expected;
  }
  near(b.plan.memory, all);
  assert_int_equal(b.plan.largest, 0);
  sizes[3].weights = 1e6;
  plan_with("2bw", 4, 8, &unit, sizes, &b);
  assert_int_equal(b.plan.largest, 3);
  plan_with("2bw", 4, 8, &unit, NULL, &b);
  assert_true(isnan(b.plan.memory) && isnan(b.plan.stage[0].memory));
}

static void test_thousand_stages(void **state) {
  (void)state;
  static bed b;
  const pl_costs unit = pl_costs_unit();
  near(step_of("1f1b", 1024, 64, &unit), 3 * (64 + 1023));
  near(step_of("accumulate-newest", 1024, 4, &unit), 12);
  plan_with("pipedream", 1024, 1, &unit, NULL, &b);
  near(b.plan.step, 3);
  assert_int_equal(b.plan.delay, 1023);
  assert_int_equal(b.facts.depth[0], 1024);
}

/* The numbers above would not hold for any costs: a stage that is slower by a hundredth shows. */
static void test_negative_control(void **state) {
  (void)state;
  pl_stage_costs each[4];
  for (size_t p = 0; p < 4; p++) each[p] = (pl_stage_costs){.forward = 1, .backward = 2};
  const pl_costs costs = {.each = each};
  near(step_of("2bw", 4, 4, &costs), 12);
  each[1].backward = 2.01;
  near(step_of("2bw", 4, 4, &costs), 12.04);
  assert_true(step_of("1f1b", 4, 4, &costs) > 21.009);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_facts),           cmocka_unit_test(test_equal_stages),
                                     cmocka_unit_test(test_unequal_stages),  cmocka_unit_test(test_slow_links),
                                     cmocka_unit_test(test_steady),          cmocka_unit_test(test_memory),
                                     cmocka_unit_test(test_thousand_stages), cmocka_unit_test(test_negative_control)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
