#include "core/device/cpu/kernels/kernels.h"
#include "core/device/cpu/kernels/rows.h"

void PL_KERNEL(axpby)(pl_device *d, size_t n, double a, const pl_real *x, double b, pl_real *y) {
  (void)d;
  const pl_real ra = (pl_real)a, rb = (pl_real)b;
  if (b == 0) {
    PL_INDEPENDENT
    for (size_t i = 0; i < n; i++) y[i] = ra * x[i];
    return;
  }
  PL_INDEPENDENT
  for (size_t i = 0; i < n; i++) y[i] = ra * x[i] + rb * y[i];
}

void PL_KERNEL(shrink_subtract)(pl_device *d, size_t n, double s, const pl_real *x, const pl_real *v, pl_real *out) {
  (void)d;
  const pl_real rs = (pl_real)s;
  PL_INDEPENDENT
  for (size_t i = 0; i < n; i++) out[i] = rs * x[i] - v[i];
}

double PL_KERNEL(dot)(pl_device *d, size_t n, const pl_real *x, const pl_real *y) {
  (void)d;
  double lane[PL_LANES] = {0}, sum = 0;
  size_t i = 0;
  for (; i + PL_LANES <= n; i += PL_LANES)
    for (size_t l = 0; l < PL_LANES; l++) lane[l] += (double)x[i + l] * (double)y[i + l];
  for (size_t l = 0; i + l < n; l++) lane[l] += (double)x[i + l] * (double)y[i + l];
  for (size_t l = 0; l < PL_LANES; l++) sum += lane[l];
  return sum;
}

double PL_KERNEL(sum_squares)(pl_device *d, size_t n, const pl_real *x) { return PL_KERNEL(dot)(d, n, x, x); }

double PL_KERNEL(sum_double)(pl_device *d, size_t n, const double *x) {
  (void)d;
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += x[i];
  return sum;
}
