/* Relations between the sections of a run file that the trainer cannot work with, and their messages. */
#include "tests/conform/train_rig.h"

#include <unistd.h>

#include "core/base/fs.h"
#include "core/pipeline/schedule_text.h"

static void refuse(const char *json, const char *text) {
  rig r;
  pl_err e = {0};
  pl_status st = rig_config(&r, NULL, json, &e);
  if (st != PL_BAD || !strstr(e.text, text))
    fail_msg("%s: status %d, \"%s\" lacks \"%s\"", json, (int)st, e.text, text);
  pl_json_release(r.json);
}

static void accept(const char *json) {
  rig r;
  pl_err e = {0};
  rig_must(rig_config(&r, NULL, json, &e), &e);
  pl_json_release(r.json);
}

#define Q "'model': {'type': 'quadratic', 'layers': 4}, 'data': 'none', 'optimizer': 'sgd'"
#define M "'model': {'type': 'mlp', 'context': 64}, 'data': 'synthetic', 'optimizer': 'sgd'"
#define T4                                                                                                             \
  "'model': {'type': 'transformer', 'layers': 4, 'd_model': 16, 'heads': 2, 'tied': true, 'context': 64}, 'data': "    \
  "'synthetic', 'optimizer': 'sgd'"

static void bad_configs(void **state) {
  (void)state;
  refuse("{" M ", 'train': {'steps': 20, 'batch_tokens': 100}}", "train.batch_tokens: 100");
  refuse("{" M ", 'train': {'steps': 20, 'batch_tokens': 32}}", "train.batch_tokens: 32");
  refuse("{" M ", 'train': {'steps': 20, 'batch_tokens': 128}, 'pipeline': {'microbatches': 3}}",
         "pipeline.microbatches: 3");
  refuse("{" M ", 'train': {'steps': 20, 'val_tokens': 63}}", "train.val_tokens: 63");
  refuse("{" Q ", 'train': {'steps': 20}, 'pipeline': {'stages': 5}}", "pipeline.stages: 5");
  refuse("{" Q ", 'train': {'steps': 20, 'clip': 0}, 'delay': [1, 0], 'pipeline': {'stages': 4}}", "delay: ");
  refuse("{" Q ", 'train': {'steps': 20}, 'delay_start': 21}", "delay_start: 21");
  refuse("{" Q ", 'train': {'steps': 20, 'warmup': 20}}", "train.warmup: 20");
  refuse("{" Q ", 'train': {'steps': 20, 'warmup': 1e300}}", "train.warmup: ");
  refuse("{'model': 'quadratic', 'data': 'synthetic', 'optimizer': 'sgd', 'train': {'steps': 2}}", "data: ");
  refuse("{'model': 'mlp', 'data': 'none', 'optimizer': 'sgd', 'train': {'steps': 2}}", "data: ");
  accept("{" Q ", 'train': {'steps': 20}, 'delay_start': 20, 'delay': 3}");
}

static void slack(void **state) {
  (void)state;
  refuse(
      "{" Q ", 'train': {'steps': 20}, 'delay': 'pipedream', 'pipeline': {'stages': 4}}",
      "train.clip_scope: a global clip needs gradients of every stage, but with the delays pipedream update t of stage "
      "3 needs data of stage 0 that does not exist yet; allowed: clip_scope \"stage\", clip 0, the same delay for "
      "every "
      "stage, or simulate_only true");
  refuse("{" Q ", 'train': {'steps': 20}, 'delay': [1, 1, 0, 1], 'pipeline': {'stages': 4}}", "update t of stage 2");
  refuse("{" T4 ", 'train': {'steps': 20, 'clip': 0}, 'delay': [1, 1, 0, 1], 'pipeline': {'stages': 4}}",
         "model: a tied head");
  refuse("{" Q ", 'train': {'steps': 20, 'clip': 0, 'nonfinite': 'skip'}, 'delay': [1, 0], 'pipeline': {'stages': 2}}",
         "train.nonfinite: skip needs gradients of every stage");
  accept("{" Q ", 'train': {'steps': 20}, 'delay': 'pipedream', 'pipeline': {'stages': 4}, 'simulate_only': true}");
  accept("{" Q ", 'train': {'steps': 20}, 'delay': 'pipedream'}");
  accept("{" Q ", 'train': {'steps': 20, 'clip': 0}, 'delay': 'pipedream', 'pipeline': {'stages': 4}}");
  accept("{" Q ", 'train': {'steps': 20, 'clip_scope': 'stage'}, 'delay': [2, 1], 'pipeline': {'stages': 2}}");
  accept("{" Q ", 'train': {'steps': 20}, 'delay': [2, 2], 'pipeline': {'stages': 2}}");
  accept("{" T4 ", 'train': {'steps': 20}, 'delay': 7, 'pipeline': {'stages': 4}}");
}

