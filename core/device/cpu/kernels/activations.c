#include "core/device/cpu/kernels/kernels.h"
#include "core/device/cpu/kernels/math.h"

void PL_KERNEL(swiglu_forward)(pl_device *d, size_t n, const pl_real *gate, const pl_real *up, pl_real *out) {
  (void)d;
  PL_INDEPENDENT
  for (size_t i = 0; i < n; i++) out[i] = gate[i] * pl_sigmoid(gate[i]) * up[i];
}

void PL_KERNEL(swiglu_backward)(pl_device *d, size_t n, const pl_real *gate, const pl_real *up, const pl_real *dout,
                                pl_real *dgate, pl_real *dup) {
  (void)d;
  PL_INDEPENDENT
  for (size_t i = 0; i < n; i++) {
    const pl_real g = gate[i], u = up[i], y = dout[i], s = pl_sigmoid(g);
    dgate[i] = y * u * (s * (1 + g * (1 - s)));
    dup[i] = y * (g * s);
  }
}

/* tanh form: x (1 + tanh(y)) / 2 = x sigmoid(2y), 2y = GELU_LINEAR (x + GELU_CUBIC x^3), without cancellation. */
static const pl_real GELU_LINEAR = (pl_real)1.59576912160573071176; /* 2 sqrt(2 / pi) */
static const pl_real GELU_CUBIC = (pl_real)0.044715;

void PL_KERNEL(gelu_forward)(pl_device *d, size_t n, const pl_real *x, pl_real *out) {
  (void)d;
  PL_INDEPENDENT
  for (size_t i = 0; i < n; i++) out[i] = x[i] * pl_sigmoid(GELU_LINEAR * x[i] * (1 + GELU_CUBIC * x[i] * x[i]));
}

void PL_KERNEL(gelu_backward)(pl_device *d, size_t n, const pl_real *x, const pl_real *dout, pl_real *dx) {
  (void)d;
  PL_INDEPENDENT
  for (size_t i = 0; i < n; i++) {
    const pl_real v = x[i], square = GELU_CUBIC * v * v;
    const pl_real s = pl_sigmoid(GELU_LINEAR * v * (1 + square));
    dx[i] = dout[i] * (s + v * (s * (1 - s)) * (GELU_LINEAR * (1 + 3 * square)));
  }
}
