/* Optimizer steps: AdamW (arXiv 1711.05101, as PyTorch) and SGD with momentum (as PyTorch). */
#include "core/device/cpu/kernels/kernels.h"
#include "core/device/cpu/kernels/math.h"

void PL_KERNEL(adamw)(pl_device *d, size_t n, const pl_real *g, double beta1, double beta2, double bias1, double bias2,
                      double eps, double lr, pl_real *m, pl_real *v, pl_real *u) {
  (void)d;
  const pl_real keep1 = (pl_real)beta1, take1 = (pl_real)(1 - beta1), keep2 = (pl_real)beta2;
  const pl_real take2 = (pl_real)(1 - beta2), step = (pl_real)(lr / bias1), root = (pl_real)(1 / sqrt(bias2));
  const pl_real floor = (pl_real)eps;
  PL_INDEPENDENT
  for (size_t i = 0; i < n; i++) {
    const pl_real first = keep1 * m[i] + take1 * g[i], second = keep2 * v[i] + take2 * g[i] * g[i];
    m[i] = first;
    v[i] = second;
    u[i] = step * first / (pl_sqrt(second) * root + floor);
  }
}

void PL_KERNEL(momentum)(pl_device *d, size_t n, const pl_real *g, double mu, double take, bool nesterov,
                         double take_direct, double lr, pl_real *buf, pl_real *u) {
  (void)d;
  const pl_real keep = (pl_real)mu, add = (pl_real)take, rate = (pl_real)lr;
  /* Both forms are direct g + ahead buf. */
  const pl_real direct = nesterov ? (pl_real)take_direct : 0, ahead = nesterov ? keep : 1;
  PL_INDEPENDENT
  for (size_t i = 0; i < n; i++) {
    const pl_real gradient = g[i], next = keep * buf[i] + add * gradient;
    buf[i] = next;
    u[i] = rate * (direct * gradient + ahead * next);
  }
}
