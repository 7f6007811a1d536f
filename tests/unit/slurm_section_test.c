/* The section "slurm": values, rules on a run's configuration, and what is refused with which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "runners/launchers/slurm/section.h"
#include "runners/registries.h"

static pl_json *parse(const char *text) {
  pl_json *value = NULL;
  pl_err e = {0};
  if (pl_json_parse(text, strlen(text), "test", &value, &e) != PL_OK) fail_msg("%s", e.text);
  return value;
}

static pl_status load(const char *text, pl_slurm_section **out, pl_err *e) {
  static pl_registries registries;
  registries = pl_registries_all();
  pl_json *section = parse(text);
  pl_status st = pl_slurm_section_load(&registries, section, out, e);
  pl_json_release(section);
  return st;
}

/* A run of which these are given; `document` holds its texts. */
static void make_run(const char *delay, int stages, const char *pipeline, pl_json **document, pl_run_config *out) {
  pl_registries registries = pl_registries_all();
  char text[512];
  pl_err e = {0};
  snprintf(
      text, sizeof text,
      "{\"model\": {\"type\": \"transformer\", \"layers\": 8}, \"data\": {\"type\": \"synthetic\"}, \"optimizer\": "
      "\"sgd\", \"train\": {\"steps\": 10, \"clip_scope\": \"stage\"}, %s \"pipeline\": {\"stages\": %d%s}}",
      delay, stages, pipeline);
  *document = parse(text);
  if (pl_run_config_from_json(&registries, *document, "run", out, &e) != PL_OK) fail_msg("%s", e.text);
}

static pl_status ask_for(pl_slurm_section *s, const char *delay, int stages, const char *pipeline,
                         const pl_slurm_config **c, pl_err *e) {
  static pl_run_config run;
  pl_json *document;
  make_run(delay, stages, pipeline, &document, &run);
  pl_status st = pl_slurm_section_for(s, &run, c, e);
  pl_json_release(document);
  return st;
}

/* Of a pipeline that may be on several processes; its delay is 0 or 1. */
static const pl_slurm_config *ask(pl_slurm_section *s, int delay, int stages) {
  const pl_slurm_config *c = NULL;
  pl_err e = {0};
  const char *schedule =
      delay == 0 ? ", \"schedule\": \"1f1b\", \"microbatches\": 8" : ", \"schedule\": \"2bw\", \"microbatches\": 8";
  if (ask_for(s, "", stages, schedule, &c, &e) != PL_OK) fail_msg("%s", e.text);
  return c;
}

static void defaults_are_slurms_own(void **state) {
  (void)state;
  pl_slurm_section *s = NULL;
  pl_err e = {0};
  assert_int_equal(load("{}", &s, &e), PL_OK);
  const pl_slurm_config *c = ask(s, 0, 1);
  assert_null(c->partition);
  assert_null(c->time);
  assert_int_equal(c->tasks, 1);
  assert_int_equal(c->pack, 1);
  assert_int_equal(c->signal_lead, 120);
  assert_int_equal(c->max_restarts, 3);
  assert_int_equal(c->requeue, PL_SLURM_REQUEUE_AUTO);
  assert_null(c->env);
  pl_slurm_section_free(s);
}

