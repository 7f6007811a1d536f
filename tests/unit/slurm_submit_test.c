/* `submit` against a Slurm of shell scripts: cutting, refusals, lost answers, extension, limits; no run is ever sent
 * twice. */
#include "slurm_submit_help.h"

#include "results/claim.h"
#include "results/run_dir.h"

/* MaxArraySize is 4: the highest index is 3. */
static void arrays_are_cut_at_the_edge(void **state) {
  static const struct {
    const char *seeds;
    int runs, calls;
    const char *first;
  } cases[] = {{"[0]", 1, 1, "--array=0-0\n"},
               {"[0, 1]", 2, 1, "--array=0-1\n"},
               {"[0, 1, 2, 3]", 4, 1, "--array=0-3\n"},
               {"[0, 1, 2, 3, 4]", 5, 2, "--array=0-3\n"}};
  for (size_t i = 0; i < 4; i++) {
    void *fresh = NULL;
    assert_int_equal(make_temp(&fresh), 0);
    fake_slurm(&fresh);
    write_sweep(&fresh, cases[i].seeds, "[0]", "");
    pl_submit_result r = submit_ok(&fresh);
    assert_int_equal(r.sent, cases[i].runs);
    assert_int_equal(fake_calls(&fresh, "sbatch"), cases[i].calls);
    assert_true(call_has(&fresh, 1, cases[i].first));
    if (cases[i].calls == 2) assert_true(call_has(&fresh, 2, "--array=0-0\n"));
    each_run_once(&fresh, (size_t)cases[i].runs);
    assert_int_equal(remove_temp(&fresh), 0);
  }
  (void)state;
}

static void what_is_in_the_queue_is_not_sent_again(void **state) {
  fake_slurm(state);
  write_sweep(state, "[0, 1, 2, 3, 4]", "[0]", "");
  submit_ok(state);
  pl_submit_result r = submit_ok(state);
  assert_int_equal(r.sent, 0);
  assert_int_equal(r.queued, 5);
  assert_int_equal(fake_calls(state, "sbatch"), 2);
  each_run_once(state, 5);
}

/* Slurm says that the tasks ended, the directory that nothing came of it. */
static void what_ended_without_a_result_is_sent_again(void **state) {
  fake_slurm(state);
  write_sweep(state, "[0, 1, 2]", "[0]", "");
  submit_ok(state);
  char *queue = fake_read(state, "queue");
  for (char *at = queue; (at = strstr(at, "|0|101|PENDING|")) != NULL;) memcpy(at + 7, "FAILED ", 7);
  for (char *at = queue; (at = strstr(at, "FAILED |")) != NULL;) memcpy(at, "TIMEOUT", 7);
  fake_write(state, "queue", queue);
  pl_free(queue);
  pl_submit_result r = submit_ok(state);
  assert_int_equal(r.sent, 1);
  assert_int_equal(r.queued, 2);
  assert_true(call_has(state, 2, "--array=0-0\n"));
}

static void a_refusal_in_the_middle_is_listed_and_finished_later(void **state) {
  pl_submit_result r;
  pl_err e;
  fake_slurm(state);
  write_sweep(state, "[0, 1, 2, 3, 4, 5]", "[0]", "");
  fake_write(state, "answers/sbatch.2",
             "echo 'sbatch: error: QOSMaxSubmitJobPerUserLimit' >&2\n"
             "echo 'sbatch: error: Batch job submission failed: Job violates accounting/QOS policy' >&2; exit 1\n");
  assert_int_equal(submit(state, &r, &e), PL_FAIL);
  assert_non_null(strstr(e.text,
                         "4 runs were submitted, 2 were not: Slurm refused submission 2 (2 runs): Batch job "
                         "submission failed: Job violates accounting/QOS policy (QOSMaxSubmitJobPerUserLimit)"));
  assert_int_equal(r.sent, 4);
  assert_int_equal(r.left, 2);
  r = submit_ok(state);
  assert_int_equal(r.sent, 2);
  each_run_once(state, 6);
}

