#include "analysis/significance.h"

#include <math.h>
#include <stdlib.h>

double pl_p_value(const pl_estimate *d) {
  if (d->n < 3) return NAN;
  if (d->sd == 0) return d->mean == 0 ? 1 : 0;
  return fmax(0, 1 - pl_t_central(d->n - 1, fabs(d->mean / (d->sd / sqrt((double)d->n)))));
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void pl_holm(double *p, size_t n, double *scratch) {
  size_t members = 0;
  for (size_t i = 0; i < n; i++)
    if (!isnan(p[i])) scratch[members++] = p[i];
  qsort(scratch, members, sizeof scratch[0], by_value);
  for (size_t i = 0; i < n; i++) {
    double own = p[i], adjusted = own;
    for (size_t k = 0; k < members && scratch[k] <= own; k++)
      adjusted = fmax(adjusted, fmin(1, (double)(members - k) * scratch[k]));
    p[i] = adjusted;
  }
}

static double normal_below(double x) { return 0.5 * erfc(-x / M_SQRT2); }

/* P(|T| > t) of the noncentral t: the spread s (a chi over its root of df) integrated out by Simpson's rule. */
double pl_paired_power(double effect, size_t n) {
  enum { INTERVALS = 400 };
  double df = (double)(n - 1), t = pl_t_quantile_975(n - 1), shift = effect * sqrt((double)n), sum = 0;
  double low = fmax(0, 1 - 8 / sqrt(2 * df)), high = 1 + 10 / sqrt(df), width = (high - low) / INTERVALS;
  double constant = log(2) + 0.5 * df * log(0.5 * df) - lgamma(0.5 * df);
  for (int i = 0; i <= INTERVALS; i++) {
    double s = low + i * width, weight = i == 0 || i == INTERVALS ? 1 : i % 2 == 1 ? 4 : 2;
    if (s == 0 && n > 2) continue;
    double density = exp(constant + (n > 2 ? (df - 1) * log(s) : 0) - 0.5 * df * s * s);
    sum += weight * density * (normal_below(shift - t * s) + normal_below(-shift - t * s));
  }
  return sum * width / 3;
}

size_t pl_pairs_needed(double sd, double difference) {
  const double most = 1e6, normal = 1.959964 + 0.841621;
  double start = pow(normal * sd / difference, 2);
  if (!(start < most) || !(difference > 0)) return 0;
  size_t n = start < 3 ? 3 : (size_t)ceil(start);
  if (n > 1000) return n + 2; /* the t distribution costs 1.96^2 / 2 pairs more */
  while (pl_paired_power(difference / sd, n) < 0.8) n++;
  return n;
}

double pl_correlation(const double *x, const double *y, size_t n) {
  double mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
  if (n < 3) return NAN;
  for (size_t i = 0; i < n; i++) {
    mx += x[i] / (double)n;
    my += y[i] / (double)n;
  }
  for (size_t i = 0; i < n; i++) {
    xx += (x[i] - mx) * (x[i] - mx);
    yy += (y[i] - my) * (y[i] - my);
    xy += (x[i] - mx) * (y[i] - my);
  }
  return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : (double)NAN;
}
