/* The files of submissions: what is written is read, numbers are never used twice, damage is named. */
#include "results_help.h"

#include "runners/launchers/slurm/submission.h"

static pl_submission make(size_t count) {
  pl_submission s = {.throttle = 3};
  pl_err e = {0};
  assert_int_equal(pl_alloc(count, sizeof *s.rows, "rows", &s.rows, &e), PL_OK);
  for (size_t i = 0; i < count; i++)
    s.rows[i] = (pl_submission_row){.task = (int64_t)i / 2, .index = 10 + i, .id = 0xf0e1d2c3b4a59600U + i};
  s.count = count;
  assert_int_equal(pl_strdup("/data", &s.data_root, &e), PL_OK);
  assert_int_equal(pl_strdup("/bin/pipelag", &s.program, &e), PL_OK);
  strcpy(s.binary_hash, "0123456789abcdef");
  s.document = pl_json_new_object();
  assert_true(pl_json_set_path(s.document, "resources.pack", pl_json_new_int(2)));
  return s;
}

static pl_submission create(void **state, size_t count) {
  pl_submission s = make(count);
  pl_err e = {0};
  if (pl_submission_create(*state, &s, &e) != PL_OK) fail_msg("%s", e.text);
  return s;
}

static void what_was_written_is_read(void **state) {
  pl_err e = {0};
  pl_submission a = create(state, 5), b = create(state, 1), read;
  assert_int_equal(a.number, 1);
  assert_int_equal(b.number, 2);
  assert_string_not_equal(a.token, b.token);
  assert_true(strlen(a.token) <= 32);
  assert_int_equal(strspn(a.token, "abcdefghijklmnopqrstuvwxyz0123456789-"), strlen(a.token));
  assert_int_equal(pl_submission_read(*state, 1, &read, &e), PL_OK);
  assert_int_equal(read.sent, PL_SENT_UNKNOWN);
  assert_string_equal(read.token, a.token);
  assert_string_equal(read.data_root, "/data");
  assert_string_equal(read.binary_hash, "0123456789abcdef");
  assert_int_equal(read.throttle, 3);
  assert_int_equal(read.count, 5);
  assert_memory_equal(read.rows, a.rows, 5 * sizeof *a.rows);
  assert_int_equal(pl_json_get_int(pl_json_get(read.document, "resources"), "pack", 0), 2);
  assert_true(pl_submission_age(&read) >= 0 && pl_submission_age(&read) < 60);
  pl_submission_free(&read);
  pl_submission_free(&a);
  pl_submission_free(&b);
}

static void answers_are_kept(void **state) {
  pl_err e = {0};
  pl_submission a = create(state, 2), b = create(state, 2);
  pl_submissions all;
  assert_int_equal(pl_submission_answer(*state, &a, PL_SENT_YES, "4711", NULL, &e), PL_OK);
  assert_int_equal(pl_submission_answer(*state, &b, PL_SENT_REFUSED, "", "Invalid partition", &e), PL_OK);
  assert_int_equal(pl_submission_set_throttle(*state, &a, 1, &e), PL_OK);
  assert_int_equal(pl_submissions_read(*state, &all, &e), PL_OK);
  assert_int_equal(all.count, 2);
  assert_int_equal(all.items[0].sent, PL_SENT_YES);
  assert_string_equal(all.items[0].job, "4711");
  assert_int_equal(all.items[0].throttle, 1);
  assert_int_equal(all.items[1].sent, PL_SENT_REFUSED);
  assert_string_equal(pl_json_get_string(all.items[1].document, "answer", ""), "Invalid partition");
  pl_submissions_free(&all);
  pl_submission_free(&a);
  pl_submission_free(&b);
}

static void numbers_are_not_used_again(void **state) {
  char path[256];
  pl_err e = {0};
  pl_submission a = create(state, 1), b = create(state, 1), c;
  /* Only the list of the second was written before a crash. */
  assert_int_equal(remove(in_temp(state, "submissions/2.json", path)), 0);
  write_bytes(in_temp(state, "submissions/10.json.tmp.77", path), "", 0);
  c = create(state, 1);
  assert_int_equal(c.number, 3);
  pl_submissions all;
  assert_int_equal(pl_submissions_read(*state, &all, &e), PL_OK);
  assert_int_equal(all.count, 2);
  assert_int_equal(all.items[1].number, 3);
  pl_submissions_free(&all);
  pl_submission_free(&a);
  pl_submission_free(&b);
  pl_submission_free(&c);
}

static void nothing_there_is_no_error(void **state) {
  pl_submissions all;
  pl_submission one;
  pl_err e = {0};
  assert_int_equal(pl_submissions_read(*state, &all, &e), PL_OK);
  assert_int_equal(all.count, 0);
  pl_submissions_free(&all);
  assert_int_equal(pl_submission_read(*state, 1, &one, &e), PL_BAD);
}

static void damaged(void **state, const char *file, const char *text, const char *words) {
  char path[256];
  pl_submissions all;
  pl_err e = {0};
  write_bytes(in_temp(state, file, path), text, strlen(text));
  assert_int_equal(pl_submissions_read(*state, &all, &e), PL_FAIL);
  if (strstr(e.text, words) == NULL) fail_msg("no \"%s\" in: %s", words, e.text);
}

static void damage_is_named(void **state) {
  pl_submission a = create(state, 1);
  damaged(state, "submissions/1.tsv", "task\tindex\tid\n0\t1\t00", "1.tsv:2: is damaged");
  damaged(state, "submissions/1.tsv", "task\tindex\tid\n0\t1\t0123456789abcdef\nx\t1\t0123456789abcdef\n", "1.tsv:3");
  damaged(state, "submissions/1.tsv", "", "1.tsv:1: is no list of tasks");
  damaged(state, "submissions/1.json", "{\"token\": \"x\"}", "1.json: is damaged");
  damaged(state, "submissions/1.json", "{", "1.json");
  pl_submission_free(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(what_was_written_is_read, make_temp, remove_temp),
      cmocka_unit_test_setup_teardown(answers_are_kept, make_temp, remove_temp),
      cmocka_unit_test_setup_teardown(numbers_are_not_used_again, make_temp, remove_temp),
      cmocka_unit_test_setup_teardown(nothing_there_is_no_error, make_temp, remove_temp),
      cmocka_unit_test_setup_teardown(damage_is_named, make_temp, remove_temp),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
