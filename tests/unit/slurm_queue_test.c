/* What squeue and sacct say, from canned answers: array syntax, foreign jobs, unknown words, exit codes, no accounting.
 */
#include "fake_slurm.h"

#include "runners/launchers/slurm/queue.h"

static pl_submission_row rows[8];

static pl_submissions two(pl_submission items[2]) {
  for (int i = 0; i < 8; i++) rows[i] = (pl_submission_row){.task = i, .index = (uint64_t)i, .id = (uint64_t)i + 1};
  items[0] = (pl_submission){.number = 1, .token = "pl-a-1-x", .sent = PL_SENT_YES, .rows = rows, .count = 4};
  items[1] = (pl_submission){.number = 2, .token = "pl-a-2-y", .sent = PL_SENT_YES, .rows = rows, .count = 1};
  return (pl_submissions){.items = items, .count = 2};
}

static pl_queue ask(void) {
  pl_submission items[2];
  pl_submissions s = two(items);
  pl_queue q;
  pl_err e = {0};
  if (pl_queue_read(&s, &q, &e) != PL_OK) fail_msg("%s", e.text);
  return q;
}

static void tasks_are_found(void **state) {
  fake_slurm(state);
  fake_write(state, "queue",
             "pl-a-1-x|12|1|13|RUNNING|None|0|0|n1|\n"
             "other|12|1|14|RUNNING|None|0|0|n1|\n"
             "pl-a-1-x|12|0|12|FAILED|NonZeroExitCode|1792|2||\n"
             "pl-a-1-x|12|2|15|PENDING|ReqNodeNotAvail, UnavailableNodes:n2|0|0||\n"
             "pl-a-1-x|12|3|16|OUT_OF_MEMORY|OutOfMemory|253|0|n[1-2]|\n"
             "pl-a-2-y|17|N/A|17|CANCELLED|JobHeldUser|9|0||\n"
             "a broken line\n\n");
  pl_queue q = ask();
  assert_int_equal(q.count, 5);
  const pl_queue_task *t = pl_queue_find(&q, "pl-a-1-x", 0);
  assert_string_equal(t->state, "FAILED");
  assert_int_equal(t->exit_code, 7);
  assert_int_equal(t->restarts, 2);
  t = pl_queue_find(&q, "pl-a-1-x", 3);
  assert_int_equal(t->exit_signal, 125);
  assert_string_equal(t->node, "n[1-2]");
  assert_string_equal(pl_queue_find(&q, "pl-a-1-x", 2)->reason, "ReqNodeNotAvail, UnavailableNodes:n2");
  assert_string_equal(pl_queue_find(&q, "pl-a-2-y", 0)->state, "CANCELLED"); /* the line stands for all */
  assert_int_equal(pl_queue_find(&q, "pl-a-2-y", 0)->exit_signal, 9);
  assert_null(pl_queue_find(&q, "pl-a-1-x", 7));
  assert_null(pl_queue_find(&q, "pl-a-1", 0));
  assert_false(q.accounting);
  pl_queue_free(&q);
  char *argv = fake_call(state, "squeue", 1, "argv");
  assert_non_null(strstr(argv, "pl-a-1-x,pl-a-2-y\n"));
  pl_free(argv);
  assert_int_equal(fake_calls(state, "squeue"), 1);
  assert_int_equal(fake_calls(state, "sacct"), 0); /* it knew everything */
}

static void lists_of_tasks_are_taken_apart(void **state) {
  fake_slurm(state);
  fake_write(state, "queue",
             "pl-a-1-x|12|3-5%2|12|PENDING|Priority|0|0||\n"
             "pl-a-1-x|12|1,7,10%3|12|PENDING|Priority|0|0||\n"
             "foreign|77|4%1|77|PENDING|Priority|0|0||\n"
             "pl-a-2-y|20|0-1,...|20|PENDING|Priority|0|0||\n");
  pl_queue q = ask();
  static const int64_t there[] = {1, 3, 4, 5, 7, 10};
  for (size_t i = 0; i < 6; i++) assert_int_equal(pl_queue_find(&q, "pl-a-1-x", there[i])->task, there[i]);
  assert_null(pl_queue_find(&q, "pl-a-1-x", 2));
  assert_int_equal(pl_queue_find(&q, "pl-a-2-y", 1)->task, 1);
  assert_int_equal(pl_queue_find(&q, "pl-a-2-y", 5)->task, -1); /* cut off: there may be more */
  assert_null(pl_queue_find(&q, "foreign", 4));
  pl_queue_free(&q);
}

