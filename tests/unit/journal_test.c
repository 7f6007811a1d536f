/* The journal: torn at every byte, damaged at every byte, killed writers, attempts that follow each other. */
#include "results_help.h"

#include <sys/mman.h>

#include "core/base/hash.h"
#include "results/journal.h"
#include "results/journal_format.h"

enum { HEADER = sizeof(pl_journal_header), RECORD = PL_RECORD_SIZE(PL_SERIES_COUNT) };

/* One attempt that writes the points first..last. */
static void write_attempt(const char *path, int64_t first, int64_t last) {
  pl_journal *j;
  pl_err e = {0};
  if (pl_journal_open(path, &j, &e) != PL_OK) fail_msg("%s", e.text);
  for (int64_t step = first; step <= last; step++) {
    const pl_point p = point_at(step, pl_journal_attempt(j));
    assert_int_equal(pl_journal_write(j, &p, &e), PL_OK);
  }
  pl_journal_close(j);
}

static pl_curve read_curve(const char *path) {
  pl_curve c;
  pl_err e = {0};
  if (pl_curve_read(path, &c, &e) != PL_OK) fail_msg("%s", e.text);
  return c;
}

static void points_come_back(void **state) {
  char path[256];
  in_temp(state, "journal", path);
  pl_curve c = read_curve(path);
  assert_int_equal(c.count, 0);
  assert_int_equal(c.attempts, 0);
  assert_int_equal(pl_journal_last_step(path), -1);
  write_attempt(path, 0, 700); /* more than one block of the reader */
  c = read_curve(path);
  assert_int_equal(c.count, 701);
  assert_int_equal(c.attempts, 1);
  assert_int_equal(c.damaged, 0);
  for (size_t i = 0; i < c.count; i++) {
    assert_point(&c.rows[i].point, (int64_t)i, 1);
    assert_int_equal(c.rows[i].attempt, 1);
  }
  assert_int_equal(pl_journal_last_step(path), 700);
  pl_curve_free(&c);
}

static void write_points(pl_journal *j, int64_t first, int64_t last) {
  pl_err e = {0};
  for (int64_t step = first; step <= last; step++) {
    const pl_point p = point_at(step, pl_journal_attempt(j));
    assert_int_equal(pl_journal_write(j, &p, &e), PL_OK);
  }
}

/* By a sync, when there is no room for more, and when they have waited long enough. */
static void gathered_points_are_written_together(void **state) {
  char path[256];
  pl_journal *j;
  pl_err e = {0};
  uint64_t length;
  in_temp(state, "journal", path);
  assert_int_equal(pl_journal_open(path, &j, &e), PL_OK);
  assert_int_equal(pl_journal_gather(j, 1e9, &e), PL_OK);
  write_points(j, 1, 10);
  assert_int_equal(pl_journal_last_step(path), -1);
  assert_int_equal(pl_journal_sync(j, &length, &e), PL_OK);
  assert_int_equal(pl_journal_last_step(path), 10);
  assert_int_equal(length, HEADER + 12 * RECORD); /* two records of the attempt */
  write_points(j, 11, 80);
  assert_int_equal(pl_journal_last_step(path), 74);
  assert_int_equal(pl_journal_gather(j, 0, &e), PL_OK);
  write_points(j, 81, 81);
  assert_int_equal(pl_journal_last_step(path), 81);
  assert_int_equal(pl_journal_gather(j, 1e9, &e), PL_OK);
  write_points(j, 82, 83);
  pl_journal_close(j);
  pl_curve c = read_curve(path);
  assert_int_equal(c.count, 81);
  assert_int_equal(c.damaged, 0);
  for (size_t i = 0; i < 81; i++) assert_point(&c.rows[i].point, (int64_t)i + 1, 1);
  pl_curve_free(&c);
}

