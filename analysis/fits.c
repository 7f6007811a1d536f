#include "analysis/fits.h"

#include <math.h>

bool pl_parabola_minimum(const double x[3], const double y[3], double *at, double *value) {
  double first = (y[1] - y[0]) / (x[1] - x[0]), second = (y[2] - y[1]) / (x[2] - x[1]);
  double bend = (second - first) / (x[2] - x[0]); /* Newton's divided differences */
  if (!(bend > 0)) return false;
  *at = 0.5 * (x[0] + x[1]) - 0.5 * first / bend;
  *value = y[0] + (*at - x[0]) * (first + bend * (*at - x[1]));
  return isfinite(*at) && isfinite(*value);
}

pl_line pl_line_fit(const double *x, const double *y, const double *weights, size_t n) {
  pl_line out = {.intercept = NAN, .slope = {.n = n, .mean = NAN, .sd = NAN, .low = NAN, .high = NAN}};
  double total = 0, mx = 0, my = 0, xx = 0, xy = 0, rest = 0;
  for (size_t i = 0; i < n; i++) {
    total += weights[i];
    mx += weights[i] * x[i];
    my += weights[i] * y[i];
  }
  mx /= total;
  my /= total;
  for (size_t i = 0; i < n; i++) {
    xx += weights[i] * (x[i] - mx) * (x[i] - mx);
    xy += weights[i] * (x[i] - mx) * (y[i] - my);
  }
  if (!(xx > 0)) return out;
  out.slope.mean = xy / xx;
  out.intercept = my - out.slope.mean * mx;
  if (n < 3) return out;
  for (size_t i = 0; i < n; i++) rest += weights[i] * pow(y[i] - out.intercept - out.slope.mean * x[i], 2);
  double half = pl_t_quantile_975(n - 2) * sqrt(rest / (double)(n - 2) / xx);
  out.slope.low = out.slope.mean - half;
  out.slope.high = out.slope.mean + half;
  return out;
}
