/* Training over MPI = training in one process = the oracle, bit for bit: weights, and every logged figure. */
#include "tests/conform/train_script.h"
#include "tests/mpi/equality.h"

static bool has_one_rank_a_stage(void) { return (world->size & (world->size - 1)) == 0; }

static void every_schedule(void **state) {
  (void)state;
  if (has_one_rank_a_stage()) assert_true(pipeline_for_each(world->size, compare) >= 12);
}

/* Optimizer, correction, tied, resumed, clipped by stage, vertical sync instead of 2bw. */
static const size_t rows[][6] = {{0, 0, 0, 1, 1, 0}, {0, 1, 0, 0, 0, 0}, {0, 2, 1, 1, 0, 1},
                                 {1, 0, 1, 1, 1, 1}, {1, 1, 1, 0, 0, 1}, {1, 2, 0, 0, 1, 0},
                                 {2, 0, 0, 0, 0, 1}, {2, 1, 1, 1, 1, 0}, {2, 2, 0, 0, 1, 0}};
static const size_t levels[6] = {3, 3, 2, 2, 2, 2};
enum { ROWS = sizeof rows / sizeof *rows };

static bool is_covered(size_t a, size_t value_a, size_t b, size_t value_b) {
  for (size_t i = 0; i < ROWS; i++)
    if (rows[i][a] == value_a && rows[i][b] == value_b) return true;
  return false;
}

static void the_rows_cover_all_pairs(void **state) {
  (void)state;
  for (size_t a = 0; a < 6; a++)
    for (size_t b = a + 1; b < 6; b++)
      for (size_t i = 0; i < levels[a] * levels[b]; i++)
        if (!is_covered(a, i % levels[a], b, i / levels[a])) fail_msg("no row with both of %zu, %zu", a, b);
}

static void every_pair(void **state) {
  (void)state;
  for (size_t i = 0; i < ROWS && has_one_rank_a_stage(); i++) {
    const size_t *row = rows[i];
    const char *schedule = row[5] ? "pipedream-vertical" : "2bw";
    pipeline_case c = pipeline_make(schedule, world->size, usual_microbatches(schedule, world->size));
    c.optimizer = pipeline_optimizers[row[0]];
    c.correction = pipeline_corrections[row[1]];
    c.tied = row[2];
    c.stage_clip = row[4];
    compare_how(&c, &(equality_how){.resume = row[3]});
  }
}

/* The pairs resume 2bw and pipedream-vertical. */
static void every_other_schedule_resumes(void **state) {
  (void)state;
  static const char *const schedules[] = {"1f1b", "interleaved-1f1b", "zb-h1", "pipedream", "accumulate-newest"};
  for (size_t i = 0; i < 5 && has_one_rank_a_stage(); i++) {
    const size_t m = usual_microbatches(schedules[i], world->size);
    if (pipeline_is_legal(schedules[i], world->size, m))
      compare_resumed(pipeline_make(schedules[i], world->size, m), world->size < 8);
  }
}

/* Whoever learns late what everybody decided goes on as far as it may meanwhile. */
static void late_figures_change_nothing(void **state) {
  (void)state;
  static const char *const schedules[] = {"2bw", "pipedream", "accumulate-newest"};
  for (size_t i = 0; i < 2 * 3 && (world->size == 2 || world->size == 4); i++) {
    late_rank = i % 2 == 0 ? 0 : world->size - 1;
    compare_resumed(pipeline_make(schedules[i / 2], world->size, usual_microbatches(schedules[i / 2], world->size)),
                    false);
  }
  late_rank = SIZE_MAX;
}

static void several_stages_a_rank(void **state) {
  (void)state;
  const size_t stages = world->size == 2 ? 4 : world->size == 3 ? 8 : 0;
  for (size_t s = 0; s < PIPELINE_SCHEDULES && stages > 0; s++) {
    const char *name = pipeline_schedules[s];
    pipeline_case c = pipeline_make(name, stages, usual_microbatches(name, stages));
    c.tied = !pipeline_runs_free(name);
    if (s % 3 == 0)
      compare_resumed(c, false);
    else
      compare(&c);
  }
}

