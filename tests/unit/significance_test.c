#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "analysis/fits.h"
#include "analysis/significance.h"
#include "core/base/json.h"

static void near(double seen, double expected, double tolerance) {
  if (!(fabs(seen - expected) <= tolerance)) fail_msg("%.17g instead of %.17g +- %g", seen, expected, tolerance);
}

static void p_values_meet_the_interval(void **state) {
  (void)state;
  /* One degree more than the Cauchy distribution has a closed form: P(|T| > t) = 1 - t / sqrt(2 + t^2). */
  const double d[] = {1, 2, 6};
  pl_estimate x = pl_estimate_of(d, 3);
  double t = x.mean / (x.sd / sqrt(3));
  near(pl_p_value(&x), 1 - t / sqrt(2 + t * t), 1e-14);
  /* The interval touches 0 exactly where p is 0.05. */
  for (size_t n = 3; n < 12; n++) {
    pl_estimate touching = {.n = n, .mean = pl_t_quantile_975(n - 1) / sqrt((double)n), .sd = 1};
    near(pl_p_value(&touching), 0.05, 1e-12);
  }
  assert_true(isnan(pl_p_value(&(pl_estimate){.n = 2, .mean = 1, .sd = 1})));
  assert_true(pl_p_value(&(pl_estimate){.n = 3, .mean = 1, .sd = 0}) == 0);
  assert_true(pl_p_value(&(pl_estimate){.n = 3, .mean = 0, .sd = 0}) == 1);
}

static void holm_steps_down(void **state) {
  (void)state;
  double p[] = {0.01, NAN, 0.04, 0.03, 0.005}, one[] = {0.03}, large[] = {0.5, 0.9}, scratch[5];
  pl_holm(p, 5, scratch);
  near(p[0], 0.03, 1e-15);
  assert_true(isnan(p[1]));
  near(p[2], 0.06, 1e-15); /* not 0.04: never below a smaller one's */
  near(p[3], 0.06, 1e-15);
  near(p[4], 0.02, 1e-15);
  pl_holm(one, 1, scratch);
  assert_true(one[0] == 0.03);
  pl_holm(large, 2, scratch);
  assert_true(large[0] == 1 && large[1] == 1);
}

/* Sample sizes of the two-sided 5% paired t test at 80%, as tables and R's power.t.test give them. */
static void pairs_needed_match_the_tables(void **state) {
  (void)state;
  assert_int_equal(pl_pairs_needed(1, 1), 10);
  assert_int_equal(pl_pairs_needed(1, 0.8), 15);
  assert_int_equal(pl_pairs_needed(1, 0.5), 34);
  assert_int_equal(pl_pairs_needed(1, 0.2), 199);
  assert_int_equal(pl_pairs_needed(1, 0.02), 19625);
  assert_int_equal(pl_pairs_needed(0.003, 0.0015), 34); /* the ratio alone counts */
  assert_int_equal(pl_pairs_needed(1e-9, 1), 3);
  assert_int_equal(pl_pairs_needed(0, 1), 3);
  assert_int_equal(pl_pairs_needed(1, 1e-9), 0);
  assert_int_equal(pl_pairs_needed(NAN, 1), 0);
  for (size_t n = 2; n < 40; n += 7) near(pl_paired_power(0, n), 0.05, 1e-5); /* without an effect: the size */
  near(pl_paired_power(1, 10), 0.8031, 5e-5);
  near(pl_paired_power(0.5, 34), 0.8078, 5e-5);
}

static void correlation_is_that_of_pearson(void **state) {
  (void)state;
  const double x[] = {1, 2, 3, 4}, y[] = {2.1, 3.9, 6.2, 7.8}, down[] = {4, 3, 2, 1}, flat[] = {1, 1, 1, 1};
  near(pl_correlation(x, down, 4), -1, 1e-15);
  near(pl_correlation(x, y, 4), 9.7 / sqrt(5 * 18.9), 1e-15);
  assert_true(isnan(pl_correlation(x, flat, 4)) && isnan(pl_correlation(x, y, 2)));
}

static void parabola_matches_the_vector(void **state) {
  (void)state;
  pl_json *v = NULL;
  pl_err e = {0};
  assert_int_equal(pl_json_read(PL_TESTS "/vectors/stats.json", &v, &e), PL_OK);
  const pl_json *p = pl_json_get(v, "lr_parabola");
  double x[3], y[3], at = 0, value = 0;
  for (size_t i = 0; i < 3; i++) {
    x[i] = log2(pl_json_number(pl_json_at(pl_json_get(p, "lr"), i)));
    y[i] = pl_json_number(pl_json_at(pl_json_get(p, "loss"), i));
  }
  assert_true(pl_parabola_minimum(x, y, &at, &value));
  near(at, pl_json_get_number(p, "log2_opt", NAN), 1e-12);
  near(exp2(at), pl_json_get_number(p, "lr_opt", NAN), 1e-14);
  near(value, pl_json_get_number(p, "loss_opt", NAN), 1e-12);
  pl_json_release(v);
  const double order[] = {2, 0, 1}, bowl[] = {1, 1, 0}, hill[] = {0, 0, 1}, line[] = {2, 0, 1};
  assert_true(pl_parabola_minimum(order, bowl, &at, &value)); /* points in any order */
  near(at, 1, 1e-15);
  near(value, 0, 1e-15);
  assert_false(pl_parabola_minimum(order, hill, &at, &value));
  assert_false(pl_parabola_minimum(order, line, &at, &value));
}

static void line_weighs_its_points(void **state) {
  (void)state;
  const double x[] = {1, 2, 4, 8}, exact[] = {5, 7, 11, 19}, ones[] = {1, 1, 1, 1};
  pl_line l = pl_line_fit(x, exact, ones, 4);
  near(l.slope.mean, 2, 1e-14);
  near(l.intercept, 3, 1e-14);
  near(l.slope.high - l.slope.low, 0, 1e-13);
  /* A weight of 2 is a point written twice, as far as the line goes. */
  const double twice[] = {1, 1, 2, 4}, y[] = {0.1, 0.1, 0.4, 0.5}, once[] = {1, 2, 4}, z[] = {0.1, 0.4, 0.5};
  const double weights[] = {2, 1, 1};
  near(pl_line_fit(once, z, weights, 3).slope.mean, pl_line_fit(twice, y, ones, 4).slope.mean, 1e-15);
  /* By hand: x 0, 1, 2, y 0, 1, 1: slope 1/2, rest 1/6, se sqrt(1/12). */
  const double a[] = {0, 1, 2}, b[] = {0, 1, 1};
  l = pl_line_fit(a, b, ones, 3);
  near(l.slope.mean, 0.5, 1e-15);
  near(l.slope.high - l.slope.mean, pl_t_quantile_975(1) * sqrt(1.0 / 12), 1e-12);
  assert_true(isnan(pl_line_fit(a, b, ones, 2).slope.low));
  assert_true(isnan(pl_line_fit(ones, b, ones, 3).slope.mean));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(p_values_meet_the_interval),    cmocka_unit_test(holm_steps_down),
      cmocka_unit_test(pairs_needed_match_the_tables), cmocka_unit_test(correlation_is_that_of_pearson),
      cmocka_unit_test(parabola_matches_the_vector),   cmocka_unit_test(line_weighs_its_points),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
