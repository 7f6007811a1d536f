/* Optimizer steps: AdamW (arXiv 1711.05101, as PyTorch) and SGD with momentum (as PyTorch). */
#include "core/device/cuda/kernels/kernel.h"

typedef struct adam {
  float keep1, take1, keep2, take2, step, root, floor;
} adam;

PL_KERNEL adamw(size_t n, adam a, const float *g, float *m, float *v, float *u) {
  for (size_t i = pl_first(); i < n; i += pl_stride()) {
    const float first = a.keep1 * m[i] + a.take1 * g[i], second = a.keep2 * v[i] + a.take2 * g[i] * g[i];
    m[i] = first;
    v[i] = second;
    u[i] = a.step * first / (sqrtf(second) * a.root + a.floor);
  }
}

/* u = rate (direct g + ahead buf) with the buffer as it is afterwards. */
PL_KERNEL momentum(size_t n, float keep, float add, float direct, float ahead, float rate, const float *g, float *buf, float *u) {
  for (size_t i = pl_first(); i < n; i += pl_stride()) {
    const float gradient = g[i], next = keep * buf[i] + add * gradient;
    buf[i] = next;
    u[i] = rate * (direct * gradient + ahead * next);
  }
}

void pl_cuda_adamw(pl_device *d, size_t n, const float *g, double beta1, double beta2, double bias1, double bias2, double eps, double lr, float *m, float *v, float *u) {
  if (n == 0) return;
  adam a;
  a.keep1 = (float)beta1;
  a.take1 = (float)(1 - beta1);
  a.keep2 = (float)beta2;
  a.take2 = (float)(1 - beta2);
  a.step = (float)(lr / bias1);
  a.root = (float)(1 / sqrt(bias2));
  a.floor = (float)eps;
  PL_LAUNCH(d, adamw, pl_cuda_blocks(n), PL_CUDA_BLOCK, n, a, g, m, v, u);
}

void pl_cuda_momentum(pl_device *d, size_t n, const float *g, double mu, double take, bool nesterov, double take_direct, double lr, float *buf, float *u) {
  if (n == 0) return;
  const float keep = (float)mu, direct = nesterov ? (float)take_direct : 0, ahead = nesterov ? keep : 1;
  PL_LAUNCH(d, momentum, pl_cuda_blocks(n), PL_CUDA_BLOCK, n, keep, (float)take, direct, ahead, (float)lr, g, buf, u);
}
