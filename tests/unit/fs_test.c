#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/fs.h"
#include "core/base/memory.h"

static char folder[] = "/tmp/pl_fs_test.XXXXXX";

static int make_temporary(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : 1;
}

static int remove_temporary(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

/* Path in the temporary folder; released by pl_free. */
static char *in_folder(const char *name) {
  char *path = NULL;
  pl_err e = {0};
  assert_int_equal(pl_path_join(folder, name, &path, &e), PL_OK);
  return path;
}

static void paths_join_and_part(void **state) {
  (void)state;
  static const char *const joins[][3] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"a//", "b", "a/b"}, {"/", "b", "/b"},
                                         {"a", "/b", "/b"}, {"", "b", "b"},     {"a", "", "a"}};
  static const char *const parts[][2] = {{"a/b", "a"},  {"b", "."},    {"/b", "/"}, {"/a/b/c", "/a/b"},
                                         {"a/b/", "a"}, {"a//b", "a"}, {"/", "/"}};
  pl_err e = {0};
  char *out = NULL;
  for (size_t i = 0; i < sizeof joins / sizeof *joins; i++) {
    assert_int_equal(pl_path_join(joins[i][0], joins[i][1], &out, &e), PL_OK);
    assert_string_equal(out, joins[i][2]);
    pl_free(out);
  }
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    assert_int_equal(pl_path_folder(parts[i][0], &out, &e), PL_OK);
    assert_string_equal(out, parts[i][1]);
    pl_free(out);
  }
}

static void folders_are_made_with_parents(void **state) {
  (void)state;
  pl_err e = {0};
  char *deep = in_folder("one/two/three"), *blocked = in_folder("one/file/x"), *file = in_folder("one/file");
  assert_int_equal(pl_make_folders(deep, &e), PL_OK);
  assert_true(pl_path_is_folder(deep));
  assert_int_equal(pl_make_folders(deep, &e), PL_OK);
  assert_int_equal(pl_file_replace(file, "x", 1, &e), PL_OK);
  assert_int_equal(pl_make_folders(blocked, &e), PL_FAIL);
  assert_non_null(strstr(e.text, "a file of that name"));
  pl_free(deep);
  pl_free(blocked);
  pl_free(file);
}

static void replaced_files_read_back(void **state) {
  (void)state;
  pl_err e = {0};
  char *path = in_folder("data"), *bytes = NULL;
  size_t length = 0;
  static const char first[] = "first\0with a zero", second[] = "2";
  assert_int_equal(pl_file_replace(path, first, sizeof first, &e), PL_OK);
  assert_int_equal(pl_file_read(path, 1000, &bytes, &length, &e), PL_OK);
  assert_int_equal(length, sizeof first);
  assert_memory_equal(bytes, first, sizeof first);
  assert_int_equal(bytes[length], 0);
  pl_free(bytes);
  assert_int_equal(pl_file_replace(path, second, 1, &e), PL_OK);
  assert_int_equal(pl_file_read(path, 1, &bytes, &length, &e), PL_OK);
  assert_string_equal(bytes, "2");
  pl_free(bytes);
  pl_free(path);
}

static void no_temporary_is_left(void **state) {
  (void)state;
  pl_err e = {0};
  char *path = in_folder("sub"), *inside = in_folder("sub/x");
  assert_int_equal(pl_make_folders(inside, &e), PL_OK);
  assert_int_equal(pl_file_replace(path, "x", 1, &e), PL_FAIL); /* a folder stands there: the rename fails */
  DIR *dir = opendir(folder);
  for (struct dirent *entry; (entry = readdir(dir));) assert_null(strstr(entry->d_name, ".tmp."));
  closedir(dir);
  pl_free(path);
  pl_free(inside);
}

static void expect_unreadable(const char *path, size_t limit, const char *why) {
  pl_err e = {0};
  char *bytes = NULL;
  size_t length = 0;
  assert_int_equal(pl_file_read(path, limit, &bytes, &length, &e), PL_BAD);
  assert_null(bytes);
  assert_non_null(strstr(e.text, path));
  assert_non_null(strstr(e.text, why));
}

static void unreadable_files_say_why(void **state) {
  (void)state;
  pl_err e = {0};
  char *missing = in_folder("missing"), *large = in_folder("large"), *pipe_path = in_folder("pipe");
  expect_unreadable(missing, 10, "No such file");
  expect_unreadable(folder, 10, "folder");
  assert_int_equal(pl_file_replace(large, "12345678901", 11, &e), PL_OK);
  expect_unreadable(large, 10, "11 bytes");
  assert_int_equal(mkfifo(pipe_path, 0600), 0);
  expect_unreadable(pipe_path, 10, "regular file");
  assert_int_equal(truncate(large, (off_t)1 << 40), 0); /* a sparse terabyte is refused by its size alone */
  expect_unreadable(large, (size_t)1 << 28, "1099511627776 bytes");
  pl_free(missing);
  pl_free(large);
  pl_free(pipe_path);
}

static void files_without_a_size_are_read(void **state) {
  (void)state;
  pl_err e = {0};
  char *bytes = NULL;
  size_t length = 0;
  assert_int_equal(pl_file_read("/proc/self/status", 1 << 20, &bytes, &length, &e), PL_OK);
  assert_non_null(strstr(bytes, "Name:"));
  pl_free(bytes);
}

static void full_disks_are_failures(void **state) {
  (void)state;
  pl_err e = {0};
  FILE *full = fopen("/dev/full", "w");
  if (!full) skip();
  assert_int_equal(pl_write_all(fileno(full), "x", 1, "/dev/full", &e), PL_FAIL);
  assert_non_null(strstr(e.text, "/dev/full: writing failed: No space left"));
  fclose(full);
}

static void stamps_have_their_form(void **state) {
  (void)state;
  char stamp[32];
  pl_clock_stamp(stamp);
  assert_int_equal(strlen(stamp), 20);
  assert_true(stamp[4] == '-' && stamp[10] == 'T' && stamp[19] == 'Z');
  double before = pl_clock_seconds();
  assert_true(pl_clock_seconds() >= before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(paths_join_and_part),      cmocka_unit_test(folders_are_made_with_parents),
      cmocka_unit_test(replaced_files_read_back), cmocka_unit_test(no_temporary_is_left),
      cmocka_unit_test(unreadable_files_say_why), cmocka_unit_test(files_without_a_size_are_read),
      cmocka_unit_test(full_disks_are_failures),  cmocka_unit_test(stamps_have_their_form),
  };
  return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
