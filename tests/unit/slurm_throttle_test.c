/* Shares of a limit: whatever ends first, never more runs at once than allowed, and every array gets to run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "runners/launchers/slurm/throttle.h"

enum { MOST = 12 };

typedef struct field {
  pl_throttled arrays[MOST];
  bool after[MOST * MOST];
  size_t count;
} field;

static uint64_t seed = 1;

static int64_t below(int64_t n) {
  seed = seed * 6364136223846793005U + 1442695040888963407U;
  return (int64_t)((seed >> 33) % (uint64_t)n);
}

static int64_t at_once(const pl_throttled *a) {
  int64_t tasks = a->throttle > 0 && a->throttle < a->tasks ? a->throttle : a->tasks;
  return tasks * a->pack;
}

/* Runs at this moment: every array that waits for nothing uses its share. */
static int64_t running(const field *f) {
  int64_t sum = 0;
  for (size_t i = 0; i < f->count; i++) {
    bool waits = f->arrays[i].tasks == 0;
    for (size_t j = 0; j < i && !waits; j++) waits = f->arrays[i].after[j] && f->arrays[j].tasks > 0;
    if (!waits) sum += at_once(&f->arrays[i]);
  }
  return sum;
}

/* Arrays end in random order, a few tasks at a time, also (cancelled) before they may start. */
static void play(field *f, int64_t limit) {
  for (size_t left = f->count; left > 0;) {
    assert_true(running(f) <= limit);
    assert_true(running(f) > 0);
    pl_throttled *a = &f->arrays[below((int64_t)f->count)];
    if (a->tasks == 0) continue;
    a->tasks -= 1 + below(a->tasks);
    left -= a->tasks == 0;
  }
}

static void add(field *f, size_t count, int64_t limit, int64_t most_pack) {
  for (size_t i = 0; i < count && f->count < MOST; i++, f->count++) {
    int64_t pack = 1 + below(most_pack < limit ? most_pack : limit);
    f->arrays[f->count] = (pl_throttled){.tasks = 1 + below(40), .pack = pack, .after = f->after + f->count * MOST};
  }
}

static void never_more_than_the_limit(void **state) {
  (void)state;
  pl_err e = {0};
  for (int round = 0; round < 4000; round++) {
    field f = {0};
    int64_t limit = 1 + below(20), peak = 0;
    add(&f, (size_t)below(5), limit, 4);
    assert_int_equal(pl_throttle_share(limit, f.arrays, 0, f.count, &e), PL_OK);
    /* Some of it ran, then more is submitted, twice. */
    for (int more = 0; more < 2; more++) {
      size_t first = f.count;
      for (size_t i = 0; i < first; i++)
        if (below(3) == 0) f.arrays[i].tasks -= below(f.arrays[i].tasks);
      add(&f, 1 + (size_t)below(4), limit, 4);
      assert_int_equal(pl_throttle_share(limit, f.arrays, first, f.count, &e), PL_OK);
    }
    for (size_t i = 0; i < f.count; i++) assert_true(f.arrays[i].throttle >= 1);
    assert_int_equal(pl_throttle_peak(f.arrays, f.count, &peak, &e), PL_OK);
    assert_true(peak <= limit);
    play(&f, limit);
  }
}

/* The check itself must see too many: shares of another limit. */
static void the_check_sees_too_many(void **state) {
  (void)state;
  pl_err e = {0};
  field f = {0};
  add(&f, 4, 20, 1);
  for (size_t i = 0; i < 4; i++) f.arrays[i].tasks = 40;
  assert_int_equal(pl_throttle_share(20, f.arrays, 0, 4, &e), PL_OK);
  assert_int_equal(running(&f), 20);
  assert_true(running(&f) > 19);
}

static void shares_follow_the_number_of_tasks(void **state) {
  (void)state;
  pl_err e = {0};
  field f = {.count = 3};
  const int64_t tasks[] = {1000, 1000, 500};
  for (size_t i = 0; i < 3; i++)
    f.arrays[i] = (pl_throttled){.tasks = tasks[i], .pack = 1, .after = f.after + i * MOST};
  assert_int_equal(pl_throttle_share(64, f.arrays, 0, 3, &e), PL_OK);
  assert_int_equal(f.arrays[0].throttle + f.arrays[1].throttle + f.arrays[2].throttle, 64);
  assert_in_range(f.arrays[0].throttle, 25, 27);
  assert_in_range(f.arrays[2].throttle, 12, 14);
  for (size_t i = 0; i < MOST * MOST; i++) assert_false(f.after[i]);
}

static void arrays_without_a_slot_wait(void **state) {
  (void)state;
  pl_err e = {0};
  field f = {.count = 5};
  for (size_t i = 0; i < 5; i++) f.arrays[i] = (pl_throttled){.tasks = 10, .pack = 1, .after = f.after + i * MOST};
  assert_int_equal(pl_throttle_share(2, f.arrays, 0, 5, &e), PL_OK);
  assert_false(f.arrays[1].after[0]);
  assert_true(f.arrays[2].after[0]);
  assert_true(f.arrays[3].after[1]);
  assert_true(f.arrays[4].after[0] && f.arrays[4].after[2]); /* all of its lane, since one may be cancelled */
  assert_int_equal(running(&f), 2);
}

static void packed_tasks_count_their_runs(void **state) {
  (void)state;
  pl_err e = {0};
  field f = {.count = 2};
  f.arrays[0] = (pl_throttled){.tasks = 10, .pack = 4, .after = f.after};
  f.arrays[1] = (pl_throttled){.tasks = 10, .pack = 1, .after = f.after + MOST};
  assert_int_equal(pl_throttle_share(10, f.arrays, 0, 2, &e), PL_OK);
  assert_int_equal(running(&f), 10);
  assert_int_equal(f.arrays[0].throttle, 1 + (f.arrays[0].throttle == 2));
}

static void no_limit_means_no_throttle(void **state) {
  (void)state;
  pl_err e = {0};
  field f = {.count = 1, .arrays = {{.tasks = 10, .pack = 1, .throttle = 7, .after = f.after}}};
  assert_int_equal(pl_throttle_share(0, f.arrays, 0, 1, &e), PL_OK);
  assert_int_equal(f.arrays[0].throttle, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(never_more_than_the_limit),         cmocka_unit_test(the_check_sees_too_many),
      cmocka_unit_test(shares_follow_the_number_of_tasks), cmocka_unit_test(arrays_without_a_slot_wait),
      cmocka_unit_test(packed_tasks_count_their_runs),     cmocka_unit_test(no_limit_means_no_throttle),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