static void a_refusal_of_the_first_submits_nothing(void **state) {
  pl_submit_result r;
  pl_err e;
  fake_slurm(state);
  write_sweep(state, "[0, 1]", "[0]", "\"account\": \"nope\"");
  fake_write(state, "answers/sbatch.1",
             "echo 'sbatch: error: Batch job submission failed: Invalid account' >&2; exit 1\n");
  assert_int_equal(submit(state, &r, &e), PL_BAD);
  assert_int_equal(r.sent, 0);
  assert_int_equal(submit_ok(state).sent, 2);
  each_run_once(state, 2);
}

/* sbatch did its work but says nothing, nonsense, or fails to hear the answer. */
static void a_lost_answer_is_found_in_the_queue(void **state) {
  static const char *const answers[] = {"accept\n", "accept; echo 'Submitted batch job'\n", "accept; echo '101 102'\n",
                                        "accept; echo 'sbatch: error: Batch job submission failed: Socket timed out on "
                                        "send/recv operation' >&2; exit 1\n"};
  for (size_t i = 0; i < 4; i++) {
    void *fresh = NULL;
    assert_int_equal(make_temp(&fresh), 0);
    fake_slurm(&fresh);
    write_sweep(&fresh, "[0, 1, 2, 3, 4]", "[0]", "");
    fake_write(&fresh, "answers/sbatch.1", answers[i]);
    pl_submit_result r = submit_ok(&fresh);
    assert_int_equal(r.sent, 5);
    assert_int_equal(fake_calls(&fresh, "sbatch"), 2);
    pl_submissions all = read_all(&fresh);
    assert_string_equal(all.items[0].job, "101");
    pl_submissions_free(&all);
    each_run_once(&fresh, 5);
    assert_int_equal(remove_temp(&fresh), 0);
  }
  (void)state;
}

/* As if submission 1 had been sent long ago. */
static void make_old(void **state) {
  char path[256];
  pl_json *document = NULL;
  pl_str text = {0};
  assert_int_equal(pl_json_read(in_temp(state, "out/submissions/1.json", path), &document, NULL), PL_OK);
  assert_true(pl_json_set(document, "created_unix", pl_json_new_int(1000000000)));
  pl_json_write_pretty(document, &text);
  write_bytes(path, pl_str_text(&text), text.length);
  pl_str_free(&text);
  pl_json_release(document);
}

/* Nothing in the queue and no answer: left alone while it may be on its way, then free. */
static void an_answer_that_never_comes_frees_the_runs_later(void **state) {
  pl_submit_result r;
  pl_err e;
  fake_slurm(state);
  write_sweep(state, "[0, 1]", "[0]", "");
  fake_write(state, "answers/sbatch.1", "true\n");
  assert_int_equal(submit(state, &r, &e), PL_FAIL);
  assert_int_equal(r.unknown, 1);
  assert_non_null(strstr(e.text, "sbatch gave no answer to submission 1"));
  assert_int_equal(submit(state, &r, &e), PL_FAIL);
  assert_int_equal(r.sent, 0);
  assert_int_equal(r.queued, 2);
  assert_int_equal(fake_calls(state, "sbatch"), 1);
  make_old(state);
  r = submit_ok(state);
  assert_int_equal(r.sent, 2);
  pl_submissions all = read_all(state);
  assert_int_equal(all.items[0].sent, PL_SENT_REFUSED);
  assert_string_equal(pl_json_get_string(all.items[0].document, "answer", ""), "no answer and no such job");
  pl_submissions_free(&all);
  each_run_once(state, 2);
}

/* It came late: the next submit sees it and sends nothing. */
static void a_late_job_is_recognised(void **state) {
  pl_submit_result r;
  pl_err e;
  fake_slurm(state);
  write_sweep(state, "[0, 1]", "[0]", "");
  fake_write(state, "answers/sbatch.1", "accept; mv $here/queue $here/late; : >$here/queue\n");
  assert_int_equal(submit(state, &r, &e), PL_FAIL);
  char *late = fake_read(state, "late");
  fake_write(state, "queue", late);
  pl_free(late);
  r = submit_ok(state);
  assert_int_equal(r.sent, 0);
  assert_int_equal(r.queued, 2);
  each_run_once(state, 2);
}