/* Checkpoint at 60, log reaches 73, kill, resume to 100. */
static void resume_has_no_point_twice(void **state) {
  char path[256];
  in_temp(state, "journal", path);
  write_attempt(path, 1, 73);
  write_attempt(path, 61, 100);
  pl_curve c = read_curve(path);
  assert_int_equal(c.count, 100);
  assert_int_equal(c.attempts, 2);
  for (size_t i = 0; i < 100; i++) {
    int64_t attempt = i < 60 ? 1 : 2;
    assert_int_equal(c.rows[i].attempt, attempt);
    assert_point(&c.rows[i].point, (int64_t)i + 1, attempt);
  }
  pl_curve_free(&c);
}

static void later_attempts_drop_what_lies_beyond_their_start(void **state) {
  char path[256];
  in_temp(state, "journal", path);
  write_attempt(path, 1, 90);
  write_attempt(path, 1, 0); /* dies before its first point: counts, drops nothing */
  write_attempt(path, 31, 40);
  pl_curve c = read_curve(path);
  assert_int_equal(c.attempts, 3);
  assert_int_equal(c.count, 40);
  assert_int_equal(c.rows[29].attempt, 1);
  assert_int_equal(c.rows[30].attempt, 3);
  pl_curve_free(&c);
  write_attempt(path, 0, 5); /* from the beginning again */
  c = read_curve(path);
  assert_int_equal(c.count, 6);
  assert_int_equal(c.rows[0].attempt, 4);
  assert_int_equal(c.rows[5].attempt, 4);
  pl_curve_free(&c);
}

/* A process that had lost the run writes on behind a newer attempt. */
static void a_writer_of_an_older_attempt_does_not_count(void **state) {
  char path[256];
  pl_journal *old;
  in_temp(state, "journal", path);
  assert_int_equal(pl_journal_open(path, &old, NULL), PL_OK);
  for (int64_t step = 1; step <= 5; step++) {
    const pl_point p = point_at(step, 1);
    assert_int_equal(pl_journal_write(old, &p, NULL), PL_OK);
  }
  write_attempt(path, 4, 6);
  const pl_point late = point_at(7, 1);
  assert_int_equal(pl_journal_write(old, &late, NULL), PL_OK);
  pl_journal_close(old);
  pl_curve c = read_curve(path);
  assert_int_equal(c.count, 6);
  for (size_t i = 0; i < 6; i++) assert_point(&c.rows[i].point, (int64_t)i + 1, i < 3 ? 1 : 2);
  pl_curve_free(&c);
}

/* Every length from whole record 4 to whole record 5. */
static void torn_tail_is_cut_at_every_length(void **state) {
  char path[256], *bytes;
  in_temp(state, "journal", path);
  write_attempt(path, 1, 5);
  size_t length = read_bytes(path, &bytes);
  assert_int_equal(length, HEADER + 7 * RECORD); /* opened, started, five points */
  for (size_t cut = length - RECORD; cut <= length; cut++) {
    bool whole = cut == length, torn = !whole && cut > length - RECORD;
    write_bytes(path, bytes, cut);
    pl_curve c = read_curve(path);
    assert_int_equal(c.count, whole ? 5 : 4);
    assert_int_equal(c.damaged, torn);
    assert_int_equal(pl_journal_last_step(path), whole ? 5 : 4);
    pl_curve_free(&c);
    pl_journal *j;
    assert_int_equal(pl_journal_open(path, &j, NULL), PL_OK);
    assert_int_equal(pl_journal_length(j), whole ? length : length - RECORD);
    pl_journal_close(j);
    write_attempt(path, 6, 6);
    c = read_curve(path);
    assert_int_equal(c.damaged, 0);
    assert_int_equal(c.count, whole ? 6 : 5);
    assert_point(&c.rows[c.count - 1].point, 6, 3);
    pl_curve_free(&c);
  }
  pl_free(bytes);
}

