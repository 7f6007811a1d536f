/* What stays in a run's folder between attempts: names of claims, the mark of a cancelled run, the count of attempts.
 */
#include "run_dir_help.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

/* Names of claims before are kept for a minute and go then; a finished run has none at all. */
static void names_of_old_claims_go(void **state) {
  char *claim = run_file(state, "claim"), *old = run_file(state, "claim.0123456789abcdef"), *folder;
  bool taken;
  make_run(state);
  write_bytes(old, "x", 1);
  const struct timespec before[2] = {{.tv_sec = time(NULL) - 120}, {.tv_sec = time(NULL) - 120}};
  assert_int_equal(utimensat(AT_FDCWD, old, before, 0), 0);
  assert_int_equal(pl_run_claim(*state, run_id, &taken, NULL), PL_OK);
  assert_false(pl_path_exists(old));
  pl_run_release(*state, run_id);
  assert_true(pl_path_exists(claim));
  assert_state(state, PL_RUN_PENDING);
  assert_int_equal(pl_run_claim(*state, run_id, &taken, NULL), PL_OK);
  assert_true(taken);
  assert_int_equal(pl_run_write_result(*state, run_id, PL_RUN_DONE, NULL, NULL, NULL), PL_OK);
  pl_run_release(*state, run_id);
  assert_int_equal(pl_run_path(*state, run_id, "", &folder, NULL), PL_OK);
  size_t files = 0;
  DIR *entries = opendir(folder);
  for (struct dirent *d = readdir(entries); d; d = readdir(entries)) files += d->d_name[0] != '.';
  closedir(entries);
  assert_int_equal(files, 1); /* result.json */
  pl_free(folder);
  pl_free(old);
  pl_free(claim);
}

static void cancelled_until_revived(void **state) {
  bool taken;
  int64_t count;
  make_run(state);
  assert_false(pl_run_is_cancelled(*state, run_id));
  assert_int_equal(pl_run_cancel(*state, run_id, NULL), PL_OK);
  assert_int_equal(pl_run_cancel(*state, run_id, NULL), PL_OK);
  assert_true(pl_run_is_cancelled(*state, run_id));
  assert_state(state, PL_RUN_CANCELLED);
  assert_int_equal(pl_run_claim(*state, run_id, &taken, NULL), PL_OK);
  assert_state(state, PL_RUN_RUNNING); /* until it ends */
  assert_int_equal(pl_run_write_result(*state, run_id, PL_RUN_STOPPED, NULL, NULL, NULL), PL_OK);
  pl_run_release(*state, run_id);
  pl_result r;
  assert_int_equal(pl_run_read_result(*state, run_id, &r, NULL), PL_OK);
  assert_int_equal(r.state, PL_RUN_CANCELLED);
  assert_state(state, PL_RUN_CANCELLED);
  assert_int_equal(pl_run_count_attempt(*state, run_id, 40, &count, NULL), PL_OK);
  assert_int_equal(pl_run_count_attempt(*state, run_id, 40, &count, NULL), PL_OK);
  assert_int_equal(count, 2);
  assert_int_equal(pl_run_revive(*state, run_id, NULL), PL_OK);
  assert_int_equal(pl_run_revive(*state, run_id, NULL), PL_OK);
  assert_state(state, PL_RUN_STOPPED);
  assert_int_equal(pl_run_count_attempt(*state, run_id, 40, &count, NULL), PL_OK);
  assert_int_equal(count, 1);
  assert_int_equal(pl_run_cancel(*state, run_id, NULL), PL_OK);
  assert_int_equal(pl_run_write_result(*state, run_id, PL_RUN_DONE, NULL, NULL, NULL), PL_OK);
  assert_state(state, PL_RUN_DONE); /* it came to its end before */
}

/* Only attempts that begin where the one before began are counted on. */
static void attempts_without_progress_are_counted(void **state) {
  static const struct {
    int64_t step, count;
  } attempts[] = {{-1, 1}, {-1, 2}, {0, 1}, {0, 2}, {0, 3}, {40, 1}, {0, 2}, {80, 1}};
  char *path = run_file(state, "restarts");
  make_run(state);
  for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
    int64_t count = 0;
    assert_int_equal(pl_run_count_attempt(*state, run_id, attempts[i].step, &count, NULL), PL_OK);
    assert_int_equal(count, attempts[i].count);
  }
  pl_run_clear_attempts(*state, run_id);
  assert_false(pl_path_exists(path));
  pl_free(path);
}

#define IN_TEMP(test) cmocka_unit_test_setup_teardown(test, make_temp, remove_temp)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_TEMP(names_of_old_claims_go),
      IN_TEMP(cancelled_until_revived),
      IN_TEMP(attempts_without_progress_are_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
