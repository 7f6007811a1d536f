/* Tests of paired differences: p-values, Holm's adjustment, how many pairs resolve a difference. */
#ifndef PL_ANALYSIS_SIGNIFICANCE_H
#define PL_ANALYSIS_SIGNIFICANCE_H

#include "analysis/stats.h"

/* Two-sided p-value of the paired t test that the mean is 0; NaN below n = 3, like the interval. */
double pl_p_value(const pl_estimate *differences);

/* Replaces the p-values of a family by Holm's adjusted ones (Holm 1979): an arm whose adjusted value is below 0.05
 * differs, with at most a 5% chance that any of the family is named wrongly. NaN is no member. scratch[n]. */
void pl_holm(double *p, size_t n, double *scratch);

/* Power of the two-sided 5% paired t test with n >= 2 pairs, when the mean is `effect` standard deviations of the
 * differences. */
double pl_paired_power(double effect, size_t n);

/* Smallest n >= 3 whose power reaches 0.8 for a difference; 0 where sd is unknown or more than a million would be
 * needed. */
size_t pl_pairs_needed(double sd, double difference);

/* Correlation of paired values: what pairing by seed is worth. NaN below n = 3 and for constant values. */
double pl_correlation(const double *x, const double *y, size_t n);

#endif
