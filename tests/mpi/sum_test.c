/* Sums over processes: the bits of one process that adds in order. */
#include "tests/mpi/mpi_rig.h"

enum { RANKS = 8 };

/* Of very different size, so that rounding depends on the order. */
static void fill(pl_real *x, size_t n, size_t rank, size_t round) {
  for (size_t i = 0; i < n; i++) {
    uint64_t k = (i * 2654435761u + rank * 40503u + round * 977u) % 1000003u;
    x[i] = (pl_real)((double)k / 1000003.0 - 0.5) * (pl_real)((k % 3) * (k % 3) * 1000 + 1);
  }
}

/* ((a0 + a1) + a2) ... over the list. */
static void expected_sum(pl_real *sum, pl_real *part, size_t n, const size_t *ranks, size_t count, size_t round) {
  fill(sum, n, ranks[0], round);
  for (size_t r = 1; r < count; r++) {
    fill(part, n, ranks[r], round);
    for (size_t i = 0; i < n; i++) sum[i] += part[i];
  }
}

typedef struct bench {
  pl_device *device;
  pl_real *array, *expected, *part;
} bench;

static bench open_bench(const char *device, size_t n) {
  bench b = {.device = open_device(device)};
  pl_err e = {0};
  void *memory = NULL;
  must(b.device->ops->alloc(b.device, n * sizeof(pl_real), "a test", &memory, &e), &e);
  b.array = memory;
  b.expected = take(n, sizeof(pl_real));
  b.part = take(n, sizeof(pl_real));
  return b;
}

static void close_bench(bench *b) {
  b->device->ops->free(b->device, b->array);
  pl_free(b->expected);
  pl_free(b->part);
  pl_device_close(b->device);
}

static pl_sum *open_sum(const bench *b, const size_t *ranks, size_t count, size_t n) {
  pl_err e = {0};
  pl_sum *s = NULL;
  must(world->type->sum_open(world, b->device, ranks, count, n, &s, &e), &e);
  return s;
}

static void finish(pl_sum *s) {
  pl_err e = {0};
  for (bool ready = false; !ready;) must(world->type->sum_ready(s, &ready, &e), &e);
}

static void check_sums(const bench *b, pl_sum *s, const size_t *ranks, size_t count, size_t n, size_t rounds) {
  for (size_t round = 0; round < rounds; round++) {
    pl_err e = {0};
    fill(b->array, n, world->rank, round);
    must(world->type->sum_begin(s, b->array, &e), &e);
    finish(s);
    expected_sum(b->expected, b->part, n, ranks, count, round);
    assert_memory_equal(b->array, b->expected, n * sizeof(pl_real));
  }
}

static size_t everybody(size_t *ranks) {
  for (size_t r = 0; r < world->size; r++) ranks[r] = r;
  return world->size;
}

/* Of the last size a slice of two or three ranks has more blocks than lanes. */
static void sums_have_the_bits_of_one_process(void **state) {
  (void)state;
  static const size_t sizes[] = {1, 7, 100003, 1500001};
  static const char *const devices[] = {"paranoid", "cpu"};
  size_t ranks[RANKS], count = everybody(ranks);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    bench b = open_bench(devices[i % 2], sizes[i]);
    pl_sum *s = open_sum(&b, ranks, count, sizes[i]);
    check_sums(&b, s, ranks, count, sizes[i], sizes[i] < 1000000 ? 3 : 1);
    world->type->sum_close(s);
    close_bench(&b);
  }
}

/* The list is not in the order of the ranks; its order is what counts. */
static void the_list_gives_the_order(void **state) {
  (void)state;
  enum { N = 100003 };
  size_t ranks[RANKS], other[RANKS], count = everybody(other);
  for (size_t r = 0; r < count; r++) ranks[r] = count - 1 - r;
  bench b = open_bench("cpu", N);
  pl_sum *s = open_sum(&b, ranks, count, N);
  check_sums(&b, s, ranks, count, N, 1);
  expected_sum(b.expected, b.part, N, other, count, 0);
  if (count > 2) assert_memory_not_equal(b.array, b.expected, N * sizeof(pl_real)); /* the data can tell */
  world->type->sum_close(s);
  close_bench(&b);
}

