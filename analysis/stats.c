#include "analysis/stats.h"

#include <math.h>
#include <stdlib.h>

/* P(|T| < sqrt(df) tan(angle)). */
static double t_central_probability(size_t df, double angle) {
  double c2 = cos(angle) * cos(angle);
  bool odd = df % 2 == 1;
  double term = odd ? cos(angle) : 1.0, sum = 0;
  for (size_t k = odd ? 1 : 0; k + 2 <= df; k += 2) { /* term holds the power k of the cosine */
    sum += term;
    term *= c2 * (double)(k + 1) / (double)(k + 2);
  }
  return odd ? 2 / M_PI * (angle + sin(angle) * sum) : sin(angle) * sum;
}

double pl_t_central(size_t df, double t) { return t_central_probability(df, atan(t / sqrt((double)df))); }

double pl_t_quantile_975(size_t df) {
  double low = 0, high = M_PI_2;
  for (int i = 0; i < 60; i++) {
    double middle = 0.5 * (low + high);
    if (t_central_probability(df, middle) < 0.95)
      low = middle;
    else
      high = middle;
  }
  return sqrt((double)df) * tan(0.5 * (low + high));
}

static double mean_of(const double *x, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += x[i];
  return sum / (double)n;
}

static double covariance(const double *x, double x_mean, const double *y, double y_mean, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += (x[i] - x_mean) * (y[i] - y_mean);
  return sum / (double)(n - 1);
}

pl_estimate pl_estimate_of(const double *values, size_t n) {
  pl_estimate out = {.n = n, .mean = NAN, .sd = NAN, .low = NAN, .high = NAN};
  if (n == 0) return out;
  out.mean = mean_of(values, n);
  if (n < 2) return out;
  out.sd = sqrt(covariance(values, out.mean, values, out.mean, n));
  if (n < 3) return out;
  double half = pl_t_quantile_975(n - 1) * out.sd / sqrt((double)n);
  out.low = out.mean - half;
  out.high = out.mean + half;
  return out;
}

pl_estimate pl_ratio_of_means(const double *top, const double *bottom, size_t n, bool *resolved) {
  pl_estimate out = {.n = n, .mean = NAN, .sd = NAN, .low = NAN, .high = NAN};
  *resolved = false;
  if (n == 0) return out;
  double y = mean_of(top, n), x = mean_of(bottom, n);
  if (x != 0) out.mean = y / x;
  if (n < 3) return out;
  double t = pl_t_quantile_975(n - 1), scale = t * t / (double)n;
  /* The interval holds every r with (y - r x)^2 <= scale var(top - r bottom): a r^2 - 2 b r + c <= 0. */
  double a = x * x - scale * covariance(bottom, x, bottom, x, n);
  if (!(a > 0)) return out;
  double b = x * y - scale * covariance(bottom, x, top, y, n);
  double c = y * y - scale * covariance(top, y, top, y, n);
  double root = sqrt(fmax(b * b - a * c, 0)); /* negative by rounding alone */
  out.low = (b - root) / a;
  out.high = (b + root) / a;
  *resolved = true;
  return out;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double pl_median(double *values, size_t n) {
  if (n == 0) return NAN;
  qsort(values, n, sizeof values[0], by_value);
  return n % 2 == 1 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

void pl_smooth(double *values, size_t n, double weight) {
  double average = 0, unseen = 1; /* unseen = weight^(values seen) */
  for (size_t i = 0; i < n; i++) {
    if (isnan(values[i])) continue;
    average = weight * average + (1 - weight) * values[i];
    unseen *= weight;
    values[i] = average / (1 - unseen);
  }
}
