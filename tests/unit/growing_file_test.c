/* Files that are written as memory: what is on the disk, what replaces what, and a disk that is full. */
#include "results_help.h"

#include "results/growing_file.h"

enum { STEP = 10000, STEPS = 60 };

/* Grows in steps and marks each one's end. */
static bool fill(pl_growing *g) {
  for (size_t i = 1; i <= STEPS; i++) {
    char *bytes = pl_growing_bytes(g, i * STEP);
    if (!bytes) return false;
    for (size_t k = (i - 1) * STEP; k < i * STEP; k++)
      if (bytes[k] != 0) return false;
    bytes[i * STEP - 1] = (char)i;
  }
  return true;
}

static bool is_filled(const char *bytes) {
  for (size_t i = 1; i <= STEPS; i++)
    if (bytes[i * STEP - 1] != (char)i) return false;
  return true;
}

static bool only_the_file(const char *folder) {
  char command[256];
  snprintf(command, sizeof command, "test \"$(ls '%s')\" = file", folder);
  return system(command) == 0;
}

static void it_becomes_the_file_at_once(void **state) {
  char path[256], *bytes;
  pl_growing *g = NULL;
  write_bytes(in_temp(state, "file", path), "old", 3);
  assert_int_equal(pl_growing_open(path, &g, NULL), PL_OK);
  assert_true(fill(g));
  assert_ptr_equal(pl_growing_bytes(g, 5), pl_growing_bytes(g, (size_t)STEPS * STEP));
  assert_int_equal(read_bytes(path, &bytes), 3); /* not before */
  pl_free(bytes);
  assert_true(pl_growing_fits(g));
  assert_int_equal(pl_growing_commit(g, (size_t)STEPS * STEP, NULL), PL_OK);
  pl_growing_close(g);
  assert_int_equal(read_bytes(path, &bytes), STEPS * STEP);
  assert_true(is_filled(bytes));
  bytes[7 * STEP - 1]++;
  assert_false(is_filled(bytes));
  pl_free(bytes);
  assert_true(only_the_file(*state));
}

static void what_is_not_committed_leaves_nothing(void **state) {
  char path[256], *bytes;
  pl_growing *g = NULL;
  write_bytes(in_temp(state, "file", path), "old", 3);
  assert_int_equal(pl_growing_open(path, &g, NULL), PL_OK);
  assert_true(fill(g));
  pl_growing_close(g);
  pl_growing_close(NULL);
  assert_int_equal(read_bytes(path, &bytes), 3);
  pl_free(bytes);
  assert_true(only_the_file(*state));
}

/* The writer sees nothing of it and finds what it wrote; the name stays with the old file. */
static int go_on_without_room(void *self, int number) {
  const struct rlimit small = {(rlim_t)25 * STEP, RLIM_INFINITY};
  char path[256];
  pl_growing *g = NULL;
  pl_err e = {0};
  (void)number;
  in_temp(&self, "file", path);
  signal(SIGXFSZ, SIG_IGN);
  if (setrlimit(RLIMIT_FSIZE, &small) != 0 || pl_growing_open(path, &g, NULL) != PL_OK) return 1;
  if (!fill(g) || !is_filled(pl_growing_bytes(g, 1)) || pl_growing_fits(g)) return 2;
  if (pl_growing_commit(g, (size_t)STEPS * STEP, &e) != PL_FAIL || !strstr(e.text, "File too large")) return 3;
  pl_growing_close(g);
  return 0;
}

static void a_full_disk_is_told_at_the_end(void **state) {
  char path[256], *bytes;
  write_bytes(in_temp(state, "file", path), "old", 3);
  assert_int_equal(fork_all(1, go_on_without_room, *state), 0);
  assert_int_equal(read_bytes(path, &bytes), 3);
  pl_free(bytes);
  assert_true(only_the_file(*state));
}

static void a_place_that_is_none_is_named(void **state) {
  char path[256];
  pl_growing *g = NULL;
  pl_err e = {0};
  assert_int_equal(pl_growing_open(in_temp(state, "nowhere/file", path), &g, &e), PL_FAIL);
  assert_non_null(strstr(e.text, path));
  assert_null(g);
}

#define IN_TEMP(test) cmocka_unit_test_setup_teardown(test, make_temp, remove_temp)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_TEMP(it_becomes_the_file_at_once),
      IN_TEMP(what_is_not_committed_leaves_nothing),
      IN_TEMP(a_full_disk_is_told_at_the_end),
      IN_TEMP(a_place_that_is_none_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