static void sacct_adds_what_squeue_forgot(void **state) {
  fake_slurm(state);
  fake_write(state, "queue", "pl-a-1-x|12|0|12|RUNNING|None|0|0|n1|\n");
  fake_write(state, "answers/sacct.all",
             "echo 'pl-a-1-x|12_0|COMPLETED|0:0|n9'\n"
             "echo 'pl-a-1-x|12_1|TIMEOUT|0:0|n1'\n"
             "echo 'pl-a-1-x|12_2|CANCELLED by 0|0:15|None assigned'\n"
             "echo 'pl-a-1-x|12_[3-4%2]|PENDING|0:0|None assigned'\n"
             "echo 'foreign|13_1|FAILED|1:0|n1'\n");
  pl_queue q = ask();
  assert_true(q.accounting);
  assert_string_equal(pl_queue_find(&q, "pl-a-1-x", 0)->state, "RUNNING"); /* squeue speaks of now */
  assert_string_equal(pl_queue_find(&q, "pl-a-1-x", 1)->state, "TIMEOUT");
  assert_string_equal(pl_queue_find(&q, "pl-a-1-x", 2)->state, "CANCELLED");
  assert_string_equal(pl_queue_find(&q, "pl-a-1-x", 2)->node, "");
  assert_int_equal(pl_queue_find(&q, "pl-a-1-x", 2)->exit_signal, 15);
  assert_null(pl_queue_find(&q, "pl-a-1-x", 3)); /* what waits, squeue would know */
  pl_queue_free(&q);
}

static void a_slurm_that_cannot_be_asked_is_quoted(void **state) {
  fake_slurm(state);
  fake_write(state, "answers/squeue.all",
             "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1\n");
  pl_submission items[2];
  pl_submissions s = two(items);
  pl_queue q;
  pl_err e = {0};
  assert_int_equal(pl_queue_read(&s, &q, &e), PL_FAIL);
  assert_string_equal(e.text, "cannot ask Slurm: squeue: slurm_load_jobs error: Unable to contact slurm controller");
}

static void no_submissions_need_no_question(void **state) {
  fake_slurm(state);
  pl_submissions none = {0};
  pl_queue q;
  pl_err e = {0};
  assert_int_equal(pl_queue_read(&none, &q, &e), PL_OK);
  assert_int_equal(q.count, 0);
  assert_int_equal(fake_calls(state, "squeue"), 0);
  pl_queue_free(&q);
}

static void words_have_a_kind(void **state) {
  (void)state;
  static const char *const waiting[] = {"PENDING",      "CONFIGURING",   "REQUEUED",
                                        "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"};
  static const char *const running[] = {"RUNNING", "COMPLETING", "SUSPENDED", "SIGNALING", "STAGE_OUT", "STOPPED"};
  static const char *const ended[] = {"COMPLETED", "FAILED",        "TIMEOUT",   "CANCELLED", "NODE_FAIL",
                                      "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE"};
  for (size_t i = 0; i < 6; i++) assert_int_equal(pl_queue_kind_of(waiting[i]), PL_QUEUE_WAITING);
  for (size_t i = 0; i < 6; i++) assert_int_equal(pl_queue_kind_of(running[i]), PL_QUEUE_RUNNING);
  for (size_t i = 0; i < 9; i++) assert_int_equal(pl_queue_kind_of(ended[i]), PL_QUEUE_ENDED);
  assert_int_equal(pl_queue_kind_of("GARDENING"), PL_QUEUE_UNKNOWN);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(tasks_are_found, make_temp, remove_temp),
      cmocka_unit_test_setup_teardown(lists_of_tasks_are_taken_apart, make_temp, remove_temp),
      cmocka_unit_test_setup_teardown(sacct_adds_what_squeue_forgot, make_temp, remove_temp),
      cmocka_unit_test_setup_teardown(a_slurm_that_cannot_be_asked_is_quoted, make_temp, remove_temp),
      cmocka_unit_test_setup_teardown(no_submissions_need_no_question, make_temp, remove_temp),
      cmocka_unit_test(words_have_a_kind),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
