#include "failing_memory.h"
#include "sweep_support.h"

#include <stdio.h>

static const char GOOD[] =
    "{\"name\":\"all\",\"notes\":\"n\",\"base\":{\"model\":\"quadratic\",\"optimizer\":\"sgd\",\"train\":{\"steps\":10}"
    "},"
    "\"grid\":[{\"delay\":[0,1],\"zip\":{\"optimizer.lr\":[0.1,0.2],\"train.clip\":[1,2]},\"seeds\":[4]},"
    "{\"optimizer.lr\":{\"log_range\":[0.01,1],\"n\":3},\"base\":{\"delay\":2}}],"
    "\"zip\":{\"delay\":[3,4],\"train.clip\":[5,6]},\"runs\":[{\"seed\":9}],"
    "\"random\":{\"n\":3,\"optimizer.lr\":[\"uniform\",0,1],\"delay\":[\"choice\",[7,8]]},"
    "\"exclude\":[{\"delay\":[3,5],\"optimizer\":\"sgd\"}],\"only_if\":{\"correction\":[\"none\",\"ef+lookahead\"]},"
    "\"seeds\":{\"range\":[0,2]},\"slurm\":{\"time\":\"1\"}}";

/* Expands with the n-th allocation failing, or all succeeding for n < 0. The text is parsed before. */
static pl_status expand_all(const char *text, pl_sets sets, long n, uint64_t *runs) {
  pl_registries r = registries();
  pl_json *document = NULL;
  pl_sweep *sweep = NULL;
  const pl_sweep_run *run = NULL;
  pl_err e = {0};
  pl_str label = {0};
  assert_int_equal(pl_json_parse(text, strlen(text), "x.json", &document, &e), PL_OK);
  left = n;
  failed = false;
  pl_status st = pl_sweep_from_json(&r, document, "x.json", sets, &sweep, &e);
  while (st == PL_OK) {
    st = pl_sweep_next(sweep, &run, &e);
    if (st != PL_OK || run == NULL) break;
    pl_sweep_label(sweep, run, &label);
    st = pl_str_check(&label, &e);
    pl_str_free(&label);
    ++*runs;
  }
  left = -1;
  assert_true((st == PL_OK) == (e.text[0] == '\0'));
  pl_str_free(&label);
  pl_sweep_free(sweep);
  pl_json_release(document);
  return st;
}

/* Fails the n-th allocation for n = 0, 1, ... until none is left to fail. */
static long fail_each(const char *text, pl_sets sets, pl_status whole) {
  uint64_t runs = 0, expected = 0;
  assert_int_equal(expand_all(text, sets, -1, &expected), whole);
  for (long n = 0;; n++) {
    runs = 0;
    pl_status st = expand_all(text, sets, n, &runs);
    if (!failed) {
      assert_int_equal(st, whole);
      assert_int_equal(runs, expected);
      return n;
    }
    assert_true(st == PL_FAIL || (whole == PL_BAD && st == PL_BAD));
  }
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  const char *sets[] = {"train.weight_decay=0,0.5", "slurm.time=2", "seeds=1,2"};
  assert_true(fail_each(GOOD, (pl_sets){0}, PL_OK) > 100);
  assert_true(fail_each(GOOD, (pl_sets){sets, 3}, PL_OK) > 100);
}

/* A message may lose its place, but the sweep is never taken for good. */
static void errors_survive_failing_allocations(void **state) {
  (void)state;
  fail_each(
      "{\"base\":{\"model\":\"quadratic\",\"optimizer\":\"sgd\",\"train.steps\":4},\"grid\":[{\"delay\":[0,-1]}]}",
      (pl_sets){0}, PL_BAD);
  fail_each("{\"base\":{},\"grid\":[{\"delay\":[]}]}", (pl_sets){0}, PL_BAD);
  fail_each("{\"base\":{},\"exclude\":[{\"dealy\":0}]}", (pl_sets){0}, PL_BAD);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(errors_survive_failing_allocations),
  };
  let_json_fail();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
