/* The journal of the stages' times: torn and damaged, killed writers, attempts, the HDF5 group made of it. */
#include "results_help.h"

#include <sys/mman.h>

#include "results/curves.h"
#include "results/journal_format.h"

enum { STAGES = 6, RECORD = PL_RECORD_SIZE(3 * STAGES), HEADER = sizeof(pl_journal_header) };

/* Every figure of every step, stage and attempt is another one. */
static void times_at(int64_t step, int64_t attempt, size_t stages, pl_stage_times *out) {
  for (size_t p = 0; p < stages; p++) {
    double at = (double)step + 0.01 * (double)p + 0.0001 * (double)attempt;
    out[p] = (pl_stage_times){.busy = at, .communication = at + 0.001, .idle = at + 0.002};
  }
}

static void write_step(pl_journal *j, int64_t step, size_t stages) {
  pl_stage_times *times = calloc(stages, sizeof *times);
  assert_non_null(times);
  times_at(step, pl_journal_attempt(j), stages, times);
  assert_int_equal(pl_times_write(j, step, times, NULL), PL_OK);
  free(times);
}

static void write_attempt(const char *path, int64_t attempt, size_t stages, int64_t first, int64_t last) {
  pl_journal *j;
  pl_err e = {0};
  if (pl_times_open(path, stages, attempt, &j, &e) != PL_OK) fail_msg("%s", e.text);
  for (int64_t step = first; step <= last; step++) write_step(j, step, stages);
  pl_journal_close(j);
}

static pl_times read_times(const char *path) {
  pl_times t;
  pl_err e = {0};
  if (pl_times_read(path, &t, &e) != PL_OK) fail_msg("%s", e.text);
  return t;
}

static void assert_row(const pl_times *t, size_t row, int64_t step, int64_t attempt) {
  pl_stage_times *expected = calloc(t->stages, sizeof *expected);
  assert_non_null(expected);
  times_at(step, attempt, t->stages, expected);
  assert_int_equal(t->steps[row], step);
  assert_int_equal(t->attempts_of[row], attempt);
  assert_memory_equal(&t->times[row * t->stages], expected, t->stages * sizeof *expected);
  free(expected);
}

/* Also records that are larger than what is read at a time. */
static void times_come_back(void **state) {
  static const size_t stages[] = {2, STAGES, 64, 4096};
  char path[256];
  in_temp(state, "times", path);
  pl_times t = read_times(path);
  assert_true(t.count == 0 && t.stages == 0 && t.attempts == 0);
  for (size_t k = 0; k < 4; k++) {
    const int64_t last = stages[k] > 64 ? 5 : 400;
    write_attempt(path, 1, stages[k], 1, last);
    t = read_times(path);
    assert_int_equal(t.stages, stages[k]);
    assert_int_equal(t.count, last);
    assert_int_equal(t.damaged, 0);
    for (size_t i = 0; i < t.count; i++) assert_row(&t, i, (int64_t)i + 1, 1);
    pl_times_free(&t);
    assert_int_equal(unlink(path), 0);
  }
}

/* Of a run whose second attempt died before its first record. */
static void attempts_are_those_of_the_run(void **state) {
  char path[256];
  in_temp(state, "times", path);
  write_attempt(path, 1, STAGES, 1, 73);
  write_attempt(path, 3, STAGES, 61, 100);
  pl_times t = read_times(path);
  assert_int_equal(t.attempts, 3);
  assert_int_equal(t.count, 100);
  for (size_t i = 0; i < 100; i++) assert_row(&t, i, (int64_t)i + 1, i < 60 ? 1 : 3);
  pl_times_free(&t);
  write_attempt(path, 2, STAGES, 50, 50); /* never two attempts of one number */
  t = read_times(path);
  assert_int_equal(t.attempts, 4);
  assert_int_equal(t.count, 50);
  pl_times_free(&t);
}

static void torn_and_damaged_records_cost_themselves_alone(void **state) {
  char path[256], *bytes;
  in_temp(state, "times", path);
  write_attempt(path, 1, STAGES, 1, 4);
  size_t length = read_bytes(path, &bytes);
  assert_int_equal(length, HEADER + 6 * RECORD);
  for (size_t cut = length - RECORD; cut < length; cut++) {
    write_bytes(path, bytes, cut);
    pl_times t = read_times(path);
    assert_int_equal(t.count, 3);
    assert_int_equal(t.damaged, cut > length - RECORD);
    pl_times_free(&t);
    write_attempt(path, 2, STAGES, 4, 4);
    t = read_times(path);
    assert_int_equal(t.damaged, 0);
    assert_int_equal(t.count, 4);
    assert_row(&t, 3, 4, 2);
    pl_times_free(&t);
  }
  for (size_t at = 0; at < length; at++) {
    bytes[at] ^= 16;
    write_bytes(path, bytes, length);
    bytes[at] ^= 16;
    pl_times t = read_times(path);
    assert_int_equal(t.damaged, 1);
    assert_int_equal(t.stages, STAGES);
    assert_int_equal(t.count, at < HEADER + 2 * RECORD ? 4 : 3);
    pl_times_free(&t);
  }
  pl_free(bytes);
}

static void write_until_killed(const char *path, int64_t from, volatile int64_t *reached) {
  pl_journal *j;
  if (pl_times_open(path, STAGES, 1, &j, NULL) != PL_OK) _exit(1);
  for (int64_t step = from;; step++) {
    write_step(j, step, STAGES);
    *reached = step;
  }
}

