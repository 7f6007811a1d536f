#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "analysis/stats.h"
#include "core/base/json.h"

static pl_json *read_vectors(void) {
  pl_json *v = NULL;
  pl_err e = {0};
  assert_int_equal(pl_json_read(PL_TESTS "/vectors/stats.json", &v, &e), PL_OK);
  return v;
}

static void near(double seen, double expected, double tolerance) {
  if (!(fabs(seen - expected) <= tolerance)) fail_msg("%.17g instead of %.17g +- %g", seen, expected, tolerance);
}

static size_t read_list(const pl_json *object, const char *key, double *out) {
  const pl_json *list = pl_json_get(object, key);
  for (size_t i = 0; i < pl_json_size(list); i++) out[i] = pl_json_number(pl_json_at(list, i));
  return pl_json_size(list);
}

static void quantiles_match_the_table(void **state) {
  (void)state;
  pl_json *v = read_vectors();
  const pl_json *table = pl_json_get(v, "t_crit_975_by_n");
  for (void *it = pl_json_iter(table); it; it = pl_json_iter_next(table, it)) {
    int64_t n = 0;
    assert_true(pl_parse_int(pl_json_iter_key(it), &n));
    near(pl_t_quantile_975((size_t)n - 1), pl_json_number(pl_json_iter_value(it)), 5.0001e-4);
  }
  pl_json_release(v);
  near(pl_t_quantile_975(1), 1 / tan(0.025 * M_PI), 1e-12); /* the Cauchy distribution */
  near(pl_t_quantile_975(2), 0.95 * sqrt(2 / (1 - 0.95 * 0.95)), 1e-12);
  near(pl_t_quantile_975(29), 2.0452296421327, 1e-12);
  near(pl_t_quantile_975(1000), 1.9623390808264078, 1e-12);
}

static void paired_interval_matches_the_vector(void **state) {
  (void)state;
  pl_json *v = read_vectors();
  const pl_json *paired = pl_json_get(v, "paired");
  double sync[8], delayed[8], difference[8], interval[2];
  size_t n = read_list(paired, "sync", sync);
  read_list(paired, "delayed", delayed);
  read_list(paired, "ci95", interval);
  for (size_t i = 0; i < n; i++) difference[i] = delayed[i] - sync[i];
  pl_estimate x = pl_estimate_of(difference, n);
  assert_int_equal(x.n, n);
  near(x.mean, pl_json_get_number(paired, "mean", NAN), 1e-15);
  near(x.sd, pl_json_get_number(paired, "sd", NAN), 1e-15);
  /* The vector rounds the quantile to three decimals. */
  double rounding = 5e-4 * pl_json_get_number(paired, "se", NAN);
  near(x.low, interval[0], rounding);
  near(x.high, interval[1], rounding);
  pl_json_release(v);
}

static void small_samples_have_no_interval(void **state) {
  (void)state;
  const double values[] = {1.25, 1.5, 2.0};
  pl_estimate none = pl_estimate_of(values, 0), one = pl_estimate_of(values, 1), two = pl_estimate_of(values, 2);
  assert_true(isnan(none.mean) && isnan(none.sd) && isnan(none.low));
  assert_true(one.mean == 1.25 && isnan(one.sd) && isnan(one.low));
  near(two.mean, 1.375, 0);
  near(two.sd, 0.25 / sqrt(2), 1e-15);
  assert_true(isnan(two.low) && isnan(two.high));
  assert_true(pl_estimate_of(values, 3).low < 1.25);
}

/* The 95% interval of a ratio holds r exactly when that of top - r * bottom holds 0: the definition, checked at the two
 * ends with the plain t interval. */
static void fieller_interval_is_where_the_difference_may_vanish(void **state) {
  (void)state;
  const double top[] = {0.081, 0.066, 0.073, 0.060, 0.079}, bottom[] = {0.102, 0.070, 0.144, 0.085, 0.117};
  bool resolved = false;
  pl_estimate r = pl_ratio_of_means(top, bottom, 5, &resolved);
  assert_true(resolved);
  near(r.mean, (0.081 + 0.066 + 0.073 + 0.060 + 0.079) / (0.102 + 0.070 + 0.144 + 0.085 + 0.117), 1e-15);
  assert_true(r.low < r.mean && r.mean < r.high);
  double at_low[5], at_high[5];
  for (size_t i = 0; i < 5; i++) {
    at_low[i] = top[i] - r.low * bottom[i];
    at_high[i] = top[i] - r.high * bottom[i];
  }
  near(pl_estimate_of(at_low, 5).low, 0, 1e-15);
  near(pl_estimate_of(at_high, 5).high, 0, 1e-15);
  /* The interval is not simply that of the per-seed ratios. */
  double ratios[5];
  for (size_t i = 0; i < 5; i++) ratios[i] = top[i] / bottom[i];
  assert_true(fabs(pl_estimate_of(ratios, 5).low - r.low) > 1e-3);
}

static void ratio_is_unresolved_when_the_gap_may_be_zero(void **state) {
  (void)state;
  const double top[] = {0.01, 0.02, 0.015}, bottom[] = {0.03, -0.02, 0.01};
  bool resolved = true;
  pl_estimate r = pl_ratio_of_means(top, bottom, 3, &resolved);
  assert_false(resolved);
  near(r.mean, 0.045 / 0.02, 1e-12);
  assert_true(isnan(r.low) && isnan(r.high));
  pl_estimate gap = pl_estimate_of(bottom, 3);
  assert_true(gap.low < 0 && gap.high > 0);
  resolved = true;
  r = pl_ratio_of_means(top, top, 2, &resolved); /* too few seeds: a value without an interval */
  assert_false(resolved);
  assert_true(r.mean == 1 && isnan(r.low));
}

static void median_takes_missing_runs_as_infinity(void **state) {
  (void)state;
  double five[] = {INFINITY, 1.61, 1.59, INFINITY, 1.60}, three[] = {INFINITY, 2, INFINITY}, four[] = {4, 1, 3, 2};
  assert_true(pl_median(five, 5) == 1.61);
  assert_true(isinf(pl_median(three, 3)));
  assert_true(pl_median(four, 4) == 2.5);
  assert_true(isnan(pl_median(four, 0)));
}

static void smoothing_is_debiased(void **state) {
  (void)state;
  const double expected[] = {10, 4.737, 2.989, 2.120, 1.602};
  double whole[] = {10, 0, 0, 0, 0}, half[] = {10, 0, 0}, gap[] = {10, NAN, 0};
  pl_smooth(whole, 5, 0.9);
  pl_smooth(half, 3, 0.9);
  pl_smooth(gap, 3, 0.9);
  for (size_t i = 0; i < 5; i++) near(whole[i], expected[i], 5.0001e-4);
  for (size_t i = 0; i < 3; i++) assert_true(half[i] == whole[i]);
  assert_true(isnan(gap[1]) && gap[2] == whole[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(quantiles_match_the_table),
      cmocka_unit_test(paired_interval_matches_the_vector),
      cmocka_unit_test(small_samples_have_no_interval),
      cmocka_unit_test(fieller_interval_is_where_the_difference_may_vanish),
      cmocka_unit_test(ratio_is_unresolved_when_the_gap_may_be_zero),
      cmocka_unit_test(median_takes_missing_runs_as_infinity),
      cmocka_unit_test(smoothing_is_debiased),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
