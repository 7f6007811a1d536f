/* The job script and sbatch's arguments, also run by a real shell with hostile names. */
#include "results_help.h"

#include <sys/stat.h>

#include "runners/launchers/slurm/call.h"
#include "runners/launchers/slurm/script.h"

static pl_slurm_config defaults(void) {
  pl_slurm_config c;
  memset(&c, 0, sizeof c);
  pl_params_defaults(pl_slurm_params, &c);
  c.env = NULL;
  return c;
}

static pl_script make(const pl_slurm_config *c, const char *dir, const char *program, const char *sweep) {
  const pl_script_args args = {.config = c,
                               .sweep = sweep,
                               .program = program,
                               .dir = dir,
                               .number = 7,
                               .token = "pl-1-7-a",
                               .tasks = 20,
                               .throttle = 4,
                               .after = "12:15"};
  pl_script s;
  pl_err e = {0};
  if (pl_script_make(&args, &s, &e) != PL_OK) fail_msg("%s", e.text);
  return s;
}

static bool has(const pl_script *s, const char *argument) {
  for (size_t i = 0; i < s->argc; i++)
    if (strcmp(s->argv[i], argument) == 0) return true;
  return false;
}

static void arguments_say_what_is_wanted(void **state) {
  (void)state;
  pl_slurm_config c = defaults();
  c.partition = "gpu";
  c.time = "01:00:00";
  c.mem = "4G";
  c.nodes = 2;
  c.tasks = 8;
  c.gpus = 3;
  c.options = (pl_text_list){.count = 1, .values = {"--reservation=a b"}};
  pl_script s = make(&c, "/r", "/bin/pipelag", "x");
  static const char *const there[] = {"--parsable",          "--array=0-19%4",
                                      "--job-name=pl-1-7-a", "--dependency=afterany:12:15",
                                      "--chdir=/r",          "--output=/r/submissions/7.%a.txt",
                                      "--open-mode=append",  "--requeue",
                                      "--signal=B:USR1@120", "--partition=gpu",
                                      "--time=01:00:00",     "--mem=4G",
                                      "--nodes=2",           "--ntasks=8",
                                      "--gres=gpu:3",        "--reservation=a b"};
  for (size_t i = 0; i < sizeof there / sizeof *there; i++)
    if (!has(&s, there[i])) fail_msg("no %s", there[i]);
  assert_null(s.argv[s.argc]);
  for (size_t i = 0; i < s.argc; i++) assert_null(strstr(s.argv[i], "--export"));
  assert_string_equal(s.argv[0], "sbatch");
  pl_script_free(&s);
  c.gres = "gpu:h200:1";
  c.requeue = PL_SLURM_REQUEUE_NEVER;
  c.signal_lead = 0;
  s = make(&c, "/r", "/bin/pipelag", "x");
  assert_true(has(&s, "--gres=gpu:h200:1") && !has(&s, "--gres=gpu:3"));
  assert_true(has(&s, "--no-requeue") && !has(&s, "--requeue"));
  for (size_t i = 0; i < s.argc; i++) assert_null(strstr(s.argv[i], "--signal"));
  pl_script_free(&s);
}

static void the_script_says_what_starts_several_processes(void **state) {
  (void)state;
  static const char *const starters[] = {[PL_SLURM_PMIX] =
                                             "# It starts the 4 processes of a run with srun --mpi=pmix.\n",
                                         [PL_SLURM_MPIRUN] = "# It starts the 4 processes of a run with mpirun.\n"};
  pl_slurm_config c = defaults();
  pl_script s = make(&c, "/r", "/p", "x");
  assert_null(strstr(s.text.text, "processes"));
  pl_script_free(&s);
  c.tasks = 4;
  for (c.mpi = PL_SLURM_PMIX; c.mpi <= PL_SLURM_MPIRUN; c.mpi++) {
    s = make(&c, "/r", "/p", "x");
    assert_non_null(strstr(s.text.text, starters[c.mpi]));
    assert_non_null(strstr(s.text.text, "exec '/p' task '/r' 7 \"$SLURM_ARRAY_TASK_ID\"\n"));
    pl_script_free(&s);
  }
}

static void short_jobs_are_warned_at_half_time(void **state) {
  (void)state;
  pl_slurm_config c = defaults();
  c.time = "2";
  pl_script s = make(&c, "/r", "/p", "x");
  assert_true(has(&s, "--signal=B:USR1@60"));
  pl_script_free(&s);
}

/* Slurm fills in %a; it cannot do so in a path with a backslash, so there the script opens the file. */
static void output_goes_into_the_directory(void **state) {
  (void)state;
  pl_slurm_config c = defaults();
  pl_script s = make(&c, "/r/100%a b", "/p", "x");
  assert_true(has(&s, "--output=/r/100%%a b/submissions/7.%a.txt"));
  assert_null(strstr(s.text.text, ">>"));
  pl_script_free(&s);
  s = make(&c, "/r/a\\b", "/p", "x");
  assert_true(has(&s, "--output=/dev/null"));
  assert_non_null(strstr(s.text.text, "exec >>'/r/a\\b'/submissions/7.\"$SLURM_ARRAY_TASK_ID\".txt 2>&1\n"));
  pl_script_free(&s);
}