/* Even and odd ranks apart, and at the same time everybody: as with replicas whose first and last stage are tied. */
static void sums_of_some_run_beside_each_other(void **state) {
  (void)state;
  enum { N = 30011 };
  size_t all[RANKS], some[RANKS], count = everybody(all), own = 0;
  for (size_t r = world->rank % 2; r < world->size; r += 2) some[own++] = r;
  bench a = open_bench("cpu", N), b = open_bench("cpu", N);
  pl_sum *s = open_sum(&a, some, own, N), *t = open_sum(&b, all, count, N);
  pl_err e = {0};
  fill(a.array, N, world->rank, 1);
  fill(b.array, N, world->rank, 2);
  must(world->type->sum_begin(world->rank % 3 ? s : t, world->rank % 3 ? a.array : b.array, &e), &e);
  must(world->type->sum_begin(world->rank % 3 ? t : s, world->rank % 3 ? b.array : a.array, &e), &e);
  finish(s);
  expected_sum(a.expected, a.part, N, some, own, 1);
  assert_memory_equal(a.array, a.expected, N * sizeof(pl_real));
  finish(t);
  expected_sum(b.expected, b.part, N, all, count, 2);
  assert_memory_equal(b.array, b.expected, N * sizeof(pl_real));
  world->type->sum_close(s);
  world->type->sum_close(t);
  close_bench(&a);
  close_bench(&b);
}

/* Rank 0 asks only whether anything has failed, and then waits in an agreement: neither stops the sum. */
static void others_calls_move_a_sum_on(void **state) {
  (void)state;
  enum { N = 700001 };
  size_t ranks[RANKS], count = everybody(ranks);
  bench b = open_bench("cpu", N);
  pl_sum *s = open_sum(&b, ranks, count, N);
  pl_err e = {0};
  fill(b.array, N, world->rank, 0);
  must(world->type->sum_begin(s, b.array, &e), &e);
  for (int i = 0; i < 3 && world->rank == 0; i++) must(world->type->progress(world, &e), &e);
  if (world->rank > 0) finish(s); /* before it comes to the agreement */
  meet();
  finish(s);
  expected_sum(b.expected, b.part, N, ranks, count, 0);
  assert_memory_equal(b.array, b.expected, N * sizeof(pl_real));
  world->type->sum_close(s);
  close_bench(&b);
}

static void one_sum_at_a_time(void **state) {
  (void)state;
  enum { N = 1000 };
  size_t ranks[RANKS], count = everybody(ranks);
  bench b = open_bench("cpu", N);
  pl_sum *s = open_sum(&b, ranks, count, N);
  pl_err e = {0};
  must(world->type->sum_begin(s, b.array, &e), &e);
  if (count > 1) assert_int_equal(world->type->sum_begin(s, b.array, &e), PL_FAIL);
  finish(s);
  world->type->sum_close(s);
  world->type->sum_close(NULL);
  close_bench(&b);
}

/* One that the others never begin; nothing hangs. */
static void a_sum_can_be_closed_early(void **state) {
  (void)state;
  enum { N = 1000 };
  size_t ranks[RANKS], count = everybody(ranks);
  bench b = open_bench("cpu", N);
  pl_sum *s = open_sum(&b, ranks, count, N);
  pl_err e = {0};
  if (world->rank == 0) must(world->type->sum_begin(s, b.array, &e), &e);
  world->type->sum_close(s);
  meet();
  close_bench(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_have_the_bits_of_one_process),
      cmocka_unit_test(the_list_gives_the_order),
      cmocka_unit_test(sums_of_some_run_beside_each_other),
      cmocka_unit_test(others_calls_move_a_sum_on),
      cmocka_unit_test(one_sum_at_a_time),
      cmocka_unit_test(a_sum_can_be_closed_early),
  };
  return RIG_RUN(tests);
}
