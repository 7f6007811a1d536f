#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coverage.h"

/* 1000000 draws: 0.09% is four standard errors. */
static void intervals_hold_the_truth_closely(void **state) {
  (void)state;
  check_coverage(1000000, 0.0009);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(intervals_hold_the_truth_closely)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
