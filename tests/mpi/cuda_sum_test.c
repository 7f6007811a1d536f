/* Sums over processes of arrays on GPUs: the bits of one process that adds in order. */
#include "tests/mpi/cuda_rig.h"

enum { RANKS = 8 };

/* Of very different size, so that rounding depends on the order. */
static void fill(pl_real *x, size_t n, size_t rank, size_t round) {
  for (size_t i = 0; i < n; i++) {
    const uint64_t k = (i * 2654435761u + rank * 40503u + round * 977u) % 1000003u;
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
  pl_transport *transport;
  size_t n;
  pl_real *array; /* on the device */
  pl_real *host, *expected, *part;
} bench;

/* The first transport chooses how arrays travel. */
static bench open_bench(size_t n) {
  bench b = {.device = open_gpu(), .n = n};
  static const pl_schedule schedule = {.stages = 1};
  static const pl_schedule_facts facts;
  const pl_grid grid = {.stages = 1, .replicas = world->size, .ranks = 1, .size = world->size};
  const pl_transport_args args = {.device = b.device, .schedule = &schedule, .facts = &facts, .size = 1};
  pl_err e = {0};
  must(world->type->transport(world, &grid, &args, &b.transport, &e), &e);
  b.array = take_on(b.device, n);
  b.host = take(n, sizeof(pl_real));
  b.expected = take(n, sizeof(pl_real));
  b.part = take(n, sizeof(pl_real));
  return b;
}

static void close_bench(bench *b) {
  b->transport->type->destroy(b->transport);
  b->device->ops->free(b->device, b->array);
  pl_free(b->host);
  pl_free(b->expected);
  pl_free(b->part);
  close_gpu(b->device);
}

static pl_sum *open_sum(const bench *b, const size_t *ranks, size_t count) {
  pl_err e = {0};
  pl_sum *s = NULL;
  must(world->type->sum_open(world, b->device, ranks, count, b->n, &s, &e), &e);
  return s;
}

static void begin(const bench *b, pl_sum *s, size_t round) {
  pl_err e = {0};
  fill(b->host, b->n, world->rank, round);
  write_on(b->device, b->array, b->host, b->n);
  must(world->type->sum_begin(s, b->array, &e), &e);
}

static void finish(pl_sum *s) {
  pl_err e = {0};
  for (bool ready = false; !ready;) {
    must(world->type->progress(world, &e), &e);
    must(world->type->sum_ready(s, &ready, &e), &e);
  }
}

static void expect_sum(const bench *b, const size_t *ranks, size_t count, size_t round) {
  expected_sum(b->expected, b->part, b->n, ranks, count, round);
  read_from(b->device, b->host, b->array, b->n);
  assert_memory_equal(b->host, b->expected, b->n * sizeof(pl_real));
}

static size_t everybody(size_t *ranks) {
  for (size_t r = 0; r < world->size; r++) ranks[r] = r;
  return world->size;
}

/* Of the last size a slice of two ranks has several blocks, by either way. */
static void sums_have_the_bits_of_one_process(void **state) {
  (void)state;
  static const size_t sizes[] = {1, 7, 10007, 4400001};
  size_t ranks[RANKS], count = everybody(ranks);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    bench b = open_bench(sizes[i]);
    pl_sum *s = open_sum(&b, ranks, count);
    for (size_t round = 0; round < (i < 3 ? 3 : 1); round++) {
      begin(&b, s, round);
      finish(s);
      expect_sum(&b, ranks, count, round);
    }
    world->type->sum_close(s);
    close_bench(&b);
    expect_way();
  }
}

