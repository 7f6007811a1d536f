/* Curves through few points: the minimum of a parabola, a weighted line. */
#ifndef PL_ANALYSIS_FITS_H
#define PL_ANALYSIS_FITS_H

#include "analysis/stats.h"

/* Lowest point of the parabola through three points with different x; false when it has none (it bends down or is a
 * line). */
bool pl_parabola_minimum(const double x[3], const double y[3], double *at, double *value);

typedef struct pl_line {
  double intercept;
  pl_estimate slope; /* n points; interval from the scatter about the line, with n - 2 degrees of freedom: none below
                        n = 3 */
} pl_line;

/* Least squares with weights > 0; NaN slope when all x are the same. */
pl_line pl_line_fit(const double *x, const double *y, const double *weights, size_t n);

#endif