static void killed_writers_lose_at_most_the_last_record(void **state) {
  char path[256];
  int64_t next = 1;
  in_temp(state, "times", path);
  volatile int64_t *reached = mmap(NULL, sizeof *reached, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal((const void *)(uintptr_t)reached, MAP_FAILED);
  for (int kills = 0; kills < 20; kills++) {
    *reached = next - 1;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) write_until_killed(path, next, reached);
    usleep((useconds_t)(200 + 137 * kills));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    pl_times t = read_times(path);
    assert_true(t.damaged <= 1);
    assert_true((int64_t)t.count == *reached || (int64_t)t.count == *reached + 1);
    for (size_t i = 0; i < t.count; i++) assert_row(&t, i, (int64_t)i + 1, t.attempts_of[i]);
    next = (int64_t)t.count + 1;
    pl_times_free(&t);
  }
  munmap((void *)(uintptr_t)reached, sizeof *reached);
}

static void other_files_are_refused(void **state) {
  char path[256], garbage[20000];
  pl_journal *j;
  pl_times t;
  pl_err e = {0};
  write_attempt(in_temp(state, "times", path), 1, 4, 1, 3);
  assert_int_equal(pl_times_open(path, STAGES, 2, &j, &e), PL_FAIL);
  assert_says(&e, "12 values in a record; allowed: the 18 of this run");
  assert_null(j);
  t = read_times(path);
  assert_true(t.count == 3 && t.attempts == 1); /* left as it was */
  pl_times_free(&t);
  for (size_t i = 0; i < sizeof garbage; i++) garbage[i] = (char)(i * i + 31 * i);
  write_bytes(path, garbage, sizeof garbage);
  e = (pl_err){0};
  assert_int_equal(pl_times_read(path, &t, &e), PL_FAIL);
  assert_says(&e, "is no journal of stage times");
}

static void bubbles_are_shares_of_all_time(void **state) {
  (void)state;
  pl_stage_times of[] = {{3, 0.5, 0.5}, {1, 1, 2}};
  int64_t steps[] = {8}, attempts[] = {1};
  const pl_times t = {.stages = 2, .count = 1, .steps = steps, .attempts_of = attempts, .times = of};
  pl_stage_times total = pl_times_total(&t);
  assert_true(total.busy == 4 && total.communication == 1.5 && total.idle == 2.5);
  assert_true(pl_stage_times_bubble(&total) == 0.5);
  assert_true(isnan(pl_stage_times_bubble(&(pl_stage_times){0})));
}

static const char read_back[] =
    "g = f[\"stages\"]\nprint(sorted(g), g[\"step\"].dtype, g[\"busy\"].dtype, g[\"busy\"].shape)\n"
    "s = np.arange(1, 11)[:, None]; p = np.arange(6)[None, :]; a = np.where(s < 8, 1, 2)\n"
    "assert (g[\"step\"][:] == s[:, 0]).all() and (g[\"attempt\"][:] == a[:, 0]).all()\n"
    "b = s + 0.01 * p + 0.0001 * a\n"
    "assert (g[\"busy\"][:] == b).all() and (g[\"communication\"][:] == b + 0.001).all()\n"
    "assert (g[\"idle\"][:] == b + 0.002).all()\n"
    "for n in \"busy\", \"communication\", \"idle\": print(g[n].attrs[\"unit\"], g[n].attrs[\"description\"])\n"
    "for n in \"train/loss\", \"seconds\", \"delay\": print(f[n].attrs[\"unit\"], f[n].attrs[\"description\"])\n"
    "print(\"unit\" in f[\"lr\"].attrs, f[\"bubble\"].attrs[\"description\"])\n";

static void h5py_reads_the_times(void **state) {
  char path[256], command[4096], text[2048] = "";
  pl_run_config config;
  pl_curve c = {0};
  pl_err e = {0};
  pl_json *document = toy_run("muon", 0.02, 7, &config);
  in_temp(state, "times", path);
  write_attempt(path, 1, STAGES, 1, 9);
  write_attempt(path, 2, STAGES, 8, 10);
  assert_int_equal(pl_times_read(path, &c.times, &e), PL_OK);
  in_temp(state, "curves.h5", path);
  assert_int_equal(pl_curves_write(path, &c, document, 1, &e), PL_OK);
  pl_curve_free(&c);
  pl_json_release(document);
  if (system("/usr/bin/python3 -c 'import h5py' 2>/dev/null") != 0) {
    print_message("no h5py for /usr/bin/python3: not read back by it\n");
    return;
  }
  snprintf(command, sizeof command,
           "/usr/bin/python3 -c 'import h5py, numpy as np, sys\nf = h5py.File(sys.argv[1], \"r\")\n%s' '%s' 2>&1",
           read_back, path);
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  text[fread(text, 1, sizeof text - 1, pipe)] = '\0';
  assert_int_equal(pclose(pipe), 0);
  assert_string_equal(text, "['attempt', 'busy', 'communication', 'idle', 'step'] int64 float64 (10, 6)\n"
                            "s time in which the stage computed, since its previous record\n"
                            "s time inside the transport, since the previous record\n"
                            "s time in which the stage waited, since its previous record\n"
                            "nats/token loss of the update's batch, at the weights it was evaluated on\n"
                            "s wall time of this attempt\n"
                            "updates measured: newest version minus version read, the largest over stages\n"
                            "False share of the processes' time since the last point in which they did not compute\n");
}

#define IN_TEMP(test) cmocka_unit_test_setup_teardown(test, make_temp, remove_temp)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_TEMP(times_come_back),
      IN_TEMP(attempts_are_those_of_the_run),
      IN_TEMP(torn_and_damaged_records_cost_themselves_alone),
      IN_TEMP(killed_writers_lose_at_most_the_last_record),
      IN_TEMP(other_files_are_refused),
      cmocka_unit_test(bubbles_are_shares_of_all_time),
      IN_TEMP(h5py_reads_the_times),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
