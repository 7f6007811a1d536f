/* Calls of other programs: what they get, what comes back, and that nothing hangs. */
#include "results_help.h"

#include "core/base/clock.h"
#include "runners/launchers/slurm/call.h"

static pl_call run(const char *script, const char *input, double seconds) {
  const char *argv[] = {"sh", "-c", script, NULL};
  pl_call c;
  pl_err e = {0};
  if (pl_call_run(argv, input, seconds, &c, &e) != PL_OK) fail_msg("%s", e.text);
  return c;
}

static void output_and_exit_code_come_back(void **state) {
  (void)state;
  pl_call c = run("echo out; echo err >&2; exit 7", NULL, 10);
  assert_int_equal(c.exit_code, 7);
  assert_false(c.timed_out);
  assert_string_equal(pl_str_text(&c.out), "out\n");
  assert_string_equal(pl_str_text(&c.err), "err\n");
  pl_call_free(&c);
}

static void input_is_read_or_not(void **state) {
  (void)state;
  enum { LENGTH = 300000 };
  char *long_text = malloc(LENGTH + 1);
  memset(long_text, 'x', LENGTH);
  long_text[LENGTH] = '\0';
  pl_call c = run("wc -c", long_text, 10);
  assert_int_equal(atoi(pl_str_text(&c.out)), LENGTH);
  pl_call_free(&c);
  c = run("true", long_text, 10); /* nobody reads it */
  assert_int_equal(c.exit_code, 0);
  pl_call_free(&c);
  c = run("cat", NULL, 10);
  assert_string_equal(pl_str_text(&c.out), "");
  pl_call_free(&c);
  free(long_text);
}

static void much_on_both_streams_does_not_block(void **state) {
  (void)state;
  pl_call c = run("head -c 400000 /dev/zero | tr '\\0' a >&2; head -c 500000 /dev/zero | tr '\\0' b", NULL, 20);
  assert_int_equal(c.out.length, 500000);
  assert_int_equal(c.err.length, 400000);
  pl_call_free(&c);
}

static void what_hangs_is_ended_with_its_children(void **state) {
  (void)state;
  double begun = pl_clock_seconds();
  pl_call c = run("echo $$; sleep 100 & sleep 100", NULL, 0.3);
  assert_true(c.timed_out);
  assert_int_equal(c.exit_code, -1);
  assert_true(pl_clock_seconds() - begun < 10);
  int group = atoi(pl_str_text(&c.out));
  assert_true(group > 1);
  for (int i = 0; i < 200 && kill(-group, 0) == 0; i++) usleep(10000);
  assert_int_not_equal(kill(-group, 0), 0);
  pl_call_free(&c);
  c = run("trap '' TERM; while :; do sleep 1; done", NULL, 0.2);
  assert_true(c.timed_out);
  pl_call_free(&c);
}

static void a_signal_is_no_exit_code(void **state) {
  (void)state;
  pl_call c = run("kill -9 $$", NULL, 10);
  assert_int_equal(c.exit_code, -1);
  assert_false(c.timed_out);
  pl_call_free(&c);
}

static void an_ignored_sigchld_is_no_hindrance(void **state) {
  (void)state;
  signal(SIGCHLD, SIG_IGN);
  pl_call c = run("exit 3", NULL, 10);
  assert_int_equal(c.exit_code, 3);
  assert_ptr_equal(signal(SIGCHLD, SIG_DFL), SIG_IGN);
  pl_call_free(&c);
}

static void a_missing_program_is_named(void **state) {
  (void)state;
  const char *argv[] = {"sbatch-that-nobody-has", NULL};
  pl_call c;
  pl_err e = {0};
  assert_int_equal(pl_call_run(argv, NULL, 5, &c, &e), PL_BAD);
  assert_non_null(strstr(e.text, "sbatch-that-nobody-has: not found on PATH; "));
}

static void settings_of_an_allocation_are_not_passed_on(void **state) {
  (void)state;
  static const char *const gone[] = {"SLURM_JOB_ID", "SLURM_CPU_BIND",   "SBATCH_TIMELIMIT", "SQUEUE_FORMAT",
                                     "SACCT_FORMAT", "SLURM_CONF_OTHER", "PMIX_RANK",        "PMI_FD",
                                     "SRUN_DEBUG",   "SALLOC_X",         "SINFO_FORMAT",     "OMPI_COMM_WORLD_RANK",
                                     "SCONTROL_ALL"};
  static const char *const kept[] = {"SLURM_CONF", "MUNGE_SOCKET", "MY_SLURM_X", "PATH"};
  for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) setenv(gone[i], "x", 1);
  for (size_t i = 0; i < 3; i++) setenv(kept[i], "x", 1);
  setenv("LC_ALL", "de_DE.UTF-8", 1);
  pl_call c = run("env", NULL, 10);
  char name[64];
  for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
    snprintf(name, sizeof name, "\n%s=", gone[i]);
    if (strstr(pl_str_text(&c.out), name) != NULL) fail_msg("%s is passed on", gone[i]);
    unsetenv(gone[i]);
  }
  for (size_t i = 0; i < 4; i++) assert_non_null(strstr(pl_str_text(&c.out), kept[i]));
  assert_non_null(strstr(pl_str_text(&c.out), "LC_ALL=C\n"));
  pl_call_free(&c);
}

static void sentence_is(const char *err, const char *expected) {
  char sentence[256];
  pl_call c = {.exit_code = 1};
  pl_str_append(&c.err, err);
  assert_string_equal(pl_call_sentence(&c, sentence), expected);
  pl_call_free(&c);
}

static void the_sentence_is_slurms_own(void **state) {
  (void)state;
  sentence_is("sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job submission failed: Invalid "
              "partition name specified\n",
              "Batch job submission failed: Invalid partition name specified");
  sentence_is("sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: Job violates\n\n",
              "Batch job submission failed: Job violates (AssocMaxSubmitJobLimit)");
  sentence_is("slurm_load_jobs error: Invalid job id specified", "slurm_load_jobs error: Invalid job id specified");
  sentence_is("", "it ended with exit code 1 and said nothing");
  sentence_is("sbatch: fatal: a\tb\x1b[1m", "a b [1m");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(output_and_exit_code_come_back),
      cmocka_unit_test(input_is_read_or_not),
      cmocka_unit_test(much_on_both_streams_does_not_block),
      cmocka_unit_test(what_hangs_is_ended_with_its_children),
      cmocka_unit_test(a_signal_is_no_exit_code),
      cmocka_unit_test(an_ignored_sigchld_is_no_hindrance),
      cmocka_unit_test(a_missing_program_is_named),
      cmocka_unit_test(settings_of_an_allocation_are_not_passed_on),
      cmocka_unit_test(the_sentence_is_slurms_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
