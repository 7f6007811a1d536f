#include "models/parts/norm.h"

#include "models/parts/space.h"
#include "models/parts/stages.h"

pl_status pl_norm_place(pl_layout *l, const char *prefix, const char *name, pl_norm *norm, pl_err *e) {
  pl_status st = PL_OK;
  pl_segment weight = pl_segment_named(prefix, name, NULL, PL_SEGMENT_NORM, 1, norm->width);
  weight.init_mean = 1;
  PL_TRY(pl_segment_place(l, &weight, &norm->weight, e));
  if (norm->layernorm) {
    pl_segment bias = pl_segment_named(prefix, name, "bias", PL_SEGMENT_BIAS, 1, norm->width);
    PL_TRY(pl_segment_place(l, &bias, &norm->bias, e));
  }
out:
  return st;
}

size_t pl_norm_stats_size(const pl_norm *n, size_t rows) { return pl_times(rows, n->layernorm ? 2 : 1); }

void pl_norm_forward(pl_device *d, const pl_norm *n, const pl_real *weights, size_t rows, const pl_real *x,
                     pl_real *out, pl_real *stats) {
  if (n->layernorm) {
    d->ops->layernorm_forward(d, rows, n->width, x, weights + n->weight, weights + n->bias, n->eps, out, stats + rows,
                              stats);
  } else {
    d->ops->rmsnorm_forward(d, rows, n->width, x, weights + n->weight, n->eps, out, stats);
  }
}

void pl_norm_backward(pl_device *d, const pl_norm *n, const pl_real *weights, size_t rows, const pl_real *x,
                      const pl_real *stats, const pl_real *dout, pl_real *dx, pl_real *grad) {
  if (n->layernorm) {
    d->ops->layernorm_backward(d, rows, n->width, x, weights + n->weight, stats + rows, stats, dout, dx,
                               grad + n->weight, grad + n->bias);
  } else {
    d->ops->rmsnorm_backward(d, rows, n->width, x, weights + n->weight, stats, dout, dx, grad + n->weight);
  }
}
