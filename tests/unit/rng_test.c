#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "core/base/rng.h"

/* philox4x32-10 of Random123's kat_vectors, written as the generator that has this counter and key. */
static void blocks_are_those_of_random123(void **state) {
  (void)state;
  static const struct {
    pl_rng r;
    uint32_t expected[4];
  } cases[] = {
      {{.used = 4}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{.seed = UINT64_MAX, .stream = 15, .a = UINT64_MAX, .b = UINT32_MAX, .next = 0x0fffffff, .used = 4},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{.seed = 0x299f31d0a4093822,
        .stream = 2,
        .a = 0x0370734413198a2e,
        .b = 0x85a308d3,
        .next = 0x043f6a88,
        .used = 4},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pl_rng r = cases[i].r;
    for (int j = 0; j < 4; j++) assert_int_equal(pl_rng_u32(&r), cases[i].expected[j]);
  }
}

/* Every part of what names a number changes it; drawing before does not. */
static void numbers_depend_on_their_name_alone(void **state) {
  (void)state;
  uint64_t first[6];
  const pl_rng at[] = {pl_rng_at(1, PL_STREAM_INIT, 5, 9),
                       pl_rng_at(2, PL_STREAM_INIT, 5, 9),
                       pl_rng_at(1 + (UINT64_C(1) << 32), PL_STREAM_INIT, 5, 9),
                       pl_rng_at(1, PL_STREAM_DATA, 5, 9),
                       pl_rng_at(1, PL_STREAM_INIT, 6, 9),
                       pl_rng_at(1, PL_STREAM_INIT, 5, 10)};
  for (int i = 0; i < 6; i++) {
    pl_rng r = at[i];
    first[i] = pl_rng_u64(&r);
    for (int j = 0; j < i; j++) assert_true(first[i] != first[j]);
  }
  for (int i = 0; i < 6; i++) {
    pl_rng r = at[i];
    assert_true(pl_rng_u64(&r) == first[i]);
  }
}

static void uniform_fills_the_unit_interval(void **state) {
  (void)state;
  enum { N = 100000 };
  pl_rng r = pl_rng_at(3, PL_STREAM_NOISE, 1, 2);
  double sum = 0, least = 1, most = 0;
  for (int i = 0; i < N; i++) {
    double x = pl_rng_uniform(&r);
    assert_true(x >= 0 && x < 1);
    sum += x;
    least = fmin(least, x);
    most = fmax(most, x);
  }
  assert_true(fabs(sum / N - 0.5) < 5 * sqrt(1.0 / 12 / N));
  assert_true(least < 1e-3 && most > 1 - 1e-3);
}

static void below_is_in_range_and_even(void **state) {
  (void)state;
  enum { N = 60000, SIDES = 6 };
  pl_rng r = pl_rng_at(4, PL_STREAM_DATA, 0, 0);
  int seen[SIDES] = {0};
  for (int i = 0; i < N; i++) seen[pl_rng_below(&r, SIDES)]++;
  for (int i = 0; i < SIDES; i++) assert_true(fabs(seen[i] - (double)N / SIDES) < 5 * sqrt((double)N / SIDES));
  for (int i = 0; i < 100; i++) {
    assert_true(pl_rng_below(&r, 1) == 0);
    assert_true(pl_rng_below(&r, UINT64_MAX) < UINT64_MAX);
  }
}

/* Moments within 5 standard errors: var of x is 1, of x^2 is 2, of x^4 is 96. */
static void normal_has_the_moments_of_one(void **state) {
  (void)state;
  enum { N = 200000 };
  pl_rng r = pl_rng_at(5, PL_STREAM_INIT, 77, 0);
  double m1 = 0, m2 = 0, m4 = 0;
  for (int i = 0; i < N; i++) {
    double x = pl_rng_normal(&r);
    m1 += x / N;
    m2 += x * x / N;
    m4 += x * x * x * x / N;
  }
  assert_true(fabs(m1) < 5 * sqrt(1.0 / N));
  assert_true(fabs(m2 - 1) < 5 * sqrt(2.0 / N));
  assert_true(fabs(m4 - 3) < 5 * sqrt(96.0 / N));
}

static void fill_is_the_same_sequence(void **state) {
  (void)state;
  enum { N = 1001 };
  static pl_real out[N];
  pl_rng a = pl_rng_at(6, PL_STREAM_INIT, 1, 0), b = a;
  pl_rng_fill_normal(&a, N, 0.5, 2, out);
  for (int i = 0; i < N; i++) assert_true(out[i] == (pl_real)(0.5 + 2 * pl_rng_normal(&b)));
  assert_int_equal(pl_rng_u32(&a), pl_rng_u32(&b));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_are_those_of_random123),   cmocka_unit_test(numbers_depend_on_their_name_alone),
      cmocka_unit_test(uniform_fills_the_unit_interval), cmocka_unit_test(below_is_in_range_and_even),
      cmocka_unit_test(normal_has_the_moments_of_one),   cmocka_unit_test(fill_is_the_same_sequence),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