/* Stages x replicas: over 4 ranks 2 x 2, 1 x 4, and 2 stages on one rank x 4; over 8 ranks 4 stages on two ranks x 4.
 */
static void replicas(void **state) {
  (void)state;
  static const size_t over_4[][2] = {{2, 2}, {1, 4}, {2, 4}}, over_8[][2] = {{4, 4}};
  const size_t sizes = world->size == 4 ? 3 : world->size == 8 ? 1 : 0;
  for (size_t i = 0; i < PIPELINE_SCHEDULES * sizes; i++) {
    const char *name = pipeline_schedules[i % PIPELINE_SCHEDULES];
    const size_t *size = (world->size == 4 ? over_4 : over_8)[i / PIPELINE_SCHEDULES];
    const size_t m = usual_microbatches(name, size[0]);
    pipeline_case c = pipeline_make(name, size[0], m);
    if (!pipeline_is_legal(name, c.stages, m)) continue;
    c.replicas = size[1];
    c.tied = !pipeline_runs_free(name) && i % 2 == 0;
    c.optimizer = pipeline_optimizers[i % 3];
    if (i % 4 == 1)
      compare_resumed(c, false);
    else
      compare(&c);
  }
}

static void faults_are_seen(void **state) {
  (void)state;
  const size_t P = world->size;
  if (!has_one_rank_a_stage()) return;
  const pipeline_case bw = pipeline_make("2bw", P, P < 4 ? 4 : P), dream = pipeline_make("pipedream", P, 1);
  static const oracle_fault faults[] = {{.newest = true}, {.unstashed = true}, {.shift = -1},
                                        {.shift = 1},     {.swapped = true},   {.mixed_up = true}};
  for (size_t i = 0; i < 5; i++) compare_how(&bw, &(equality_how){.fault = faults[i]});
  for (size_t i = 0; i < 3 && P > 1; i++) compare_how(&dream, &(equality_how){.fault = faults[i]});
}

/* Checkpoints and validations on the way do not drain the pipe and change nothing. */
static void neither_checkpoints_nor_validations_change_a_bit(void **state) {
  (void)state;
  static const char *const schedules[] = {"1f1b", "2bw", "pipedream", "accumulate-newest"};
  for (size_t i = 0; i < 4 && has_one_rank_a_stage(); i++) {
    pipeline_case c = pipeline_make(schedules[i], world->size, usual_microbatches(schedules[i], world->size));
    rig plain, busy;
    c.steps = 16;
    pipeline_open(&c, &plain);
    c.train = ", 'val_every': 7, 'checkpoint_every': 7";
    pipeline_open(&c, &busy);
    join(&plain);
    join(&busy);
    busy.args.checkpoint_folder = folder;
    train_together(&plain);
    train_together(&busy);
    assert_true(rig_same_weights(&plain, &busy));
    assert_int_equal(plain.point_count, busy.point_count);
    assert_int_equal(busy.checkpointed, is_first() ? 2 : 0);
    for (size_t s = 1; s < plain.point_count; s++)
      assert_true(rig_same(&plain.points[s].values[PL_SERIES_train_loss], &busy.points[s].values[PL_SERIES_train_loss],
                           sizeof(double)));
    rig_close(&plain);
    rig_close(&busy);
    empty_folder();
  }
}

enum { BROKEN_AT = 6, SKIPPED_STEPS = 40 };
static size_t broken_stage;
static bool broken_loss, broken_always;

static bool breaks(int64_t step) { return broken_always ? step >= BROKEN_AT : step == BROKEN_AT; }

static double script_of_loss(int64_t step, size_t microbatch, size_t sequences) {
  (void)microbatch;
  return broken_loss && breaks(step) ? (double)NAN : (double)sequences / (double)(step + 3);
}

static double script_of_gradient(int64_t step, size_t stage) {
  return !broken_loss && stage == broken_stage && breaks(step) ? (double)NAN : 0.1 * (double)(stage + 1);
}

