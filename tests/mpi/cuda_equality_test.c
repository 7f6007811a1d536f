/* Training over several processes with a GPU each, or with one that they share = training in one process on one: the
 * same bits, of the weights and of every logged figure. */
#include "tests/conform/train_script.h"
#include "tests/mpi/cuda_rig.h"
#include "tests/mpi/equality.h"

typedef struct run {
  const char *schedule;
  size_t stages, microbatches, replicas;
  bool tied;              /* a transformer; else the multilayer perceptron, one layer a stage, of two chunks two */
  const char *correction; /* NULL: "ef" */
  int steps;              /* 0: 4 */
} run;

static void open_run(const run *c, rig *r) {
  char json[RIG_TEXT], model[256];
  const bool chunks = strcmp(c->schedule, "interleaved-1f1b") == 0;
  const char *const scope = pipeline_runs_free(c->schedule) ? "stage" : "global";
  const char *const sizes = c->tied ? "'type': 'transformer', 'd_model': 8, 'heads': 2, 'tied': true"
                                    : "'type': 'mlp', 'hidden': 8, 'embedding': 4, 'window': 2";
  snprintf(model, sizeof model, "{%s, 'layers': %zu, 'context': 4}", sizes, c->stages * (chunks ? 2 : 1));
  const int length = snprintf(
      json, sizeof json,
      "{'model': %s, 'data': {'type': 'synthetic', 'vocab': 8}, 'optimizer': 'adamw', 'correction': '%s', 'train': "
      "{'steps': %d, 'log_every': 4, 'val_every': 0, 'batch_tokens': %zu, 'warmup': 2, 'val_tokens': 8, 'clip': 0.5, "
      "'clip_scope': '%s'}, 'pipeline': "
      "{'schedule': '%s', 'stages': %zu, 'microbatches': %zu, 'replicas': %zu, 'allow_min_microbatches': %s}}",
      model, c->correction ? c->correction : "ef", c->steps ? c->steps : 4, 4 * c->microbatches * c->replicas, scope,
      c->schedule, c->stages, c->microbatches, c->replicas, strcmp(c->schedule, "2bw") == 0 ? "true" : "false");
  assert_true(length > 0 && length < RIG_TEXT);
  rig_open_on(r, "cuda", NULL, json);
  join(r);
}

static bool same_figures(const pl_point *a, const pl_point *b, size_t count) {
  for (size_t i = 0; i < count; i++)
    for (size_t s = 0; s < PL_SERIES_COUNT; s++)
      if (s != PL_SERIES_seconds && s != PL_SERIES_bubble && !(isnan(a[i].values[s]) && isnan(b[i].values[s])) &&
          !rig_same(&a[i].values[s], &b[i].values[s], sizeof a[i].values[s]))
        return false;
  return count == 2;
}

/* Those of every replica, one after the other; with chunks they lie in another order and are not compared. */
static bool same_weights(const run *c, const pl_real *all, size_t count, const rig *alone) {
  if (strcmp(c->schedule, "interleaved-1f1b") == 0) return true;
  bool same = count == c->replicas * alone->count;
  for (size_t d = 0; d < c->replicas && same; d++)
    same = rig_same(all + d * alone->count, alone->weights, alone->count * sizeof *all);
  return same;
}

/* On rank 0: whether `c` in one process gives those weights, and those points when there are any. */
static bool is_alone(const run *c, const pl_real *weights, size_t count, const pl_point *points, size_t length) {
  rig r;
  bool same = true;
  if (is_first()) {
    open_run(c, &r);
    r.args.world = NULL;
    rig_train(&r);
    same = same_weights(c, weights, count, &r);
    if (points) same = same && length == r.point_count && same_figures(points, r.points, length);
    rig_close(&r);
  }
  rest();
  return same;
}

/* Whether `other` in one process gives what `c` gave in all. */
static bool agree(const run *c, const run *other) {
  static pl_point points[RIG_POINTS];
  rig r;
  size_t count = 0;
  open_run(c, &r);
  train_together(&r);
  memcpy(points, r.points, sizeof points);
  pl_real *weights = gather_weights(&r, &count);
  const size_t length = r.point_count;
  rig_close(&r);
  expect_way();
  const bool same = is_alone(other, weights, count, points, length);
  pl_free(weights);
  return same;
}

static void compare_run(const run *c) {
  if (!agree(c, c))
    fail_msg("%zu processes, %s, %zu stages, %zu microbatches, %zu replicas: other bits than one process", world->size,
             c->schedule, c->stages, c->microbatches, c->replicas);
}

/* With four stages those alone that send in another order than the others. */
static void schedules(void **state) {
  (void)state;
  for (size_t s = 0; s < PIPELINE_SCHEDULES; s++) {
    if (world->size == 4 && (s == 0 || s > 4)) continue;
    const char *name = pipeline_schedules[s];
    compare_run(&(run){
        .schedule = name, .stages = world->size, .microbatches = usual_microbatches(name, world->size), .replicas = 1});
  }
}

static void several_stages_a_rank(void **state) {
  (void)state;
  if (world->size == 2) compare_run(&(run){.schedule = "2bw", .stages = 4, .microbatches = 4, .replicas = 1});
}

static void replicas(void **state) {
  (void)state;
  static const char *const names[] = {"gpipe", "1f1b", "2bw"};
  for (size_t i = 0; i < 3; i++)
    for (size_t stages = 1; stages < world->size; stages *= 2)
      compare_run(&(run){.schedule = names[i], .stages = stages, .microbatches = 2, .replicas = world->size / stages});
}

static void tied(void **state) {
  (void)state;
  compare_run(&(run){.schedule = "1f1b", .stages = world->size, .microbatches = 2, .replicas = 1, .tied = true});
  if (world->size == 4)
    compare_run(&(run){.schedule = "2bw", .stages = 2, .microbatches = 2, .replicas = 2, .tied = true});
}

/* Stopped while messages are under way. */
static void a_stopped_run_goes_on(void **state) {
  const run c = {.schedule = "2bw", .stages = world->size, .microbatches = world->size, .replicas = 1, .steps = 8};
  rig r;
  size_t count = 0;
  assert_int_equal(make_folder(state), 0);
  open_run(&c, &r);
  r.args.checkpoint_folder = folder;
  train_until_told(&r, world->rank + 1 == world->size, 1);
  const int64_t at = r.outcome.steps;
  assert_true(r.outcome.end == PL_END_STOPPED && at > 0 && at < c.steps);
  expect_way();
  train_together(&r);
  assert_int_equal(r.outcome.resumed_from, at);
  pl_real *weights = gather_weights(&r, &count);
  rig_close(&r);
  if (!is_alone(&c, weights, count, NULL, 0)) fail_msg("%zu processes: other bits after a stop", world->size);
  pl_free(weights);
  empty_folder();
  assert_int_equal(remove_folder(state), 0);
}

static void another_run_differs(void **state) {
  (void)state;
  run c = {.schedule = "2bw", .stages = world->size, .microbatches = world->size, .replicas = 1}, other = c;
  other.correction = "none";
  if (is_first())
    assert_false(agree(&c, &other));
  else
    (void)agree(&c, &other);
}

int main(int count, char **argument) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(schedules), cmocka_unit_test(several_stages_a_rank),
      cmocka_unit_test(replicas),  cmocka_unit_test(a_stopped_run_goes_on),
      cmocka_unit_test(tied),      cmocka_unit_test(another_run_differs),
  };
  return rig_choose(count, argument) ? RIG_RUN(tests) : 2;
}