/* Slurm may keep a failed record of what it refused. */
static void a_record_of_a_refusal_is_no_job(void **state) {
  pl_submit_result r;
  pl_err e;
  fake_slurm(state);
  write_sweep(state, "[0, 1]", "[0]", "");
  fake_write(state, "answers/sbatch.1",
             "accept; sed -i 's/PENDING|Priority/FAILED|BadConstraints/' $here/queue; echo oops\n");
  assert_int_equal(submit(state, &r, &e), PL_BAD);
  assert_int_equal(submit_ok(state).sent, 2);
  each_run_once(state, 2);
}

/* New seeds and a new delay in the middle of the grid while everything waits. */
static void an_extension_leaves_what_waits_alone(void **state) {
  fake_slurm(state);
  write_sweep(state, "[0, 2]", "[0, 2]", "");
  submit_ok(state);
  char *list = fake_read(state, "out/submissions/1.tsv");
  write_sweep(state, "[0, 1, 2]", "[0, 1, 2]", "");
  pl_submit_result r = submit_ok(state);
  assert_int_equal(r.sent, 5);
  char *after = fake_read(state, "out/submissions/1.tsv");
  assert_string_equal(list, after);
  pl_free(list);
  pl_free(after);
  each_run_once(state, 9);
}

static void rules_make_arrays_of_their_own(void **state) {
  fake_slurm(state);
  write_sweep(state, "[0, 1, 2]", "[0, 1]", "\"rules\": [{\"if\": {\"delay\": 1}, \"cpus\": 2, \"pack\": 2}]");
  pl_submit_result r = submit_ok(state);
  assert_int_equal(r.sent, 6);
  assert_int_equal(r.arrays, 2);
  assert_true(call_has(state, 1, "--array=0-2\n") && call_has(state, 1, "--cpus-per-task=1\n"));
  assert_true(call_has(state, 2, "--array=0-1\n") && call_has(state, 2, "--cpus-per-task=2\n"));
  pl_submissions all = read_all(state);
  assert_int_equal(all.items[1].rows[1].task, 0);
  assert_int_equal(all.items[1].rows[2].task, 1);
  pl_submissions_free(&all);
  each_run_once(state, 6);
}

static void a_limit_is_shared_and_the_rest_waits(void **state) {
  fake_slurm(state);
  write_sweep(state, "{\"range\": [0, 11]}", "[0]", "\"max_running\": 2");
  submit_ok(state); /* 4 + 4 + 4 */
  assert_int_equal(fake_calls(state, "sbatch"), 3);
  assert_true(call_has(state, 1, "--array=0-3%1\n") && !call_has(state, 1, "--dependency"));
  assert_true(call_has(state, 2, "--array=0-3%1\n") && !call_has(state, 2, "--dependency"));
  assert_true(call_has(state, 3, "--array=0-3%1\n") && call_has(state, 3, "--dependency=afterany:101\n"));
  write_sweep(state, "{\"range\": [0, 13]}", "[0]", "\"max_running\": 2");
  submit_ok(state); /* all slots are taken: behind the shorter one */
  assert_true(call_has(state, 4, "--array=0-1%1\n") && call_has(state, 4, "--dependency=afterany:102\n"));
}

static void a_smaller_limit_lowers_what_waits(void **state) {
  fake_slurm(state);
  write_sweep(state, "{\"range\": [0, 7]}", "[0]", "\"max_running\": 8");
  submit_ok(state);
  write_sweep(state, "{\"range\": [0, 8]}", "[0]", "\"max_running\": 4");
  int before = fake_calls(state, "scontrol");
  submit_ok(state);
  int after = fake_calls(state, "scontrol");
  assert_int_equal(after - before, 4); /* config, partitions, two updates */
  char *argv = fake_call(state, "scontrol", after, "argv");
  assert_string_equal(argv, "update\nJobId=102\nArrayTaskThrottle=2\n");
  pl_free(argv);
  assert_true(call_has(state, 3, "--dependency=afterany:"));
  pl_submissions all = read_all(state);
  assert_int_equal(all.items[0].throttle, 2);
  pl_submissions_free(&all);
}