static void open_script(rig *r, const char *schedule, size_t m, const char *nonfinite, int64_t steps) {
  char json[RIG_TEXT];
  the_script = (script){.loss = script_of_loss, .gradient = script_of_gradient};
  snprintf(json, sizeof json,
           "{'model': 'script', 'data': 'none', 'optimizer': 'sgd', 'train': {'steps': %lld, 'batch_tokens': 16, "
           "'lr_schedule': 'constant', 'nonfinite': '%s', 'clip': 1, 'clip_scope': '%s'}, 'pipeline': {'schedule': "
           "'%s', 'stages': 4, 'microbatches': %zu, 'replicas': %d}}",
           (long long)steps, nonfinite, pipeline_runs_free(schedule) ? "stage" : "global", schedule, m,
           world->size == 8 ? 2 : 1);
  rig_open(r, &script_models, json);
}

static bool same_points(const rig *a, const rig *b) {
  bool same = a->point_count == b->point_count;
  for (size_t p = 0; p < a->point_count && same; p++)
    for (size_t i = 0; i < PL_SERIES_seconds; i++) {
      const double x = a->points[p].values[i], y = b->points[p].values[i];
      same = same && a->points[p].step == b->points[p].step && ((isnan(x) && isnan(y)) || rig_same(&x, &y, sizeof x));
    }
  return same;
}

/* All ranks end as one process does. */
static void diverge(const char *schedule, const char *nonfinite, int64_t steps, int64_t at, int64_t skipped) {
  rig r, alone;
  open_script(&r, schedule, usual_microbatches(schedule, 4), nonfinite, steps);
  open_script(&alone, schedule, usual_microbatches(schedule, 4), nonfinite, steps);
  join(&r);
  train_together(&r);
  rig_train(&alone);
  const pl_outcome *const both[] = {&r.outcome, &alone.outcome};
  for (size_t i = 0; i < 2; i++) {
    assert_int_equal(both[i]->end, PL_END_DIVERGED);
    assert_int_equal(both[i]->steps, at);
    assert_int_equal(both[i]->skipped, skipped);
    assert_int_equal(both[i]->first_bad_step, BROKEN_AT);
  }
  assert_string_equal(r.outcome.reason, alone.outcome.reason);
  if (is_first()) assert_true(same_points(&r, &alone));
  rig_close(&r);
  rig_close(&alone);
}

/* In one stage alone, or in the loss; at one update or from there on. */
static void what_is_not_finite_ends_all_ranks(void **state) {
  (void)state;
  static const char *const schedules[] = {"1f1b", "2bw", "pipedream", "pipedream-vertical", "accumulate-newest"};
  for (size_t s = 0; s < 5; s++)
    for (size_t i = 0; i < 5; i++) {
      broken_stage = i;
      broken_loss = i == 4;
      broken_always = s % 2 == 0;
      diverge(schedules[s], "stop", 30, BROKEN_AT, 0);
    }
}

static void twenty_skips_in_a_row_end_all_ranks(void **state) {
  (void)state;
  static const char *const schedules[] = {"1f1b", "2bw", "pipedream-vertical"};
  broken_always = true;
  for (size_t s = 0; s < 3; s++)
    for (size_t i = 0; i < 3; i++) {
      broken_stage = 3 * (i % 2);
      broken_loss = i == 2;
      diverge(schedules[s], "skip", SKIPPED_STEPS, BROKEN_AT + 20, 20);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_schedule),
      cmocka_unit_test(the_rows_cover_all_pairs),
      cmocka_unit_test_setup_teardown(every_pair, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(every_other_schedule_resumes, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(late_figures_change_nothing, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(several_stages_a_rank, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(replicas, make_folder, remove_folder),
      cmocka_unit_test(faults_are_seen),
      cmocka_unit_test_setup_teardown(neither_checkpoints_nor_validations_change_a_bit, make_folder, remove_folder),
      cmocka_unit_test(what_is_not_finite_ends_all_ranks),
      cmocka_unit_test(twenty_skips_in_a_row_end_all_ranks),
  };
  return RIG_RUN(tests);
}