static void every_key_is_read(void **state) {
  (void)state;
  pl_slurm_section *s = NULL;
  pl_err e = {0};
  const char *text = "{\"partition\": \"gpu,long\", \"account\": \"a\", \"qos\": \"high\", \"time\": 90, \"nodes\": 2, "
                     "\"tasks\": 4, \"cpus\": 3, \"mem\": \"4G\", \"gres\": \"gpu:h200:2\", "
                     "\"constraint\": \"a&b\", \"exclude\": \"n[1-3]\", \"mail_type\": \"END\", \"mail_user\": \"me\", "
                     "\"max_running\": 64, \"requeue\": \"never\", \"signal_lead\": 60, \"max_restarts\": 5, "
                     "\"snapshot\": true, \"mpi\": \"mpirun\", \"setup\": [\"module load x\", \"set -e\"], "
                     "\"options\": [\"--reservation=x\", \"--exclusive\"], \"env\": {\"A\": \"x y\", \"N\": 3}}";
  if (load(text, &s, &e) != PL_OK) fail_msg("%s", e.text);
  const pl_slurm_config *c = ask(s, 0, 4);
  assert_string_equal(c->partition, "gpu,long");
  assert_string_equal(c->time, "90");
  assert_int_equal(c->nodes, 2);
  assert_int_equal(c->tasks, 4);
  assert_string_equal(c->mem, "4G");
  assert_true(c->snapshot);
  assert_int_equal(c->mpi, PL_SLURM_MPIRUN);
  assert_int_equal(c->setup.count, 2);
  assert_string_equal(c->options.values[1], "--exclusive");
  assert_string_equal(pl_json_get_string(c->env, "N", ""), "3");
  assert_int_equal(pl_json_get_int(c->document, "signal_lead", 0), 60);
  pl_slurm_section_free(s);
}

static void later_rules_win(void **state) {
  (void)state;
  pl_slurm_section *s = NULL;
  pl_err e = {0};
  const char *text = "{\"time\": \"01:00:00\", \"cpus\": 2, \"env\": {\"A\": \"1\", \"B\": \"2\"}, \"rules\": ["
                     "{\"if\": {\"pipeline.stages\": [4, 8]}, \"tasks\": 4, \"env\": {\"B\": \"3\"}},"
                     "{\"if\": {\"pipeline.stages\": 8}, \"tasks\": 8, \"nodes\": 2},"
                     "{\"if\": {\"delay\": 1}, \"cpus\": 2}]}";
  if (load(text, &s, &e) != PL_OK) fail_msg("%s", e.text);
  const pl_slurm_config *plain = ask(s, 0, 1), *four = ask(s, 0, 4), *eight = ask(s, 0, 8);
  assert_int_equal(plain->tasks, 1);
  assert_int_equal(four->tasks, 4);
  assert_int_equal(eight->tasks, 8);
  assert_int_equal(eight->nodes, 2);
  assert_string_equal(eight->time, "01:00:00");
  assert_string_equal(pl_json_get_string(four->env, "A", ""), "1");
  assert_string_equal(pl_json_get_string(four->env, "B", ""), "3");
  assert_string_equal(pl_json_get_string(plain->env, "B", ""), "2");
  assert_ptr_equal(ask(s, 0, 4), four);
  assert_ptr_equal(ask(s, 1, 4), four); /* the rule on the delay changes nothing */
  pl_slurm_section_free(s);
}

static void refused(const char *text, const char *words) {
  pl_slurm_section *s = NULL;
  pl_err e = {0};
  assert_int_equal(load(text, &s, &e), PL_BAD);
  assert_null(s);
  if (strstr(e.text, words) == NULL) fail_msg("%s: no \"%s\" in: %s", text, words, e.text);
}

static void bad_values_are_named(void **state) {
  (void)state;
  refused("{\"partitions\": \"x\"}", "slurm: unknown key \"partitions\"; did you mean \"partition\"?");
  refused("{\"memory\": \"4G\"}", "did you mean \"mem\"?");
  refused("{\"partition\": \"a\\nb\"}", "slurm.partition: holds the control character 10");
  refused("{\"partition\": \"\"}", "slurm.partition: is empty");
  refused("{\"time\": \"01:30\"}", "slurm.time: \"01:30\"");
  refused("{\"time\": \"soon\"}", "slurm.time");
  refused("{\"time\": \"00:99:00\"}", "slurm.time");
  refused("{\"time\": 0}", "slurm.time");
  refused("{\"mem\": \"4 GB\"}", "slurm.mem: \"4 GB\"");
  refused("{\"mem\": \"4GB\"}", "slurm.mem: \"4GB\"; allowed: a whole number with K, M, G or T");
  refused("{\"mem\": 4}", "slurm.mem: \"4\" has no unit; allowed: a whole number with K, M, G or T");
  refused("{\"time\": \"-5\"}", "slurm.time: \"-5\"; allowed: minutes");
  refused("{\"max_running\": -1}", "slurm.max_running: -1 is out of range");
  refused("{\"tasks\": 0}", "slurm.tasks: 0 is out of range");
  refused("{\"signal_lead\": 70000}", "slurm.signal_lead");
  refused("{\"requeue\": \"allways\"}", "slurm.requeue");
  refused("{\"setup\": [\"a\\nb\"]}", "slurm.setup[0]: holds the control character");
  refused("{\"setup\": \"#SBATCH --wait\"}", "slurm.options");
  refused("{\"env\": {\"A B\": \"x\"}}", "slurm.env: \"A B\" is no name");
  refused("{\"env\": {\"A\": [1]}}", "slurm.env.A");
  refused("{\"env\": []}", "slurm.env");
}

