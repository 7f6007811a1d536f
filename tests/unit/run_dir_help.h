/* Shared by the tests of a run's folder. */
#ifndef PL_TESTS_RUN_DIR_HELP_H
#define PL_TESTS_RUN_DIR_HELP_H

#include "results_help.h"

#include "results/run_dir.h"

static const uint64_t run_id = 0x0123456789abcdefu;

/* The folder of the run, without a config. */
static inline void make_run(void **state) {
  char *folder;
  assert_int_equal(pl_run_path(*state, run_id, "", &folder, NULL), PL_OK);
  assert_int_equal(pl_make_folders(folder, NULL), PL_OK);
  pl_free(folder);
}

static inline char *run_file(void **state, const char *file) {
  char *path;
  assert_int_equal(pl_run_path(*state, run_id, file, &path, NULL), PL_OK);
  return path;
}

static inline void assert_state(void **state, pl_run_state expected) {
  assert_string_equal(pl_run_state_name(pl_run_state_of(*state, run_id)), pl_run_state_name(expected));
}

#endif
