/* Linear layers y = x W^T (+ b): W is [out, in], x [rows, in], y [rows, out]. */
#ifndef PL_MODELS_PARTS_LINEAR_H
#define PL_MODELS_PARTS_LINEAR_H

#include "core/device/device.h"
#include "core/train/layout.h"

typedef struct pl_linear {
  size_t in, out;
  bool biased;
  size_t weight, bias; /* offsets in the stage's weights and, but for the next, its gradients */
  size_t gradient;     /* offset of W's gradient; differs from `weight` for a tied head */
} pl_linear;

/* Adds the segments `name` (kind, W ~ N(0, std^2)) and, when biased, `name`.bias (zero); in, out, biased are given. */
PL_MUST_CHECK pl_status pl_linear_place(pl_layout *l, const char *prefix, const char *name, pl_segment_kind kind,
                                        double std, pl_linear *linear, pl_err *e);

/* y = x W^T + b, or y += with `add`. */
void pl_linear_forward(pl_device *d, const pl_linear *l, const pl_real *weights, size_t rows, const pl_real *x,
                       bool add, pl_real *y);

/* dW += dy^T x, db += sum of dy's rows. */
void pl_linear_backward_weights(pl_device *d, const pl_linear *l, size_t rows, const pl_real *x, const pl_real *dy,
                                pl_real *grad);

/* dx = dy W, or dx += with `add`. */
void pl_linear_backward_input(pl_device *d, const pl_linear *l, const pl_real *weights, size_t rows, const pl_real *dy,
                              bool add, pl_real *dx);

#endif
