/* Everybody's numbers, round after round. */
#include "tests/mpi/mpi_rig.h"

enum { RANKS = 16, MOST = 4000 };

static size_t counts[RANKS], total;

/* Rank 1 gives nothing, rank 2 more than Open MPI sends without being asked for it. */
static void set_counts(void) {
  total = 0;
  for (size_t r = 0; r < world->size; r++) {
    counts[r] = r == 1 ? 0 : r == 2 ? MOST : 3 * r + 2;
    total += counts[r];
  }
}

static double number(size_t round, size_t rank, size_t i) {
  return (double)round * 1e6 + (double)rank * 1e4 + (double)i + 0.25;
}

static pl_gather *open_gather(size_t window) {
  pl_err e = {0};
  pl_gather *g = NULL;
  must(world->type->gather_open(world, counts, window, &g, &e), &e);
  return g;
}

static pl_status post(pl_gather *g, size_t round, pl_err *e) {
  double own[MOST];
  for (size_t i = 0; i < counts[world->rank]; i++) own[i] = number(round, world->rank, i);
  pl_status st = world->type->gather_post(g, own, e);
  memset(own, 0xff, sizeof own); /* it is the caller's again */
  return st;
}

static void check_round(const double *all, size_t round) {
  size_t at = 0;
  for (size_t r = 0; r < world->size; r++)
    for (size_t i = 0; i < counts[r]; i++)
      if (all[at++] != number(round, r, i))
        fail_msg("rank %zu, round %zu: number %zu of rank %zu", world->rank, round, i, r);
}

static const double *await(pl_gather *g) {
  pl_err e = {0};
  const double *all = NULL;
  while (!(all = world->type->gather_next(g))) must(world->type->progress(world, &e), &e);
  return all;
}

static void rounds_come_in_the_order_of_the_posts(void **state) {
  (void)state;
  enum { WINDOW = 3, ROUNDS = 20 };
  set_counts();
  pl_gather *g = open_gather(WINDOW);
  assert_null(world->type->gather_next(g));
  size_t posted = 0;
  for (size_t round = 0; round < ROUNDS; round++) {
    pl_err e = {0};
    while (posted < ROUNDS && posted < round + WINDOW) must(post(g, posted++, &e), &e);
    const double *all = await(g);
    check_round(all, round);
    assert_ptr_equal(world->type->gather_next(g), all); /* until it is popped */
    world->type->gather_pop(g);
  }
  assert_null(world->type->gather_next(g));
  world->type->gather_close(g);
}

static void no_more_rounds_than_the_window(void **state) {
  (void)state;
  set_counts();
  pl_gather *g = open_gather(2);
  pl_err e = {0};
  must(post(g, 0, &e), &e);
  must(post(g, 1, &e), &e);
  assert_int_equal(post(g, 2, &e), PL_FAIL);
  assert_non_null(strstr(e.text, "2 rounds"));
  check_round(await(g), 0); /* the refused one did no harm */
  world->type->gather_pop(g);
  e = (pl_err){0};
  must(post(g, 2, &e), &e);
  for (size_t round = 1; round < 3; round++) {
    check_round(await(g), round);
    world->type->gather_pop(g);
  }
  world->type->gather_close(g);
}

/* A round is there only when the last rank has posted. */
static void a_round_waits_for_everybody(void **state) {
  (void)state;
  set_counts();
  pl_gather *g = open_gather(1);
  pl_err e = {0};
  const bool late = world->rank + 1 == world->size && world->size > 1;
  if (!late) must(post(g, 7, &e), &e);
  if (!late && world->size > 1) assert_null(world->type->gather_next(g));
  meet();
  if (late) must(post(g, 7, &e), &e);
  check_round(await(g), 7);
  world->type->gather_pop(g);
  world->type->gather_close(g);
}

/* Ranks may post the rounds of two gathers in different orders. */
static void gathers_do_not_mix(void **state) {
  (void)state;
  set_counts();
  pl_gather *g[] = {open_gather(1), open_gather(1)};
  pl_err e = {0};
  for (size_t i = 0; i < 2; i++) {
    size_t which = (i + world->rank) % 2;
    must(post(g[which], 10 + which, &e), &e);
  }
  for (size_t i = 0; i < 2; i++) {
    check_round(await(g[i]), 10 + i);
    world->type->gather_pop(g[i]);
    world->type->gather_close(g[i]);
  }
}

/* One that nobody else joins; nothing hangs. */
static void a_gather_can_be_closed_early(void **state) {
  (void)state;
  set_counts();
  pl_gather *g = open_gather(1);
  pl_err e = {0};
  if (world->rank == 0) must(post(g, 0, &e), &e);
  world->type->gather_close(g);
  world->type->gather_close(NULL);
  meet();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rounds_come_in_the_order_of_the_posts), cmocka_unit_test(no_more_rounds_than_the_window),
      cmocka_unit_test(a_round_waits_for_everybody),           cmocka_unit_test(gathers_do_not_mix),
      cmocka_unit_test(a_gather_can_be_closed_early),
  };
  return RIG_RUN(tests);
}
