/* RMSNorm and LayerNorm behind one face. */
#ifndef PL_MODELS_PARTS_NORM_H
#define PL_MODELS_PARTS_NORM_H

#include "core/device/device.h"
#include "core/train/layout.h"

typedef struct pl_norm {
  bool layernorm; /* else RMSNorm */
  double eps;
  size_t width, weight, bias; /* offsets in the stage's arrays; bias with LayerNorm only */
} pl_norm;

/* Adds the segment `name` (ones) and with LayerNorm `name`.bias (zeros); layernorm, eps, width are given. */
PL_MUST_CHECK pl_status pl_norm_place(pl_layout *l, const char *prefix, const char *name, pl_norm *norm, pl_err *e);

/* Elements of the statistics that forward leaves for backward. */
size_t pl_norm_stats_size(const pl_norm *n, size_t rows);

void pl_norm_forward(pl_device *d, const pl_norm *n, const pl_real *weights, size_t rows, const pl_real *x,
                     pl_real *out, pl_real *stats);

/* Adds to dx and to the gradients. */
void pl_norm_backward(pl_device *d, const pl_norm *n, const pl_real *weights, size_t rows, const pl_real *x,
                      const pl_real *stats, const pl_real *dout, pl_real *dx, pl_real *grad);

#endif