/* The list is not in the order of the ranks; its order is what counts. */
static void the_list_gives_the_order(void **state) {
  (void)state;
  size_t ranks[RANKS] = {0}, other[RANKS] = {0};
  const size_t count = everybody(other);
  for (size_t r = 0; r < count; r++) ranks[r] = count - 1 - r;
  bench b = open_bench(10007);
  pl_sum *s = open_sum(&b, ranks, count);
  begin(&b, s, 0);
  finish(s);
  expect_sum(&b, ranks, count, 0);
  expected_sum(b.expected, b.part, b.n, other, count, 0);
  if (count > 2) assert_memory_not_equal(b.host, b.expected, b.n * sizeof(pl_real)); /* the data can tell */
  world->type->sum_close(s);
  close_bench(&b);
}

/* Even and odd ranks apart, and at the same time everybody, begun in different orders. */
static void sums_of_some_run_beside_each_other(void **state) {
  (void)state;
  size_t all[RANKS], some[RANKS], count = everybody(all), own = 0;
  for (size_t r = world->rank % 2; r < world->size; r += 2) some[own++] = r;
  bench a = open_bench(3001), b = open_bench(3001);
  pl_sum *s = open_sum(&a, some, own), *t = open_sum(&b, all, count);
  const bool first = world->rank % 3 > 0;
  begin(first ? &a : &b, first ? s : t, first);
  begin(first ? &b : &a, first ? t : s, !first);
  for (bool ready[2] = {false, false}; !ready[0] || !ready[1];) {
    pl_err e = {0};
    if (!ready[0]) must(world->type->sum_ready(s, &ready[0], &e), &e);
    if (!ready[1]) must(world->type->sum_ready(t, &ready[1], &e), &e);
  }
  expect_sum(&a, some, own, 1);
  expect_sum(&b, all, count, 0);
  world->type->sum_close(s);
  world->type->sum_close(t);
  close_bench(&a);
  close_bench(&b);
  expect_way();
}

/* A GPU would be waiting for the others' hosts. */
static void nothing_is_exchanged_before_all_have_begun(void **state) {
  (void)state;
  size_t ranks[RANKS], count = everybody(ranks);
  bench b = open_bench(1000);
  pl_sum *s = open_sum(&b, ranks, count);
  pl_err e = {0};
  const bool last = world->rank + 1 == world->size;
  bool ready = false;
  if (!last) begin(&b, s, 0);
  for (int again = 0; again < 20 && !last; again++) {
    must(world->type->sum_ready(s, &ready, &e), &e);
    assert_true(!ready && pl_fake_nccl_under_way() == 0);
  }
  meet();
  if (last) begin(&b, s, 0);
  finish(s);
  expect_sum(&b, ranks, count, 0);
  world->type->sum_close(s);
  close_bench(&b);
}

static void one_sum_at_a_time(void **state) {
  (void)state;
  size_t ranks[RANKS], count = everybody(ranks);
  bench b = open_bench(1000);
  pl_sum *s = open_sum(&b, ranks, count);
  pl_err e = {0};
  begin(&b, s, 0);
  assert_int_equal(world->type->sum_begin(s, b.array, &e), PL_FAIL);
  finish(s);
  expect_sum(&b, ranks, count, 0);
  world->type->sum_close(s);
  world->type->sum_close(NULL);
  close_bench(&b);
}

/* One that the others never begin, and one that they do not finish; nothing hangs. */
static void a_sum_can_be_closed_early(void **state) {
  (void)state;
  size_t ranks[RANKS], count = everybody(ranks);
  for (int all = 0; all < 2; all++) {
    bench b = open_bench(1000);
    pl_sum *s = open_sum(&b, ranks, count);
    if (all || world->rank == 0) begin(&b, s, 0);
    world->type->sum_close(s);
    close_bench(&b);
    expect_way();
  }
}

int main(int count, char **argument) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_have_the_bits_of_one_process),
      cmocka_unit_test(the_list_gives_the_order),
      cmocka_unit_test(nothing_is_exchanged_before_all_have_begun),
      cmocka_unit_test(sums_of_some_run_beside_each_other),
      cmocka_unit_test(one_sum_at_a_time),
      cmocka_unit_test(a_sum_can_be_closed_early),
  };
  return rig_choose(count, argument) ? RIG_RUN(tests) : 2;
}
