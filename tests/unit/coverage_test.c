#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coverage.h"

/* 20000 draws: 0.6% is four standard errors. */
static void intervals_hold_the_truth(void **state) {
  (void)state;
  check_coverage(20000, 0.0062);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(intervals_hold_the_truth)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
