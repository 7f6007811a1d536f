/* Which GPU a place of a pool gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "runners/launchers/gpus.h"

static const char *chosen(const pl_gpus *g, size_t place) {
  setenv("CUDA_VISIBLE_DEVICES", "untouched", 1);
  pl_gpus_choose(g, place);
  return getenv("CUDA_VISIBLE_DEVICES");
}

static void places_take_them_in_turn(void **state) {
  (void)state;
  static char list[] = "3,GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,0";
  const pl_gpus all = {.count = 2}, named = {.count = 3, .list = list}, fewer = {.count = 2, .list = list};
  assert_string_equal(chosen(&all, 0), "0");
  assert_string_equal(chosen(&all, 1), "1");
  assert_string_equal(chosen(&all, 2), "0");
  assert_string_equal(chosen(&named, 0), "3");
  assert_string_equal(chosen(&named, 1), "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6");
  assert_string_equal(chosen(&named, 5), "0");
  assert_string_equal(chosen(&fewer, 2), "3"); /* the list's last is not there */
}

static void without_gpus_nothing_is_changed(void **state) {
  (void)state;
  static char list[] = "0,1";
  const pl_gpus none = {0}, gone = {.list = list};
  assert_string_equal(chosen(&none, 1), "untouched");
  assert_string_equal(chosen(&gone, 1), "untouched");
}

static void they_are_named_as_they_are_chosen(void **state) {
  (void)state;
  static char list[] = "2,MIG-x/1/0";
  const pl_gpus all = {.count = 3}, named = {.count = 2, .list = list};
  pl_str text = {0};
  pl_gpus_write(&all, &text);
  assert_string_equal(pl_str_text(&text), "0, 1, 2");
  text.length = 0;
  pl_gpus_write(&named, &text);
  assert_string_equal(pl_str_text(&text), "2, MIG-x/1/0");
  pl_str_free(&text);
}

static void listed_ones_are_not_asked_for(void **state) {
  (void)state;
  static const char *const lists[] = {"2,5", "GPU-8a5", "", NULL};
  static const size_t counts[] = {2, 1, 0};
  for (size_t i = 0; lists[i]; i++) {
    pl_gpus g;
    pl_err e = {0};
    setenv("CUDA_VISIBLE_DEVICES", lists[i], 1);
    assert_int_equal(pl_gpus_listed(&g, &e), PL_OK);
    assert_int_equal(g.count, counts[i]);
    pl_gpus_free(&g);
  }
  unsetenv("CUDA_VISIBLE_DEVICES");
}

/* This program has no CUDA, and the module is not beside it. */
static void there_are_none_here(void **state) {
  (void)state;
  pl_gpus g;
  pl_err e = {0};
  assert_int_equal(pl_gpus_find(&g, &e), PL_BAD);
  assert_string_equal(e.text, "cuda: no device (pipelag-cuda.so is not beside the program)");
  assert_int_equal(g.count, 0);
  pl_gpus_free(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(places_take_them_in_turn),
      cmocka_unit_test(without_gpus_nothing_is_changed),
      cmocka_unit_test(they_are_named_as_they_are_chosen),
      cmocka_unit_test(listed_ones_are_not_asked_for),
      cmocka_unit_test(there_are_none_here),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