/* Limits of the accounting database: what does not fit is reported, and sent by the next submit. */
static void limits_are_kept(void **state) {
  pl_submit_result r;
  pl_err e;
  fake_slurm(state);
  fake_write(state, "config",
             "AccountingStorageEnforce = associations,limits,qos\nClusterName = fake\nMaxArraySize = 4\nMaxJobCount = "
             "100\n");
  fake_write(state, "answers/sacctmgr.all",
             "case \"$*\" in *DefaultAccount*) echo acc;; *assoc*) echo 'acc||6||'; echo 'other||1||';;\n"
             "*qos*) echo 'normal|50|'; echo 'tiny|2|';; esac\n");
  write_sweep(state, "{\"range\": [0, 9]}", "[0]", "");
  assert_int_equal(submit(state, &r, &e), PL_FAIL);
  assert_int_equal(r.sent, 6);
  assert_int_equal(r.left, 4);
  assert_int_equal(fake_calls(state, "sbatch"), 2);
  fake_write(state, "answers/sacctmgr.all", "exit 1\n");
  assert_int_equal(submit_ok(state).sent, 4);
  each_run_once(state, 10);
}

static void the_cluster_may_be_full(void **state) {
  pl_submit_result r;
  pl_err e;
  fake_slurm(state);
  fake_write(state, "config", "MaxArraySize = 1001\nMaxJobCount = 4\n");
  fake_write(state, "queue", "other|5|0|5|COMPLETED|None|0|0||\nother|5|1|6|RUNNING|None|0|0||\n");
  write_sweep(state, "[0, 1, 2]", "[0]", "");
  assert_int_equal(submit(state, &r, &e), PL_FAIL);
  assert_int_equal(r.sent, 1);
  assert_int_equal(r.left, 2);
}

static void a_dry_run_writes_nothing(void **state) {
  pl_submit_result r;
  pl_err e;
  char path[256];
  fake_slurm(state);
  write_sweep(state, "[0, 1, 2, 3, 4]", "[0]", "\"max_running\": 1, \"snapshot\": true");
  assert_int_equal(submit_with(state, true, NULL, &r, &e), PL_OK);
  assert_false(pl_path_exists(in_temp(state, "out", path)));
  assert_int_equal(fake_calls(state, "sbatch"), 0);
}

static void cancelled_runs_are_left_out(void **state) {
  char dir[256];
  pl_err e = {0};
  fake_slurm(state);
  write_sweep(state, "[0, 1, 2]", "[0]", "");
  submit_ok(state);
  fake_write(state, "queue", "");
  pl_submissions all = read_all(state);
  assert_int_equal(pl_run_cancel(in_temp(state, "out", dir), all.items[0].rows[1].id, &e), PL_OK);
  pl_submissions_free(&all);
  assert_int_equal(submit_ok(state).sent, 2);
}

static void only_the_chosen_are_sent(void **state) {
  pl_submit_result r;
  pl_err e;
  const bool chosen[] = {false, true, false};
  fake_slurm(state);
  write_sweep(state, "[0, 1, 2]", "[0]", "");
  assert_int_equal(submit_with(state, false, chosen, &r, &e), PL_OK);
  assert_int_equal(r.sent, 1);
  pl_submissions all = read_all(state);
  assert_int_equal(all.items[0].rows[0].index, 1);
  pl_submissions_free(&all);
}

