/* Statistics of small samples: estimates with 95% intervals, ratios of paired means, medians, smoothing. */
#ifndef PL_ANALYSIS_STATS_H
#define PL_ANALYSIS_STATS_H

#include <stdbool.h>
#include <stddef.h>

/* A mean with its 95% interval from the t distribution; no interval below n = 3. */
typedef struct pl_estimate {
  size_t n;
  double mean, sd, low, high; /* NaN where not defined */
} pl_estimate;

/* The 97.5% point of Student's t with df >= 1 degrees of freedom: half the width of a 95% interval in standard errors.
 * From the finite series for whole df, Abramowitz & Stegun 26.7.3 and 26.7.4. */
double pl_t_quantile_975(size_t df);

/* P(|T| < t) of Student's t, from the same series. */
double pl_t_central(size_t df, double t);

/* Mean of values[n]; of paired differences it is the paired estimate. */
pl_estimate pl_estimate_of(const double *values, size_t n);

/* Ratio of the means of top[n] and bottom[n], paired by index, with Fieller's 95% interval; sd is NaN. *resolved tells
 * whether n >= 3 and the 95% interval of the bottom mean leaves 0 out; otherwise the ratio has no interval. */
pl_estimate pl_ratio_of_means(const double *top, const double *bottom, size_t n, bool *resolved);

/* Median; missing outcomes stand as +infinity. Sorts the values. NaN when n is 0. */
double pl_median(double *values, size_t n);

/* Exponential moving average in place, debiased as Adam does: the first value stays, no pull towards 0. Earlier results
 * do not depend on later values; NaN stays NaN at its place and is passed over. */
void pl_smooth(double *values, size_t n, double weight);

#endif
