#include "optim/parts/newton_schulz.h"

#include "core/base/memory.h"

static const double coefficient_x = 3.4445, coefficient_a = -4.7750, coefficient_aa = 2.0315;

static size_t aligned(size_t elements) {
  size_t line = PL_ALIGN / sizeof(pl_real);
  return (elements + line - 1) / line * line;
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

size_t pl_newton_schulz_scratch(size_t rows, size_t cols) {
  size_t n = smaller(rows, cols);
  return aligned(rows * cols) + 2 * aligned(n * n);
}

/* The published form runs in bf16, and so does this when the device's precision is that. */
static bool is_low(const pl_device *d) { return d->precision == PL_PRECISION_BF16; }

/* c[n, n] = alpha y y^T + beta c, for y [n, k] or stored [k, n] (transposed). In full precision at half the cost. */
static void symmetric(pl_device *d, bool transposed, size_t n, size_t k, double alpha, const pl_real *y, size_t ld,
                      double beta, pl_real *c) {
  if (is_low(d))
    d->ops->gemm_low(d, transposed, !transposed, n, n, k, (pl_real)alpha, y, ld, y, ld, (pl_real)beta, c, n);
  else
    d->ops->syrk(d, transposed, n, k, (pl_real)alpha, y, ld, (pl_real)beta, c, n);
}

/* b = coefficient_a A + coefficient_aa A A for the Gram matrix A [n, n] of x's short side; A A = A A^T. */
static void polynomial(pl_device *d, size_t rows, size_t cols, const pl_real *x, pl_real *a, pl_real *b) {
  bool tall = rows > cols;
  size_t n = smaller(rows, cols), inner = tall ? rows : cols;
  symmetric(d, tall, n, inner, 1, x, cols, 0, a);
  d->ops->copy(d, b, a, n * n * sizeof *b);
  symmetric(d, false, n, n, coefficient_aa, a, n, coefficient_a, b);
}

const pl_real *pl_newton_schulz(pl_device *d, size_t rows, size_t cols, size_t steps, pl_real *x, pl_real *scratch) {
  const pl_ops *ops = d->ops;
  size_t n = smaller(rows, cols);
  pl_real *next = scratch, *a = scratch + aligned(rows * cols), *b = a + aligned(n * n);
  const bool tall = rows > cols;
  for (size_t i = 0; i < steps; i++) {
    polynomial(d, rows, cols, x, a, b);
    ops->copy(d, next, x, rows * cols * sizeof *next);
    (is_low(d) ? ops->gemm_low : ops->gemm)(d, false, false, rows, cols, n, 1, tall ? x : b, tall ? cols : n,
                                            tall ? b : x, tall ? n : cols, (pl_real)coefficient_x, next, cols);
    pl_real *old = x;
    x = next;
    next = old;
  }
  return x;
}