/* Also the very first bytes: whatever is left of the file, a run can go on with it. */
static void torn_beginning_starts_over(void **state) {
  char path[256], *bytes;
  in_temp(state, "journal", path);
  write_attempt(path, 1, 1);
  read_bytes(path, &bytes);
  for (size_t cut = 0; cut < HEADER + RECORD; cut++) {
    write_bytes(path, bytes, cut);
    pl_curve c = read_curve(path);
    assert_int_equal(c.count, 0);
    assert_int_equal(c.damaged, cut != 0 && cut != HEADER);
    write_attempt(path, 1, 2);
    c = read_curve(path);
    assert_int_equal(c.damaged, 0);
    assert_int_equal(c.count, 2);
    assert_int_equal(c.attempts, 1);
    pl_curve_free(&c);
  }
  pl_free(bytes);
}

static void flipped_bytes_are_found_and_the_others_survive(void **state) {
  char path[256], *bytes;
  in_temp(state, "journal", path);
  write_attempt(path, 1, 4);
  size_t length = read_bytes(path, &bytes);
  for (size_t at = 0; at < length; at++)
    for (int bit = 0; bit < 8; bit += 7) {
      bytes[at] = (char)(bytes[at] ^ (1 << bit));
      write_bytes(path, bytes, length);
      bytes[at] = (char)(bytes[at] ^ (1 << bit));
      size_t lost = at < HEADER + 2 * RECORD ? SIZE_MAX : (at - HEADER) / RECORD - 2;
      pl_curve c = read_curve(path);
      assert_int_equal(c.damaged, 1);
      assert_int_equal(c.count, lost == SIZE_MAX ? 4 : 3);
      for (size_t i = 0; i < c.count; i++) assert_point(&c.rows[i].point, (int64_t)i + 1 + (i >= lost), 1);
      pl_curve_free(&c);
    }
  pl_free(bytes);
}

static void other_versions_and_other_files_are_refused(void **state) {
  char path[256];
  pl_journal *j;
  pl_curve c;
  in_temp(state, "journal", path);
  pl_journal_header other = pl_journal_header_make(&pl_journal_of_points, PL_SERIES_COUNT);
  other.version = 7;
  other.record_size = 256;
  other.checksum = pl_hash(&other, offsetof(pl_journal_header, checksum));
  write_bytes(path, &other, sizeof other);
  pl_err e = {0}, again = {0};
  assert_int_equal(pl_curve_read(path, &c, &e), PL_FAIL);
  assert_says(&e, path);
  assert_says(&e, "version 7 with records of 256 bytes; this pipelag reads version 1");
  assert_int_equal(pl_journal_open(path, &j, &again), PL_FAIL);
  assert_null(j);
  assert_string_equal(e.text, again.text);
  char garbage[1000];
  for (size_t i = 0; i < sizeof garbage; i++) garbage[i] = (char)(i * i + 31 * i);
  write_bytes(path, garbage, sizeof garbage);
  e = (pl_err){0};
  assert_int_equal(pl_curve_read(path, &c, &e), PL_FAIL);
  assert_says(&e, "is no journal");
  assert_int_equal(pl_journal_open(path, &j, NULL), PL_FAIL);
  char *kept;
  assert_int_equal(read_bytes(path, &kept), sizeof garbage); /* refused, not overwritten */
  assert_memory_equal(kept, garbage, sizeof garbage);
  pl_free(kept);
}

