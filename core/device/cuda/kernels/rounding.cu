/* Inputs of products in bfloat16, and what products leave to others. */
#include "core/device/cuda/kernels/kernel.h"

extern "C" {
#include "core/device/cuda/products.h"
}

/* To nearest, ties to even; subnormal numbers become 0; NaN stays one. */
PL_INLINE uint16_t rounded(float x) {
  const unsigned bits = (unsigned)__float_as_int(x), magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u);
  if (magnitude < 0x00800000u) return (uint16_t)(bits >> 16 & 0x8000u);
  return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

PL_KERNEL round_rows(size_t rows, size_t cols, const float *from, size_t ld, uint16_t *to) {
  for (size_t i = pl_first(); i < rows * cols; i += pl_stride()) to[i] = rounded(from[i / cols * ld + i % cols]);
}

PL_KERNEL scale_rows(size_t rows, size_t cols, float beta, float *c, size_t ldc) {
  for (size_t i = pl_first(); i < rows * cols; i += pl_stride()) {
    float *x = c + i / cols * ldc + i % cols;
    *x = beta == 0 ? 0 : beta * *x;
  }
}

PL_KERNEL mirror(size_t n, float *c, size_t ldc) {
  for (size_t i = pl_first(); i < n * n; i += pl_stride()) {
    const size_t row = i / n, col = i % n;
    if (col < row) c[row * ldc + col] = c[col * ldc + row];
  }
}

void pl_cuda_round(pl_device *d, size_t rows, size_t cols, const float *from, size_t ld, uint16_t *to) {
  const size_t n = rows * cols;
  if (n > 0) PL_LAUNCH(d, round_rows, pl_cuda_blocks(n), PL_CUDA_BLOCK, rows, cols, from, ld, to);
}

void pl_cuda_scale_rows(pl_device *d, size_t rows, size_t cols, float beta, float *c, size_t ldc) {
  const size_t n = rows * cols;
  if (n > 0) PL_LAUNCH(d, scale_rows, pl_cuda_blocks(n), PL_CUDA_BLOCK, rows, cols, beta, c, ldc);
}

void pl_cuda_mirror(pl_device *d, size_t n, float *c, size_t ldc) {
  if (n > 0) PL_LAUNCH(d, mirror, pl_cuda_blocks(n * n), PL_CUDA_BLOCK, n, c, ldc);
}
