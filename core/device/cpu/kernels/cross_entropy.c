#include "core/device/cpu/kernels/kernels.h"
#include "core/device/cpu/kernels/rows.h"

static void scale_row(size_t n, pl_real factor, pl_real *x) {
  for (size_t i = 0; i < n; i++) x[i] *= factor;
}

void PL_KERNEL(cross_entropy)(pl_device *d, size_t rows, size_t classes, const int32_t *targets, bool gradient,
                              double scale, pl_real *logits, double *loss) {
  (void)d;
  for (size_t r = 0; r < rows; r++) {
    pl_real *row = logits + r * classes, *target = row + targets[r];
    const pl_real top = pl_row_max(classes, row);
    const double below = (double)top - (double)*target;
    const double sum = (double)(gradient ? pl_row_exp(classes, top, true, row) : pl_row_exp(classes, top, false, row));
    loss[r] = log(sum) + below;
    if (!gradient) continue;
    scale_row(classes, (pl_real)(scale / sum), row);
    *target -= (pl_real)scale;
  }
}
