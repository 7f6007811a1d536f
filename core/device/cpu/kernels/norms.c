#include <math.h>

#include "core/device/cpu/kernels/kernels.h"
#include "core/device/cpu/kernels/rows.h"

static pl_real inverse_root(pl_real sum_of_squares, size_t width, double eps) {
  return (pl_real)(1.0 / sqrt((double)sum_of_squares / (double)width + eps));
}

static void scale_row(size_t width, const pl_real *restrict x, const pl_real *restrict weight, pl_real rstd,
                      pl_real *restrict out) {
  for (size_t j = 0; j < width; j++) out[j] = x[j] * rstd * weight[j];
}

void PL_KERNEL(rmsnorm_forward)(pl_device *d, size_t rows, size_t width, const pl_real *x, const pl_real *weight,
                                double eps, pl_real *out, pl_real *rstd) {
  (void)d;
  for (size_t r = 0; r < rows; r++) {
    const pl_real *row = x + r * width;
    rstd[r] = inverse_root(pl_row_squares(width, row, 0), width, eps);
    scale_row(width, row, weight, rstd[r], out + r * width);
  }
}

/* With g = dout * weight: dx += rstd (g - x rstd^2 mean(g x)), dweight += dout x rstd. */
static void rmsnorm_row(size_t width, const pl_real *restrict x, const pl_real *restrict weight, pl_real rstd,
                        const pl_real *restrict dout, pl_real *restrict dx, pl_real *restrict dweight) {
  const pl_real mean = pl_row_dot3(width, dout, weight, x, 0) / (pl_real)width;
  const pl_real along = rstd * rstd * mean;
  for (size_t j = 0; j < width; j++) {
    dx[j] += rstd * (dout[j] * weight[j] - x[j] * along);
    dweight[j] += dout[j] * (x[j] * rstd);
  }
}

void PL_KERNEL(rmsnorm_backward)(pl_device *d, size_t rows, size_t width, const pl_real *x, const pl_real *weight,
                                 const pl_real *rstd, const pl_real *dout, pl_real *dx, pl_real *dweight) {
  (void)d;
  for (size_t r = 0; r < rows; r++)
    rmsnorm_row(width, x + r * width, weight, rstd[r], dout + r * width, dx + r * width, dweight);
}

static void standardise_row(size_t width, const pl_real *restrict x, const pl_real *restrict weight,
                            const pl_real *restrict bias, pl_real mean, pl_real rstd, pl_real *restrict out) {
  for (size_t j = 0; j < width; j++) out[j] = (x[j] - mean) * rstd * weight[j] + bias[j];
}

void PL_KERNEL(layernorm_forward)(pl_device *d, size_t rows, size_t width, const pl_real *x, const pl_real *weight,
                                  const pl_real *bias, double eps, pl_real *out, pl_real *mean, pl_real *rstd) {
  (void)d;
  for (size_t r = 0; r < rows; r++) {
    const pl_real *row = x + r * width;
    mean[r] = pl_row_sum(width, row) / (pl_real)width;
    rstd[r] = inverse_root(pl_row_squares(width, row, mean[r]), width, eps);
    standardise_row(width, row, weight, bias, mean[r], rstd[r], out + r * width);
  }
}

/* With g = dout * weight and h = (x - mean) rstd: dx += rstd (g - mean(g) - h mean(g h)), dweight += dout h. */
static void layernorm_row(size_t width, const pl_real *restrict x, const pl_real *restrict weight, pl_real mean,
                          pl_real rstd, const pl_real *restrict dout, pl_real *restrict dx, pl_real *restrict dweight,
                          pl_real *restrict dbias) {
  const pl_real level = pl_row_dot(width, dout, weight) / (pl_real)width;
  const pl_real along = pl_row_dot3(width, dout, weight, x, mean) * rstd / (pl_real)width;
  for (size_t j = 0; j < width; j++) {
    const pl_real h = (x[j] - mean) * rstd;
    dx[j] += rstd * (dout[j] * weight[j] - level - h * along);
    dweight[j] += dout[j] * h;
    dbias[j] += dout[j];
  }
}

void PL_KERNEL(layernorm_backward)(pl_device *d, size_t rows, size_t width, const pl_real *x, const pl_real *weight,
                                   const pl_real *mean, const pl_real *rstd, const pl_real *dout, pl_real *dx,
                                   pl_real *dweight, pl_real *dbias) {
  (void)d;
  for (size_t r = 0; r < rows; r++)
    layernorm_row(width, x + r * width, weight, mean[r], rstd[r], dout + r * width, dx + r * width, dweight, dbias);
}
