#include "models/parts/linear.h"

#include "models/parts/stages.h"

pl_status pl_linear_place(pl_layout *l, const char *prefix, const char *name, pl_segment_kind kind, double std,
                          pl_linear *linear, pl_err *e) {
  pl_status st = PL_OK;
  pl_segment weight = pl_segment_named(prefix, name, NULL, kind, linear->out, linear->in);
  weight.init_std = std;
  PL_TRY(pl_segment_place(l, &weight, &linear->weight, e));
  linear->gradient = linear->weight;
  if (linear->biased) {
    pl_segment bias = pl_segment_named(prefix, name, "bias", PL_SEGMENT_BIAS, 1, linear->out);
    PL_TRY(pl_segment_place(l, &bias, &linear->bias, e));
  }
out:
  return st;
}

void pl_linear_forward(pl_device *d, const pl_linear *l, const pl_real *weights, size_t rows, const pl_real *x,
                       bool add, pl_real *y) {
  d->ops->gemm_low(d, false, true, rows, l->out, l->in, 1, x, l->in, weights + l->weight, l->in, add, y, l->out);
  if (l->biased) d->ops->add_rows_forward(d, rows, l->out, 1, weights + l->bias, y);
}

void pl_linear_backward_weights(pl_device *d, const pl_linear *l, size_t rows, const pl_real *x, const pl_real *dy,
                                pl_real *grad) {
  d->ops->gemm_low(d, true, false, l->out, l->in, rows, 1, dy, l->out, x, l->in, 1, grad + l->gradient, l->in);
  if (l->biased) d->ops->add_rows_backward(d, rows, l->out, 1, dy, grad + l->bias);
}

void pl_linear_backward_input(pl_device *d, const pl_linear *l, const pl_real *weights, size_t rows, const pl_real *dy,
                              bool add, pl_real *dx) {
  d->ops->gemm_low(d, false, false, rows, l->in, l->out, 1, dy, l->out, weights + l->weight, l->in, add, dx, l->in);
}