/* A journal of a build that did not know the last series: 11 of them in records of 128 bytes. */
static void journals_with_fewer_series_are_read_and_continued(void **state) {
  enum { OLD = 11, OLD_RECORD = 128 };
  char path[256], *bytes;
  pl_journal *j;
  pl_curve_row last;
  in_temp(state, "journal", path);
  assert_int_equal(pl_journal_open_as(path, &pl_journal_of_points, OLD, 1, &j, NULL), PL_OK);
  for (int64_t step = 1; step <= 700; step++) {
    const pl_point p = point_at(step, 1);
    assert_int_equal(pl_journal_write(j, &p, NULL), PL_OK);
  }
  pl_journal_close(j);
  assert_int_equal(read_bytes(path, &bytes), HEADER + 702 * OLD_RECORD);
  const uint32_t expected[] = {1, OLD_RECORD, OLD, 0};
  assert_memory_equal(bytes + 8, expected, sizeof expected);
  write_attempt(path, 600, 750);
  pl_curve c = read_curve(path);
  assert_int_equal(c.count, 750);
  assert_int_equal(c.damaged, 0);
  for (size_t i = 0; i < c.count; i++) {
    pl_point p = point_at((int64_t)i + 1, i < 599 ? 1 : 2);
    for (size_t k = OLD; k < PL_SERIES_COUNT; k++) p.values[k] = (double)NAN;
    assert_memory_equal(&c.rows[i].point, &p, sizeof p);
  }
  assert_int_equal(pl_journal_last_attempt(path), 2);
  assert_true(pl_journal_last_point(path, &last));
  assert_memory_equal(&last, &c.rows[749], sizeof last);
  pl_curve_free(&c);
  pl_free(bytes);
  size_t length = read_bytes(path, &bytes);
  bytes[12]++; /* of the header: the records tell their size */
  write_bytes(path, bytes, length);
  c = read_curve(path);
  assert_int_equal(c.count, 750);
  assert_int_equal(c.damaged, 1);
  pl_curve_free(&c);
  pl_free(bytes);
}

/* A later build's. */
static void journals_with_more_series_are_refused(void **state) {
  char path[256];
  pl_curve c;
  pl_journal *j;
  pl_err e = {0};
  in_temp(state, "journal", path);
  const pl_journal_header more = pl_journal_header_make(&pl_journal_of_points, PL_SERIES_COUNT + 1);
  write_bytes(path, &more, sizeof more);
  assert_int_equal(pl_curve_read(path, &c, &e), PL_FAIL);
  assert_says(&e, "a journal of version 1 with records of 168 bytes; this pipelag reads version 1 with records of 128 "
                  "to 160 bytes");
  assert_int_equal(pl_journal_open(path, &j, NULL), PL_FAIL);
  const pl_journal_header times = pl_journal_header_make(&pl_journal_of_times, 12);
  write_bytes(path, &times, sizeof times);
  e = (pl_err){0};
  assert_int_equal(pl_curve_read(path, &c, &e), PL_FAIL);
  assert_says(&e, "is no journal of pipelag");
}

/* Writes points as fast as it can, telling after each how far it is; goes on where `from` says. */
static void write_until_killed(const char *path, int64_t from, volatile int64_t *reached) {
  pl_journal *j;
  if (pl_journal_open(path, &j, NULL) != PL_OK) _exit(1);
  for (int64_t step = from;; step++) {
    const pl_point p = point_at(step, pl_journal_attempt(j));
    if (pl_journal_write(j, &p, NULL) != PL_OK) _exit(1);
    *reached = step;
  }
}