/* Runs the script in bash as Slurm would, with a program that prints its arguments and a variable. */
static char *run_script(void **state, const pl_slurm_config *c, const char *folder, const char *sweep) {
  char program[400], dir[300], fake[] = "#!/bin/sh\nfor a; do echo \"<$a>\"; done; echo \"[$V][$W]$HOME\"\n";
  snprintf(dir, sizeof dir, "%s/%s", (char *)*state, folder);
  snprintf(program, sizeof program, "%s/pipe lag'$(touch PWNED)", dir);
  assert_int_equal(pl_make_folders(dir, NULL), PL_OK);
  write_bytes(program, fake, strlen(fake));
  assert_int_equal(chmod(program, 0755), 0);
  pl_script s = make(c, dir, program, sweep);
  const char *argv[] = {"bash", "-c", "cd \"$0\" && SLURM_ARRAY_TASK_ID=5 bash -s", *state, NULL};
  pl_call call;
  pl_err e = {0};
  if (pl_call_run(argv, s.text.text, 20, &call, &e) != PL_OK) fail_msg("%s", e.text);
  assert_int_equal(call.exit_code, 0);
  char *text = strdup(pl_str_text(&call.out));
  pl_call_free(&call);
  pl_script_free(&s);
  return text;
}

static void hostile_names_are_only_names(void **state) {
  static const char *const folders[] = {
      "a 0",          "a\"=0\"",   "a'; touch PWNED #(1)", "a%0", "$(touch PWNED)", "-rf",
      "d\xc3\xa9lai", "new\nline", "`touch PWNED`",        "*"};
  char expected[600], path[256];
  pl_slurm_config c = defaults();
  const char *env = "{\"V\": \"it's $(touch PWNED) 100% \\\"x\\\"\\nline 2\", \"W\": \"-rf;\\\\\"}";
  pl_json *document = NULL;
  assert_int_equal(pl_json_parse(env, strlen(env), "env", &document, NULL), PL_OK);
  c.env = document;
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    char *said = run_script(state, &c, folders[i], "name\ntouch PWNED # d\xc3\xa9lai");
    snprintf(expected, sizeof expected, "<task>\n<%s/%s>\n<7>\n<5>\n[it's $(touch PWNED) 100%% \"x\"\nline 2][-rf;\\]",
             (char *)*state, folders[i]);
    if (strncmp(said, expected, strlen(expected)) != 0) fail_msg("%s: %s", folders[i], said);
    free(said);
    assert_false(pl_path_exists(in_temp(state, "PWNED", path)));
  }
  pl_json_release(document);
}

static void setup_comes_before_the_program(void **state) {
  pl_slurm_config c = defaults();
  c.setup = (pl_text_list){.count = 2, .values = {"export V=from-setup", "echo ready"}};
  char *said = run_script(state, &c, "r", "x");
  assert_non_null(strstr(said, "ready\n<task>"));
  assert_non_null(strstr(said, "[from-setup]"));
  free(said);
}

/* The check can fail: without quotes the names do harm. */
static void a_shell_would_do_harm_without_quotes(void **state) {
  char path[256];
  const char *argv[] = {"bash", "-c", "cd \"$0\" && bash -s", *state, NULL};
  pl_call call;
  pl_err e = {0};
  assert_int_equal(pl_call_run(argv, "echo task a'; touch PWNED #'\n:; touch PWNED\n", 20, &call, &e), PL_OK);
  assert_true(pl_path_exists(in_temp(state, "PWNED", path)));
  pl_call_free(&call);
}

static void words_are_shown_for_a_shell(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"--array=0-3%2", "--array=0-3%2"}, {"a b", "'a b'"}, {"", "''"}, {"it's", "'it'\\''s'"}, {"$x", "'$x'"}};
  for (size_t i = 0; i < 5; i++) {
    pl_str text = {0};
    pl_shell_show(cases[i][0], &text);
    assert_string_equal(pl_str_text(&text), cases[i][1]);
    pl_str_free(&text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arguments_say_what_is_wanted),
      cmocka_unit_test(the_script_says_what_starts_several_processes),
      cmocka_unit_test(short_jobs_are_warned_at_half_time),
      cmocka_unit_test(output_goes_into_the_directory),
      cmocka_unit_test_setup_teardown(hostile_names_are_only_names, make_temp, remove_temp),
      cmocka_unit_test_setup_teardown(setup_comes_before_the_program, make_temp, remove_temp),
      cmocka_unit_test_setup_teardown(a_shell_would_do_harm_without_quotes, make_temp, remove_temp),
      cmocka_unit_test(words_are_shown_for_a_shell),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
