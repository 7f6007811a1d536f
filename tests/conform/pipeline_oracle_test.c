/* The engine in one process against the oracle, in every schedule that can be executed. */
#include <dirent.h>
#include <unistd.h>

#include "tests/conform/pipelines_rig.h"

static void expect_agreement(const pipeline_case *c, const rig *r, oracle_fault fault, bool wanted) {
  char json[RIG_TEXT];
  pipeline_text(c, json);
  if (oracle_confirms(r, fault) != wanted)
    fail_msg("the trainer and the oracle %s: %s", wanted ? "differ" : "agree in spite of a fault", json);
}

static void compare(const pipeline_case *c) {
  rig r;
  pipeline_open(c, &r);
  rig_train(&r);
  expect_agreement(c, &r, (oracle_fault){0}, true);
  rig_close(&r);
}

static void every_schedule(void **state) {
  (void)state;
  size_t count = 0;
  for (size_t stages = 1; stages <= 8; stages *= 2) count += pipeline_for_each(stages, compare);
  assert_int_equal(count, 12 + 24 + 28 + 28);
}

/* What changes the update itself, on a uniform delay of 1 and of 3, and of each stage its own. */
static void every_update(void **state) {
  (void)state;
  static const char *const schedules[] = {"2bw", "pipedream-vertical", "accumulate-newest"};
  for (size_t i = 0; i < 3 * 3 * 3 * 2 * 2; i++) {
    pipeline_case c = pipeline_make(schedules[i % 3], 4, i % 3 == 1 ? 1 : 4);
    c.optimizer = pipeline_optimizers[i / 3 % 3];
    c.correction = pipeline_corrections[i / 9 % 3];
    c.tied = i / 27 % 2 == 1;
    c.stage_clip = i / 54 % 2 == 1;
    c.train = ", 'val_every': 4";
    if (pipeline_runs_free(c.schedule) && (c.tied || !c.stage_clip)) continue;
    compare(&c);
  }
}

static void replicas_and_partitions(void **state) {
  (void)state;
  static const char *const schedules[] = {"1f1b", "interleaved-1f1b", "2bw", "accumulate-newest"};
  for (size_t i = 0; i < 4; i++)
    for (size_t replicas = 2; replicas <= 4; replicas++) {
      pipeline_case c = pipeline_make(schedules[i], 2, 2);
      c.replicas = replicas;
      c.tied = i == 1 || i == 2;
      if (i != 1) c.pipeline = ", 'partition': [5, 11]";
      compare(&c);
    }
}

/* Each of them is another training. */
static void faults_are_seen(void **state) {
  (void)state;
  static const struct {
    const char *schedule;
    size_t microbatches;
    oracle_fault fault;
  } faults[] = {
      {"gpipe", 4, {.shift = -1}},
      {"gpipe", 4, {.swapped = true}},
      {"gpipe", 4, {.mixed_up = true}},
      {"gpipe", 4, {.unclipped = true}},
      {"gpipe", 4, {.untied = true}},
      {"2bw", 4, {.newest = true}},
      {"2bw", 4, {.unstashed = true}},
      {"2bw", 4, {.shift = 1}},
      {"2bw", 4, {.shift = -1}},
      {"2bw", 4, {.swapped = true}},
      {"pipedream", 1, {.newest = true}},
      {"pipedream", 1, {.unstashed = true}},
      {"pipedream", 1, {.shift = 1}},
      {"pipedream", 1, {.shift = -1}},
      {"pipedream-vertical", 1, {.newest = true}},
      {"pipedream-vertical", 1, {.unstashed = true}},
      {"pipedream-vertical", 1, {.shift = 1}},
      {"accumulate-newest", 4, {.newest = true}},
      {"accumulate-newest", 4, {.unstashed = true}},
      {"accumulate-newest", 4, {.shift = 1}},
      {"accumulate-newest", 4, {.swapped = true}},
      {"accumulate-newest", 4, {.mixed_up = true}},
  };
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    pipeline_case c = pipeline_make(faults[i].schedule, 4, faults[i].microbatches);
    rig r;
    c.tied = faults[i].fault.untied;
    pipeline_open(&c, &r);
    rig_train(&r);
    expect_agreement(&c, &r, (oracle_fault){0}, true);
    expect_agreement(&c, &r, faults[i].fault, false);
    rig_close(&r);
  }
}

static void empty_folder(const char *folder) {
  DIR *d = opendir(folder);
  assert_non_null(d);
  for (struct dirent *entry = readdir(d); entry; entry = readdir(d))
    if (entry->d_name[0] != '.') assert_int_equal(unlinkat(dirfd(d), entry->d_name, 0), 0);
  closedir(d);
}

/* Checkpoints and validations on the way do not drain the pipe and change nothing. */
static void neither_checkpoints_nor_validations_change_a_bit(void **state) {
  (void)state;
  char folder[] = "/tmp/pl_pipeline_test.XXXXXX";
  assert_non_null(mkdtemp(folder));
  for (size_t s = 0; s < PIPELINE_SCHEDULES; s++) {
    pipeline_case c = pipeline_make(pipeline_schedules[s], 4, strncmp(pipeline_schedules[s], "pipe", 4) ? 4 : 1);
    rig plain, busy;
    c.steps = 16;
    pipeline_open(&c, &plain);
    c.train = ", 'val_every': 7, 'checkpoint_every': 7";
    pipeline_open(&c, &busy);
    busy.args.checkpoint_folder = folder;
    rig_train(&plain);
    rig_train(&busy);
    assert_int_equal(busy.checkpointed, 2);
    assert_true(rig_same_weights(&plain, &busy));
    assert_int_equal(plain.point_count, busy.point_count);
    for (size_t i = 1; i < plain.point_count; i++)
      assert_true(rig_same(&plain.points[i].values[PL_SERIES_train_loss], &busy.points[i].values[PL_SERIES_train_loss],
                           sizeof(double)));
    rig_close(&plain);
    rig_close(&busy);
    empty_folder(folder);
  }
  assert_int_equal(rmdir(folder), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_schedule),
      cmocka_unit_test(every_update),
      cmocka_unit_test(replicas_and_partitions),
      cmocka_unit_test(faults_are_seen),
      cmocka_unit_test(neither_checkpoints_nor_validations_change_a_bit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
