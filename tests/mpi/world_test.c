/* Agreeing, sharing and measuring. */
#include "tests/mpi/mpi_rig.h"

static void everybody_has_a_place(void **state) {
  (void)state;
  assert_true(world->size >= 1 && world->rank < world->size);
  assert_true(pl_world_launched());
}

static void all_are_well(void **state) {
  (void)state;
  pl_err e = {0};
  assert_int_equal(world->type->agree(world, PL_OK, &e), PL_OK);
  assert_int_equal(e.status, PL_OK);
  assert_string_equal(e.text, "");
}

/* Every rank alone, and every rank together with all after it: the lowest decides. */
static void the_lowest_failure_is_everybodys(void **state) {
  (void)state;
  static const pl_status statuses[] = {PL_BAD, PL_FAIL, PL_STOPPED, PL_NOTHING};
  for (size_t failing = 0; failing < world->size; failing++)
    for (int others = 0; others < 2; others++) {
      pl_err e = {0};
      char expected[64];
      pl_status mine = PL_OK;
      if (world->rank == failing || (others && world->rank > failing))
        mine = pl_fail(&e, statuses[world->rank % 4], "rank %zu has no corpus", world->rank);
      snprintf(expected, sizeof expected, "rank %zu has no corpus", failing);
      assert_int_equal(world->type->agree(world, mine, &e), statuses[failing % 4]);
      assert_int_equal(e.status, statuses[failing % 4]);
      assert_string_equal(e.text, expected);
    }
  assert_int_equal(world->type->agree(world, PL_OK, NULL), PL_OK);
  assert_int_equal(world->type->agree(world, world->rank + 1 == world->size ? PL_BAD : PL_OK, NULL), PL_BAD);
}

static char byte_of(size_t i) { return (char)(i * i % 251); }

/* Texts of rank 0 with every byte, also 0; the others hold something else before. */
static void the_text_of_rank_0_is_shared(void **state) {
  (void)state;
  static const size_t lengths[] = {0, 1, 4096, 3000000};
  for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
    for (int before = 0; before < 2; before++) {
      pl_err e = {0};
      pl_str text = {0};
      if (world->rank == 0)
        for (size_t i = 0; i < lengths[l]; i++) pl_str_append_bytes(&text, &(char){byte_of(i)}, 1);
      else if (before)
        pl_str_printf(&text, "what rank %zu had", world->rank);
      must(world->type->share(world, &text, &e), &e);
      assert_int_equal(text.length, lengths[l]);
      assert_int_equal(pl_str_text(&text)[text.length], '\0');
      for (size_t i = 0; i < text.length; i++) assert_int_equal(text.text[i], byte_of(i));
      pl_str_append(&text, "!"); /* it can grow on */
      must(pl_str_check(&text, &e), &e);
      assert_int_equal(text.length, lengths[l] + 1);
      pl_str_free(&text);
    }
}

static void a_text_that_could_not_be_written_fails_everywhere(void **state) {
  (void)state;
  pl_err e = {0};
  pl_str text = {.failed = world->rank == 0};
  assert_int_equal(world->type->share(world, &text, &e), PL_FAIL);
  assert_non_null(strstr(e.text, "out of memory"));
  pl_str_free(&text);
  meet();
}

static void waiting_is_measured(void **state) {
  (void)state;
  double before = world->waited;
  meet();
  assert_true(world->waited > before);
  before = world->waited;
  pl_err e = {0};
  must(world->type->progress(world, &e), &e);
  assert_true(world->waited > before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(everybody_has_a_place),
      cmocka_unit_test(all_are_well),
      cmocka_unit_test(the_lowest_failure_is_everybodys),
      cmocka_unit_test(the_text_of_rank_0_is_shared),
      cmocka_unit_test(a_text_that_could_not_be_written_fails_everywhere),
      cmocka_unit_test(waiting_is_measured),
  };
  return RIG_RUN(tests);
}
