/* Matrix products by cuBLASLt. */
#ifndef PL_DEVICE_CUDA_PRODUCTS_H
#define PL_DEVICE_CUDA_PRODUCTS_H

#include "core/device/cuda/cuda.h"

/* d->state and its stream are there. */
PL_MUST_CHECK pl_status pl_cublas_open(pl_device *d, struct pl_cublas **out, pl_err *e);
void pl_cublas_close(struct pl_cublas *b); /* NULL allowed */

/* c[r,:] *= beta for each of `rows` rows; beta 0 does not read c. For products without a depth. */
void pl_cuda_scale_rows(pl_device *d, size_t rows, size_t cols, float beta, float *c, size_t ldc);

/* c[j,i] = c[i,j] for i < j. */
void pl_cuda_mirror(pl_device *d, size_t n, float *c, size_t ldc);

#endif
