#include "core/device/cuda/kernels/kernel.h"

PL_INLINE float sigmoid(float x) { return 1 / (1 + expf(-x)); }

PL_KERNEL swiglu(size_t n, const float *gate, const float *up, float *out) {
  for (size_t i = pl_first(); i < n; i += pl_stride()) out[i] = gate[i] * sigmoid(gate[i]) * up[i];
}

/* dgate and dup may be gate and up. */
PL_KERNEL swiglu_gradient(size_t n, const float *gate, const float *up, const float *dout, float *dgate, float *dup) {
  for (size_t i = pl_first(); i < n; i += pl_stride()) {
    const float g = gate[i], u = up[i], y = dout[i], s = sigmoid(g);
    dgate[i] = y * u * (s * (1 + g * (1 - s)));
    dup[i] = y * (g * s);
  }
}

/* tanh form: x (1 + tanh(y)) / 2 = x sigmoid(2y), 2y = LINEAR (x + CUBIC x^3), without cancellation. */
#define LINEAR 1.59576912160573071176f /* 2 sqrt(2 / pi) */
#define CUBIC 0.044715f

PL_KERNEL gelu(size_t n, const float *x, float *out) {
  for (size_t i = pl_first(); i < n; i += pl_stride()) out[i] = x[i] * sigmoid(LINEAR * x[i] * (1 + CUBIC * x[i] * x[i]));
}

/* dx may be dout. */
PL_KERNEL gelu_gradient(size_t n, const float *x, const float *dout, float *dx) {
  for (size_t i = pl_first(); i < n; i += pl_stride()) {
    const float v = x[i], square = CUBIC * v * v, s = sigmoid(LINEAR * v * (1 + square));
    dx[i] = dout[i] * (s + v * (s * (1 - s)) * (LINEAR * (1 + 3 * square)));
  }
}

void pl_cuda_swiglu_forward(pl_device *d, size_t n, const float *gate, const float *up, float *out) {
  if (n > 0) PL_LAUNCH(d, swiglu, pl_cuda_blocks(n), PL_CUDA_BLOCK, n, gate, up, out);
}

void pl_cuda_swiglu_backward(pl_device *d, size_t n, const float *gate, const float *up, const float *dout, float *dgate, float *dup) {
  if (n > 0) PL_LAUNCH(d, swiglu_gradient, pl_cuda_blocks(n), PL_CUDA_BLOCK, n, gate, up, dout, dgate, dup);
}

void pl_cuda_gelu_forward(pl_device *d, size_t n, const float *x, float *out) {
  if (n > 0) PL_LAUNCH(d, gelu, pl_cuda_blocks(n), PL_CUDA_BLOCK, n, x, out);
}

void pl_cuda_gelu_backward(pl_device *d, size_t n, const float *x, const float *dout, float *dx) {
  if (n > 0) PL_LAUNCH(d, gelu_gradient, pl_cuda_blocks(n), PL_CUDA_BLOCK, n, x, dout, dx);
}
