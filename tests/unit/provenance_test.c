/* meta.json: what an attempt records, and which differences end the "bitwise" mark. */
#include "results_help.h"

#include "core/base/json.h"
#include "results/provenance.h"

static const pl_attempt first = {.attempt = 1,
                                 .start_step = 0,
                                 .device_kernel = "avx2, OpenBLAS Haswell",
                                 .data_fingerprint = 0xfeedu,
                                 .threads = 1};

/* Adds an attempt; gives what it was told about a difference ("" for none). */
static char *add(const char *folder, const pl_attempt *a) {
  char *difference = NULL, *text;
  pl_err e = {0};
  if (pl_provenance_add(folder, a, &difference, &e) != PL_OK) fail_msg("%s", e.text);
  text = strdup(difference ? difference : "");
  pl_free(difference);
  return text;
}

static void assert_difference(const char *folder, const pl_attempt *a, const char *expected) {
  char *found = add(folder, a);
  assert_string_equal(found, expected);
  free(found);
}

static pl_json *read_meta(void **state) {
  char path[256];
  pl_json *meta;
  assert_int_equal(pl_json_read(in_temp(state, "meta.json", path), &meta, NULL), PL_OK);
  return meta;
}

static void assert_bitwise(void **state, bool expected) {
  pl_json *meta = read_meta(state);
  assert_int_equal(pl_json_kind_of(pl_json_get(meta, "bitwise")), PL_JSON_BOOL);
  assert_int_equal(pl_json_bool(pl_json_get(meta, "bitwise")), expected);
  pl_json_release(meta);
}

static void an_attempt_is_described(void **state) {
  setenv("PIPELAG_DATA", "/data/é", 1);
  setenv("SLURM_JOB_ID", "4711", 1);
  setenv("SLURM_JWT", "a secret", 1);
  setenv("PIPELAG_TOKEN", "a secret", 1);
  setenv("OPENBLAS_NUM_THREADS", "TOKEN", 1); /* a value is no name */
  setenv("OTHER", "unrelated", 1);
  assert_difference(*state, &first, "");
  pl_json *meta = read_meta(state);
  const pl_json *a = pl_json_at(pl_json_get(meta, "attempts"), 0);
  assert_int_equal(pl_json_get_int(a, "attempt", 0), 1);
  assert_int_equal(pl_json_get_int(a, "start_step", -1), 0);
  assert_int_equal(pl_json_get_int(a, "threads", 0), 1);
  assert_string_equal(pl_json_get_string(a, "kernel", ""), first.device_kernel);
  assert_string_equal(pl_json_get_string(a, "data_fingerprint", ""), "000000000000feed");
  assert_int_equal(strlen(pl_json_get_string(a, "binary_hash", "")), 16);
  assert_int_equal(strlen(pl_json_get_string(a, "started", "")), 20);
  static const char *const texts[] = {"version", "git_commit", "host"};
  for (int i = 0; i < 3; i++) assert_true(strlen(pl_json_get_string(a, texts[i], "")) > 0);
  assert_non_null(pl_json_get_string(a, "git_diff", NULL));
  const pl_json *env = pl_json_get(a, "env");
  assert_string_equal(pl_json_get_string(env, "PIPELAG_DATA", ""), "/data/é");
  assert_string_equal(pl_json_get_string(env, "SLURM_JOB_ID", ""), "4711");
  assert_string_equal(pl_json_get_string(env, "OPENBLAS_NUM_THREADS", ""), "TOKEN");
  assert_null(pl_json_get(env, "SLURM_JWT"));
  assert_null(pl_json_get(env, "PIPELAG_TOKEN"));
  assert_null(pl_json_get(env, "OTHER"));
  pl_json_release(meta);
}

static void the_same_again_stays_bitwise(void **state) {
  pl_attempt second = first;
  second.attempt = 2;
  second.start_step = 60;
  assert_difference(*state, &first, "");
  assert_difference(*state, &second, "");
  assert_bitwise(state, true);
  pl_json *meta = read_meta(state);
  assert_int_equal(pl_json_size(pl_json_get(meta, "attempts")), 2);
  assert_int_equal(pl_json_get_int(pl_json_at(pl_json_get(meta, "attempts"), 1), "start_step", 0), 60);
  pl_json_release(meta);
}