static void options_that_pipelag_sets_are_refused(void **state) {
  (void)state;
  static const char *const bad[] = {"--array=1-2",  "--arr=1",     "--output=x", "--job-name=x", "--parsable",
                                    "--wrap=x",     "--open-mode", "--wait",     "-p",           "x",
                                    "--",           "--a b=c",     "--export=A", "--depend=1",   "--chdir=/",
                                    "--clusters=x", "--test-only"};
  char text[128];
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    snprintf(text, sizeof text, "{\"options\": [\"%s\"]}", bad[i]);
    refused(text, "slurm.options[0]");
  }
  refused("{\"options\": \"--time=3\"}", "allowed: slurm.time");
  refused("{\"options\": \"--mem=3\"}", "allowed: slurm.mem");
  static const char *const good[] = {"--exclusive",   "--mem-per-cpu=1G", "--reservation=a b",
                                     "--nodelist=n1", "--time-min=3",     "--gpus-per-task=1"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    pl_slurm_section *s = NULL;
    pl_err e = {0};
    snprintf(text, sizeof text, "{\"options\": [\"%s\"]}", good[i]);
    if (load(text, &s, &e) != PL_OK) fail_msg("%s", e.text);
    pl_slurm_section_free(s);
  }
}

static void bad_rules_are_named(void **state) {
  (void)state;
  refused("{\"rules\": {}}", "slurm.rules: {}");
  refused("{\"rules\": [{\"tasks\": 2}]}", "slurm.rules[0]");
  refused("{\"rules\": [{\"if\": {\"delay\": 1}}]}", "slurm.rules[0]");
  refused("{\"rules\": [{\"if\": {\"delai\": 1}, \"tasks\": 2}]}", "slurm.rules[0].if.delai");
  refused("{\"rules\": [{\"if\": {\"optimizer\": \"adanw\"}, \"tasks\": 2}]}", "did you mean \"adamw\"?");
  refused("{\"rules\": [{\"if\": {\"delay\": 1}, \"task\": 2}]}", "slurm.rules[0]: unknown key \"task\"");
  refused("{\"rules\": [{\"if\": {\"delay\": 1}, \"time\": \"x\"}]}", "slurm.rules[0].time");
  refused("{\"rules\": [{\"if\": {\"delay\": 1}, \"max_running\": 3}]}", "\"max_running\" cannot differ between runs");
}