static void two_at_once_do_not_both_send(void **state) {
  pl_submit_result r;
  pl_err e = {0};
  char lock[256];
  bool taken = false;
  fake_slurm(state);
  write_sweep(state, "[0, 1]", "[0]", "");
  assert_int_equal(pl_make_folders(in_temp(state, "out/submissions", lock), NULL), PL_OK);
  pid_t other = fork();
  if (other == 0) {
    in_temp(state, "out/submissions/lock", lock);
    if (pl_claim_take(lock, &taken, &e) != PL_OK || !taken) _exit(1);
    pause();
  }
  in_temp(state, "out/submissions/lock", lock);
  for (int i = 0; i < 500 && !pl_path_exists(lock); i++) usleep(10000);
  fake_write(state, "out/location.json", "{}"); /* a directory of ours */
  assert_int_equal(submit(state, &r, &e), PL_BAD);
  assert_non_null(strstr(e.text, "just being submitted by process"));
  assert_int_equal(fake_calls(state, "sbatch"), 0);
  kill(other, SIGKILL);
  waitpid(other, NULL, 0);
  assert_int_equal(submit_ok(state).sent, 2);
}

static void the_submission_records_where_it_came_from(void **state) {
  char path[256];
  fake_slurm(state);
  setenv("SLURM_JOB_ID", "1", 1);
  setenv("SLURM_CPU_BIND", "x", 1);
  setenv("SBATCH_TIMELIMIT", "1", 1);
  write_sweep(state, "[0]", "[0]", "\"snapshot\": true, \"max_restarts\": 9, \"requeue\": \"never\"");
  submit_ok(state);
  unsetenv("SLURM_JOB_ID");
  unsetenv("SLURM_CPU_BIND");
  unsetenv("SBATCH_TIMELIMIT");
  char *env = fake_call(state, "sbatch", 1, "env"), *script = fake_call(state, "sbatch", 1, "stdin");
  assert_null(strstr(env, "SLURM_"));
  assert_null(strstr(env, "SBATCH_"));
  pl_submissions all = read_all(state);
  const pl_submission *s = &all.items[0];
  assert_int_equal(strlen(s->binary_hash), 16);
  snprintf(path, sizeof path, "%s/out/submissions/bin/%s/pipelag", (char *)*state, s->binary_hash);
  assert_string_equal(s->program, path);
  assert_int_equal(access(path, X_OK), 0);
  assert_non_null(strstr(script, path));
  assert_string_equal(s->data_root, *state);
  assert_string_equal(pl_json_get_string(s->document, "script", ""), script);
  assert_int_equal(pl_json_get_int(s->document, "max_restarts", 0), 9);
  assert_string_equal(pl_json_get_string(s->document, "requeue", ""), "never");
  assert_true(pl_json_size(pl_json_get(s->document, "libraries")) > 0);
  assert_non_null(pl_json_string(pl_json_get(s->document, "git_commit")));
  pl_submissions_free(&all);
  pl_free(env);
  pl_free(script);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_temp, remove_temp)
  const struct CMUnitTest tests[] = {
      TEST(arrays_are_cut_at_the_edge),
      TEST(what_is_in_the_queue_is_not_sent_again),
      TEST(what_ended_without_a_result_is_sent_again),
      TEST(a_refusal_in_the_middle_is_listed_and_finished_later),
      TEST(a_refusal_of_the_first_submits_nothing),
      TEST(a_lost_answer_is_found_in_the_queue),
      TEST(an_answer_that_never_comes_frees_the_runs_later),
      TEST(a_late_job_is_recognised),
      TEST(a_record_of_a_refusal_is_no_job),
      TEST(an_extension_leaves_what_waits_alone),
      TEST(rules_make_arrays_of_their_own),
      TEST(a_limit_is_shared_and_the_rest_waits),
      TEST(a_smaller_limit_lowers_what_waits),
      TEST(limits_are_kept),
      TEST(the_cluster_may_be_full),
      TEST(a_dry_run_writes_nothing),
      TEST(cancelled_runs_are_left_out),
      TEST(only_the_chosen_are_sent),
      TEST(two_at_once_do_not_both_send),
      TEST(the_submission_records_where_it_came_from),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
