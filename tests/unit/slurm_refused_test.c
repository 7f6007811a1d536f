/* `submit` and `retry` when something is wrong: it is said first, and what Slurm did not get is as it was. */
#include "slurm_submit_help.h"

#include "results/run_dir.h"

static bool is_cancelled(void **state, const pl_submission *s, size_t row) {
  char dir[256];
  return pl_run_is_cancelled(in_temp(state, "out", dir), s->rows[row].id);
}

/* Five runs in two arrays were cancelled; Slurm takes the first array and refuses the second. */
static void what_slurm_refuses_stays_cancelled(void **state) {
  pl_submit_result r;
  pl_err e;
  char dir[256];
  const bool chosen[] = {true, true, true, true, true};
  fake_slurm(state);
  write_sweep(state, "[0, 1, 2, 3, 4]", "[0]", "");
  submit_ok(state);
  fake_write(state, "queue", "");
  pl_submissions all = read_all(state);
  for (size_t i = 0; i < 4; i++)
    assert_int_equal(pl_run_cancel(in_temp(state, "out", dir), all.items[0].rows[i].id, &e), PL_OK);
  assert_int_equal(pl_run_cancel(dir, all.items[1].rows[0].id, &e), PL_OK);
  fake_write(state, "answers/sbatch.3", "echo 'sbatch: error: nope' >&2; exit 1\n");
  assert_int_equal(submit_with(state, false, chosen, &r, &e), PL_BAD);
  for (size_t i = 0; i < 4; i++) assert_true(is_cancelled(state, &all.items[0], i));
  fake_write(state, "answers/sbatch.5", "echo 'sbatch: error: nope' >&2; exit 1\n");
  assert_int_equal(submit_with(state, false, chosen, &r, &e), PL_FAIL);
  assert_int_equal(r.sent, 4);
  for (size_t i = 0; i < 4; i++) assert_false(is_cancelled(state, &all.items[0], i));
  assert_true(is_cancelled(state, &all.items[1], 0));
  assert_int_equal(submit_ok(state).sent, 0);
  fake_write(state, "config", "no such file");
  fake_write(state, "answers/scontrol.all", "exit 1\n");
  assert_int_equal(submit_with(state, false, chosen, &r, &e), PL_BAD);
  assert_true(is_cancelled(state, &all.items[1], 0));
  pl_submissions_free(&all);
}

/* Between sbatch and its answer the directory cannot be written any more. */
static void a_job_that_cannot_be_noted_is_told_and_found(void **state) {
  pl_submit_result r;
  pl_err e;
  fake_slurm(state);
  write_sweep(state, "[0, 1]", "[0]", "");
  fake_write(state, "answers/sbatch.1",
             "accept; cd $here/out/submissions; mv 1.json ../kept; mkdir 1.json; touch 1.json/x; echo $id\n");
  assert_int_equal(submit(state, &r, &e), PL_FAIL);
  assert_non_null(strstr(e.text, "submission 1 is in Slurm as job 101, but that could not be noted"));
  char path[256], kept[256];
  assert_int_equal(unlink(in_temp(state, "out/submissions/1.json/x", path)), 0);
  assert_int_equal(rmdir(in_temp(state, "out/submissions/1.json", path)), 0);
  assert_int_equal(rename(in_temp(state, "out/kept", kept), path), 0);
  assert_int_equal(submit_ok(state).queued, 2);
  each_run_once(state, 2);
}

static void fails_before_anything_is_made(void **state, const char *words) {
  pl_submit_result r;
  pl_err e;
  char path[256];
  assert_int_equal(submit(state, &r, &e), PL_BAD);
  if (strstr(e.text, words) == NULL) fail_msg("no \"%s\" in: %s", words, e.text);
  assert_false(pl_path_exists(in_temp(state, "out", path)));
}

static void what_is_wrong_is_said_first(void **state) {
  char path[256];
  fake_slurm(state);
  write_sweep(state, "[0]", "[0]", "\"partition\": \"debog\"");
  fails_before_anything_is_made(state,
                                "slurm.partition: the cluster has no partition \"debog\"; did you mean \"debug\"?");
  write_sweep(state, "[0]", "[0]", "\"partition\": \"debug,lo\"");
  fails_before_anything_is_made(state, "no partition \"lo\"");
  write_sweep(state, "[0]", "[0]", "\"partiton\": \"debug\"");
  fails_before_anything_is_made(state, "sweep.json: slurm: unknown key \"partiton\"");
  write_sweep(state, "[0]", "[0]", "\"nodes\": 3");
  fails_before_anything_is_made(state, "run 0: slurm.nodes: 3 nodes for 1 tasks");
  write_sweep(state, "[0]", "[0]", "");
  fake_write(state, "answers/scontrol.all",
             "echo 'Unable to contact slurm controller (connect failure)' >&2; exit 1\n");
  fails_before_anything_is_made(state, "cannot ask Slurm: scontrol: Unable to contact slurm controller");
  assert_int_equal(setenv("PATH", in_temp(state, "calls", path), 1), 0);
  fails_before_anything_is_made(state, "sbatch: not found on PATH");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_temp, remove_temp)
  const struct CMUnitTest tests[] = {
      TEST(what_slurm_refuses_stays_cancelled),
      TEST(a_job_that_cannot_be_noted_is_told_and_found),
      TEST(what_is_wrong_is_said_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