/* Only a run shows what does not go together. */
static void settings_must_go_together(void **state) {
  (void)state;
  static const char *const bad[][2] = {{"{\"nodes\": 2}", "slurm.nodes: 2 nodes for 1 tasks"},
                                       {"{\"tasks\": 2, \"pack\": 2}", "slurm.pack"},
                                       {"{\"pack\": 8, \"max_running\": 4}", "slurm.pack: 8 runs at once"},
                                       {"{\"gpus\": 1, \"gres\": \"gpu:2\"}", "slurm.gres: \"gpu:2\" beside gpus 1"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    pl_slurm_section *s = NULL;
    const pl_slurm_config *c = NULL;
    pl_err e = {0};
    assert_int_equal(load(bad[i][0], &s, &e), PL_OK);
    assert_int_equal(ask_for(s, "", 1, "", &c, &e), PL_BAD);
    assert_non_null(strstr(e.text, bad[i][1]));
    pl_slurm_section_free(s);
  }
}

/* With equal settings too: each run is asked. */
static void tasks_must_fit_the_pipeline(void **state) {
  (void)state;
  static const struct {
    const char *delay, *pipeline, *words; /* words: of the refusal; NULL: none */
  } cases[] = {{"", ", \"schedule\": \"2bw\", \"microbatches\": 4", NULL},
               {"", ", \"schedule\": \"2bw\", \"microbatches\": 4, \"replicas\": 2", NULL},
               {"", ", \"schedule\": \"2bw\", \"microbatches\": 4, \"replicas\": 3",
                "slurm.tasks: 4 processes for 3 replicas of a pipeline of 4 stages; allowed: 1, and 3 times 1 to 4"},
               {"\"delay\": 1,", "",
                "slurm.tasks: pipeline.schedule: lagged simulates its delay in one process, but there are 4"},
               {"", ", \"schedule\": \"wpipe\"", "slurm.tasks: pipeline.schedule: wpipe simulates"}};
  pl_slurm_section *s = NULL;
  pl_err e = {0};
  const pl_slurm_config *c = NULL;
  assert_int_equal(load("{\"tasks\": 4}", &s, &e), PL_OK);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    e = (pl_err){0};
    pl_status st = ask_for(s, cases[i].delay, 4, cases[i].pipeline, &c, &e);
    if (st != (cases[i].words == NULL ? PL_OK : PL_BAD)) fail_msg("case %zu: %s", i, e.text);
    if (cases[i].words != NULL && strstr(e.text, cases[i].words) == NULL) fail_msg("case %zu: %s", i, e.text);
  }
  e = (pl_err){0};
  assert_int_equal(ask_for(s, "", 2, ", \"schedule\": \"2bw\", \"microbatches\": 4", &c, &e), PL_BAD);
  assert_non_null(strstr(e.text, "slurm.tasks: 4 processes for a pipeline of 2 stages; allowed: 1 to 2"));
  pl_slurm_section_free(s);
}

static void times_are_read_as_slurm_reads_them(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int64_t seconds;
  } cases[] = {{NULL, 0},
               {"90", 5400},
               {"01:02:03", 3723},
               {"48:00:00", 172800},
               {"1-2", 93600},
               {"1-02:30", 95400},
               {"2-00:00:01", 172801},
               {"1:2", -1},
               {"", -1},
               {"x", -1},
               {"1-", -1},
               {"1:60:00", -1},
               {"1:2:3:4", -1},
               {"-5", -1},
               {"5 ", -1},
               {"1-2:3:4:5", -1},
               {"99999999", -1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_int_equal(pl_slurm_seconds(cases[i].text), cases[i].seconds);
}

static void the_schema_has_every_key(void **state) {
  (void)state;
  pl_json *schema = pl_slurm_schema();
  const pl_json *keys = pl_json_get(schema, "properties");
  const pl_json *rule = pl_json_get(pl_json_get(pl_json_get(keys, "rules"), "items"), "properties");
  for (const pl_param *row = pl_slurm_params; row->type != PL_END; row++) assert_non_null(pl_json_get(keys, row->name));
  assert_non_null(pl_json_get(keys, "env"));
  assert_non_null(pl_json_get(rule, "time"));
  assert_non_null(pl_json_get(rule, "if"));
  assert_null(pl_json_get(rule, "max_running"));
  pl_json_release(schema);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(defaults_are_slurms_own),
      cmocka_unit_test(every_key_is_read),
      cmocka_unit_test(later_rules_win),
      cmocka_unit_test(bad_values_are_named),
      cmocka_unit_test(options_that_pipelag_sets_are_refused),
      cmocka_unit_test(bad_rules_are_named),
      cmocka_unit_test(settings_must_go_together),
      cmocka_unit_test(tasks_must_fit_the_pipeline),
      cmocka_unit_test(times_are_read_as_slurm_reads_them),
      cmocka_unit_test(the_schema_has_every_key),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