/* Sixteen sequences an update and four layers; PIPELINE and what follows it. */
#define RUN(train, pipeline, more)                                                                                     \
  "{" Q ", 'train': {'steps': 20, 'batch_tokens': 16" train "}, 'pipeline': {" pipeline "}" more "}"

static void schedules(void **state) {
  (void)state;
  static const struct {
    const char *pipeline;
    bool slack; /* for what needs every stage */
  } all[] = {{"'schedule': 'gpipe', 'stages': 4, 'microbatches': 4", true},
             {"'schedule': '1f1b', 'stages': 3, 'microbatches': 2", true},
             {"'schedule': 'interleaved-1f1b', 'stages': 2, 'microbatches': 4", true},
             {"'schedule': 'zb-h1', 'stages': 4, 'microbatches': 2", true},
             {"'schedule': '2bw', 'stages': 4, 'microbatches': 4", true},
             {"'schedule': '2bw', 'stages': 4, 'microbatches': 3, 'allow_min_microbatches': true", true},
             {"'schedule': 'pipedream-vertical', 'stages': 4", true},
             {"'schedule': 'pipedream', 'stages': 4", false},
             {"'schedule': 'pipedream', 'stages': 1", true},
             {"'schedule': 'accumulate-newest', 'stages': 4, 'microbatches': 2", false},
             {"'schedule': 'wpipe', 'stages': 4", false}};
  static const char quadratic[] = "'model': {'type': 'quadratic', 'layers': 4}";
  static const struct {
    const char *model, *train, *error;
  } needs[] = {{quadratic, "'clip': 1", "train.clip_scope: a global clip"},
               {quadratic, "'clip': 0, 'nonfinite': 'skip'", "train.nonfinite: skip"},
               {"'model': {'type': 'transformer', 'layers': 4, 'd_model': 16, 'heads': 2, 'tied': true, 'context': 1}, "
                "'data': 'synthetic'",
                "'clip': 0", "model: a tied head"},
               {quadratic, "'clip_scope': 'stage'", NULL}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    for (size_t n = 0; n < sizeof needs / sizeof *needs; n++) {
      char json[1024];
      snprintf(json, sizeof json,
               "{%s, 'optimizer': 'sgd', 'train': {'steps': 20, 'batch_tokens': 16, %s}, 'pipeline': {%s}}",
               needs[n].model, needs[n].train, all[i].pipeline);
      if (all[i].slack || !needs[n].error)
        accept(json);
      else
        refuse(json, needs[n].error);
    }
}

static void schedule_numbers(void **state) {
  (void)state;
  refuse(RUN("", "'schedule': '2bw', 'stages': 4, 'microbatches': 3", ""),
         "pipeline.schedule: 2bw: saw 3 microbatches with 4 stages");
  refuse(RUN("", "'schedule': '2bw', 'stages': 5, 'microbatches': 8", ""), "pipeline.stages: 5");
  refuse(RUN("", "'schedule': '2bw', 'stages': 4, 'microbatches': 17", ""), "pipeline.microbatches: 17");
  refuse(RUN("", "'schedule': 'pipedream', 'stages': 2, 'microbatches': 2", ""), "pipeline.schedule: pipedream: saw 2");
  refuse(RUN("", "'schedule': 'wpipe', 'stages': 3", ""), "pipeline.schedule: wpipe: saw 3 stages");
  refuse(RUN("", "'schedule': 'interleaved-1f1b', 'stages': 2, 'microbatches': 3", ""),
         "pipeline.schedule: interleaved-1f1b: saw 3 microbatches");
  refuse(RUN("", "'schedule': '1f1b', 'stages': 2, 'chunks': 2", ""), "pipeline.chunks: saw 2, but schedule 1f1b");
  refuse(RUN("", "'chunks': 2", ""), "pipeline.chunks: saw 2, but schedule lagged");
  refuse(RUN("", "'schedule': 'interleaved-1f1b', 'stages': 2, 'microbatches': 2, 'chunks': 3", ""),
         "pipeline.chunks: 3 in each of 2 stages; allowed: a product of at most 4");
  accept(RUN("", "'schedule': '1f1b', 'stages': 2, 'chunks': 1", ""));
  refuse(RUN("", "'microbatches': 4, 'replicas': 5", ""), "pipeline.replicas: 5");
  accept(RUN("", "'microbatches': 4, 'replicas': 4", ""));
}

static void partitions(void **state) {
  (void)state;
  accept(RUN("", "'stages': 2, 'partition': 'even'", ""));
  accept(RUN("", "'stages': 2, 'partition': [3, 1]", ""));
  accept(RUN("", "'partition': 4", ""));
  accept(RUN("", "'schedule': 'interleaved-1f1b', 'stages': 2, 'microbatches': 2, 'partition': [1, 1, 1, 1]", ""));
  refuse(RUN("", "'stages': 2, 'partition': 2", ""), "pipeline.partition: 1 values for 2 groups");
  refuse(RUN("", "'stages': 2, 'partition': [3, 2]", ""), "pipeline.partition: the values add up to 5 layers");
  refuse(RUN("", "'schedule': 'interleaved-1f1b', 'stages': 2, 'microbatches': 2, 'partition': [2, 2]", ""),
         "pipeline.partition: 2 values for 4 groups");
}

static void delays_of_schedules(void **state) {
  (void)state;
  accept(RUN("", "'schedule': '2bw', 'stages': 2, 'microbatches': 2", ", 'delay': 1"));
  refuse(RUN("", "'schedule': 'gpipe', 'stages': 2, 'microbatches': 2", ", 'delay': 1"),
         "delay: saw 1, but schedule gpipe gives 0; allowed: what it gives, or to leave it out");
  refuse(RUN("", "'schedule': '2bw', 'stages': 2, 'microbatches': 2", ", 'delay': 'pipedream'"),
         "delay: saw pipedream, but schedule 2bw gives 1");
  refuse(RUN("", "'schedule': 'wpipe', 'stages': 2", ", 'delay': [0, 1]"),
         "delay: saw [0,1], but schedule wpipe gives [1,0]");
  refuse(RUN("", "'schedule': '2bw', 'stages': 2, 'microbatches': 2", ", 'delay': [1]"),
         "delay: the list has 1 values");
  refuse(RUN("", "'schedule': '2bw', 'stages': 2, 'microbatches': 2", ", 'delay_start': 1"), "delay_start: 1, but");
  accept(RUN(", 'clip': 0", "'schedule': 'wpipe', 'stages': 2", ", 'delay_start': 1"));
  refuse(RUN("", "'schedule': '2bw', 'stages': 2, 'microbatches': 2", ", 'simulate_only': true"),
         "simulate_only: true");
  accept(RUN("", "'schedule': 'wpipe', 'stages': 2", ", 'simulate_only': true"));
}

static void simulated(void **state) {
  (void)state;
  static const struct {
    const char *json;
    bool simulated;
  } cases[] = {
      {RUN("", "'schedule': 'wpipe', 'stages': 2", ", 'simulate_only': true"), true},
      {RUN(", 'clip': 0", "'schedule': 'wpipe', 'stages': 2", ", 'simulate_only': true"), false},
      {RUN(", 'clip': 0, 'nonfinite': 'skip'", "'stages': 2", ", 'simulate_only': true, 'delay': [1, 0]"), true},
      {RUN("", "'stages': 2", ", 'simulate_only': true, 'delay': 1"), false},
      {RUN("", "'schedule': '2bw', 'stages': 2, 'microbatches': 2", ""), false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rig r;
    pl_err e = {0};
    rig_must(rig_config(&r, NULL, cases[i].json, &e), &e);
    assert_int_equal(pl_run_config_is_simulated(&r.config), cases[i].simulated);
    pl_json_release(r.json);
  }
}

/* The file, and what of it is refused (NULL: nothing), for a run on two stages with the microbatches and the delay. */
static void custom(const char *folder, const char *text, int microbatches, const char *delay, const char *error) {
  rig r;
  pl_err e = {0};
  char json[512], path[128];
  snprintf(path, sizeof path, "%s/mine.txt", folder);
  unlink(path);
  if (text) rig_must(pl_file_replace(path, text, strlen(text), &e), &e);
  snprintf(
      json, sizeof json,
      RUN("", "'schedule': 'custom', 'schedule_file': 'mine.txt', 'stages': 2, 'microbatches': %d", ", 'delay': %s"),
      microbatches, delay);
  rig_must(rig_config(&r, NULL, json, &e), &e);
  pl_schedule *s = NULL;
  rig_must(pl_alloc(1, sizeof *s, "a schedule", &s, &e), &e);
  pl_status made = pl_run_config_schedule(&r.config, folder, s, &e);
  pl_schedule_free(s);
  pl_free(s);
  e = (pl_err){0};
  pl_status st = pl_run_config_check_file(&r.config, folder, &e);
  if (error ? st != PL_BAD || !strstr(e.text, error) : st != PL_OK) fail_msg("status %d, \"%s\"", (int)st, e.text);
  bool slack = error && strstr(error, "global clip"); /* is for the check alone */
  assert_int_equal(made, slack ? PL_OK : st);
  pl_json_release(r.json);
}

static void custom_files(void **state) {
  (void)state;
  char folder[] = "/tmp/pipelag-check-XXXXXX", path[128];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/mine.txt", folder);
  pl_str text = {0};
  pl_err e = {0};
  pl_schedule *s = NULL;
  const pl_schedule_args args = {.stages = 2, .microbatches = 2};
  rig_must(pl_alloc(1, sizeof *s, "a schedule", &s, &e), &e);
  rig_must(pl_schedule_make(pl_schedule_find("2bw", &e), &args, s, &e), &e);
  pl_schedule_write(s, &text);
  custom(folder, pl_str_text(&text), 2, "1", NULL);
  custom(folder, pl_str_text(&text), 2, "[1, 1]", NULL);
  custom(folder, pl_str_text(&text), 2, "0", "delay: saw 0, but schedule 2bw gives 1; allowed: what it gives");
  custom(folder, pl_str_text(&text), 4, "1", "pipeline.schedule_file: mine.txt is for 2 stages, 2 microbatches");
  custom(folder, NULL, 2, "1", "mine.txt: cannot be read");
  custom(folder, "schedule mine\nstages 2\nmicrobatches 2\nstage 0\n  body F0 X\n", 2, "1", "mine.txt:5:11: ");
  custom(folder,
         "schedule mine stages 2 microbatches 2 stage 0 body F0 >a0 <g0 B0 F1 >a1 <g1 B1 U "
         "stage 1 body <a0 F0 <a1 F1 B0 >g0 B1 >g1 U",
         2, "0", "pipeline.schedule_file: schedule mine: no stage can go on");
  custom(
      folder,
      "schedule mine stages 2 microbatches 1 stage 0 prologue F0@1 >a0 body F0+1 >a0+1 <g0 B0@1 U epilogue <g0 B0@1 U "
      "stage 1 body <a0 F0 B0 >g0 U",
      1, "[1, 0]", "train.clip_scope: a global clip needs gradients of every stage, but in schedule mine");
  pl_schedule_free(s);
  pl_free(s);
  pl_str_free(&text);
  unlink(path);
  assert_int_equal(rmdir(folder), 0);
  refuse(RUN("", "'schedule': 'custom', 'stages': 2", ""), "pipeline.schedule_file: missing");
  refuse(RUN("", "'schedule': 'gpipe', 'schedule_file': 'a.txt'", ""), "pipeline.schedule_file: saw \"a.txt\"");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bad_configs), cmocka_unit_test(slack),
                                     cmocka_unit_test(schedules),   cmocka_unit_test(schedule_numbers),
                                     cmocka_unit_test(partitions),  cmocka_unit_test(delays_of_schedules),
                                     cmocka_unit_test(simulated),   cmocka_unit_test(custom_files)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