static void a_difference_ends_the_mark_for_good(void **state) {
  pl_attempt second = first, third;
  second.attempt = 2;
  second.start_step = 60;
  second.threads = 2;
  second.device_kernel = "avx512, OpenBLAS SkylakeX";
  third = second;
  third.attempt = 3;
  third.start_step = 80;
  assert_difference(*state, &first, "");
  assert_bitwise(state, true);
  assert_difference(*state, &second,
                    "attempt 2 differs from attempt 1 in kernel (\"avx512, OpenBLAS SkylakeX\", was \"avx2, OpenBLAS "
                    "Haswell\"), threads (2, was 1); the run is no longer marked bitwise");
  assert_bitwise(state, false);
  assert_difference(*state, &third, ""); /* like the second, but what the run has is still mixed */
  assert_bitwise(state, false);
  third.attempt = 4;
  third.data_fingerprint++;
  assert_difference(*state, &third,
                    "attempt 4 differs from attempt 3 in data_fingerprint (\"000000000000feee\", was "
                    "\"000000000000feed\"); the run is no longer marked bitwise");
}

static void a_run_that_starts_over_is_bitwise_again(void **state) {
  pl_attempt again = first;
  again.attempt = 2;
  again.threads = 4;
  assert_difference(*state, &first, "");
  assert_difference(*state, &again, "");
  assert_bitwise(state, true);
}

/* What was submitted counts as what was there before, also for the first attempt. */
static void another_program_than_submitted_ends_the_mark(void **state) {
  pl_attempt noted = first, again = first;
  noted.note = "the program differs from the one submitted: program (b, was a)";
  again.attempt = 2;
  again.start_step = 60;
  assert_difference(*state, &noted, "");
  assert_bitwise(state, false);
  pl_json *meta = read_meta(state);
  assert_string_equal(pl_json_get_string(pl_json_at(pl_json_get(meta, "attempts"), 0), "note", ""), noted.note);
  pl_json_release(meta);
  assert_difference(*state, &again, "");
  assert_bitwise(state, false);
}

/* A first meta.json does not wait for the disk. */
static void a_file_left_empty_by_a_power_cut_counts_as_missing(void **state) {
  char path[256];
  write_bytes(in_temp(state, "meta.json", path), "", 0);
  assert_difference(*state, &first, "");
  assert_bitwise(state, true);
}

/* Of a pool the parent reads it once. */
static void the_origin_is_the_callers(void **state) {
  const pl_origin origin = {.binary = "0123456789abcdef", .host = "elsewhere", .cpu = "a CPU"};
  pl_attempt given = first;
  given.origin = &origin;
  assert_difference(*state, &given, "");
  pl_json *meta = read_meta(state);
  const pl_json *a = pl_json_at(pl_json_get(meta, "attempts"), 0);
  assert_string_equal(pl_json_get_string(a, "binary_hash", ""), origin.binary);
  assert_string_equal(pl_json_get_string(a, "host", ""), origin.host);
  assert_string_equal(pl_json_get_string(a, "cpu", ""), origin.cpu);
  pl_json_release(meta);
}

static void damaged_files_and_unwritable_folders_fail(void **state) {
  static const char *const broken[] = {" ", "{\"attempts\": [", "{\"attempts\": 3}", "[]"};
  char path[256], *difference;
  pl_err e;
  for (int i = 0; i < 4; i++) {
    e = (pl_err){0};
    write_bytes(in_temp(state, "meta.json", path), broken[i], strlen(broken[i]));
    assert_int_equal(pl_provenance_add(*state, &first, &difference, &e), PL_FAIL);
    assert_int_equal(e.status, PL_FAIL);
    assert_null(difference);
    assert_says(&e, path);
  }
  e = (pl_err){0};
  assert_int_equal(pl_provenance_add(in_temp(state, "meta.json/run", path), &first, &difference, &e), PL_FAIL);
  assert_says(&e, "meta.json/run");
}

#define IN_TEMP(test) cmocka_unit_test_setup_teardown(test, make_temp, remove_temp)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_TEMP(an_attempt_is_described),
      IN_TEMP(the_same_again_stays_bitwise),
      IN_TEMP(a_difference_ends_the_mark_for_good),
      IN_TEMP(a_run_that_starts_over_is_bitwise_again),
      IN_TEMP(another_program_than_submitted_ends_the_mark),
      IN_TEMP(a_file_left_empty_by_a_power_cut_counts_as_missing),
      IN_TEMP(the_origin_is_the_callers),
      IN_TEMP(damaged_files_and_unwritable_folders_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