static void killed_writers_lose_at_most_the_last_record(void **state) {
  enum { KILLS = 50 };
  char path[256];
  unsigned random = 12345;
  in_temp(state, "journal", path);
  int64_t next = 1;
  volatile int64_t *reached = mmap(NULL, sizeof *reached, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal((const void *)(uintptr_t)reached, MAP_FAILED);
  for (int kill_number = 1; kill_number <= KILLS; kill_number++) {
    *reached = next - 1;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) write_until_killed(path, next, reached);
    random = random * 1664525u + 1013904223u;
    usleep(200 + random % 3000);
    assert_int_equal(kill(child, SIGKILL), 0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    pl_curve c = read_curve(path);
    assert_true(c.damaged <= 1);
    /* What was acknowledged is there; at most one more that was written but not told. */
    assert_true((int64_t)c.count == *reached || (int64_t)c.count == *reached + 1);
    for (size_t i = 0; i < c.count; i++) assert_point(&c.rows[i].point, (int64_t)i + 1, c.rows[i].attempt);
    next = (int64_t)c.count + 1;
    pl_curve_free(&c);
  }
  assert_true(next > 1);
  munmap((void *)(uintptr_t)reached, sizeof *reached);
}

/* Half of a record fits: it is cut off again, and when there is room the run goes on. */
static int full_disk(void *self, int number) {
  const char *path = self;
  (void)number;
  pl_journal *j;
  pl_err e = {0};
  signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small = {HEADER + 5 * RECORD + RECORD / 2, RLIM_INFINITY}, large = {1 << 20, RLIM_INFINITY};
  if (pl_journal_open(path, &j, &e) != PL_OK || setrlimit(RLIMIT_FSIZE, &small) != 0) return 1;
  for (int64_t step = 1; step <= 3; step++) {
    const pl_point p = point_at(step, 1);
    if (pl_journal_write(j, &p, &e) != PL_OK) return 2;
  }
  const pl_point p = point_at(4, 1);
  if (pl_journal_write(j, &p, &e) != PL_FAIL || !strstr(e.text, path) || !strstr(e.text, "cannot be written")) return 3;
  pl_curve c;
  if (pl_curve_read(path, &c, NULL) != PL_OK || c.count != 3 || c.damaged != 0) return 4;
  pl_curve_free(&c);
  if (setrlimit(RLIMIT_FSIZE, &large) != 0 || pl_journal_write(j, &p, NULL) != PL_OK) return 5;
  pl_journal_close(j);
  if (pl_curve_read(path, &c, NULL) != PL_OK || c.count != 4 || c.damaged != 0) return 6;
  pl_curve_free(&c);
  return 0;
}

static void full_disk_is_a_failure_that_leaves_whole_records(void **state) {
  char path[256];
  pl_journal *j;
  pl_err e = {0};
  assert_int_equal(fork_all(1, full_disk, in_temp(state, "journal", path)), 0);
  assert_int_equal(pl_journal_open("/dev/full", &j, &e), PL_FAIL);
  assert_says(&e, "/dev/full");
  e = (pl_err){0};
  write_bytes(in_temp(state, "file", path), "x", 1);
  assert_int_equal(pl_journal_open(in_temp(state, "file/journal", path), &j, &e), PL_FAIL);
  assert_says(&e, "file/journal");
}

static void sync_gives_the_length_and_open_the_one_found(void **state) {
  char path[256], *bytes;
  uint64_t length;
  pl_journal *j;
  in_temp(state, "journal", path);
  assert_int_equal(pl_journal_open(path, &j, NULL), PL_OK);
  assert_int_equal(pl_journal_length(j), HEADER);
  const pl_point p = point_at(1, 1);
  assert_int_equal(pl_journal_write(j, &p, NULL), PL_OK);
  assert_int_equal(pl_journal_sync(j, &length, NULL), PL_OK);
  pl_journal_close(j);
  assert_int_equal(length, read_bytes(path, &bytes));
  pl_free(bytes);
  assert_int_equal(pl_journal_open(path, &j, NULL), PL_OK);
  assert_int_equal(pl_journal_length(j), length);
  assert_int_equal(pl_journal_attempt(j), 2);
  pl_journal_close(j);
}

#define IN_TEMP(test) cmocka_unit_test_setup_teardown(test, make_temp, remove_temp)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_TEMP(points_come_back),
      IN_TEMP(gathered_points_are_written_together),
      IN_TEMP(resume_has_no_point_twice),
      IN_TEMP(later_attempts_drop_what_lies_beyond_their_start),
      IN_TEMP(a_writer_of_an_older_attempt_does_not_count),
      IN_TEMP(torn_tail_is_cut_at_every_length),
      IN_TEMP(torn_beginning_starts_over),
      IN_TEMP(flipped_bytes_are_found_and_the_others_survive),
      IN_TEMP(other_versions_and_other_files_are_refused),
      IN_TEMP(journals_with_fewer_series_are_read_and_continued),
      IN_TEMP(journals_with_more_series_are_refused),
      IN_TEMP(killed_writers_lose_at_most_the_last_record),
      IN_TEMP(full_disk_is_a_failure_that_leaves_whole_records),
      IN_TEMP(sync_gives_the_length_and_open_the_one_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
