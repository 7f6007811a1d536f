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

/* b = coefficient_a A + coefficient_aa A A for the Gram matrix A [n, n] of x's short side. */
static void polynomial(pl_device *d, size_t rows, size_t cols, const pl_real *x, pl_real *a, pl_real *b) {
  const pl_ops *ops = d->ops;
  bool tall = rows > cols;
  size_t n = smaller(rows, cols), inner = tall ? rows : cols;
  ops->gemm(d, tall, !tall, n, n, inner, 1, x, cols, x, cols, 0, a, n);
  ops->copy(d, b, a, n * n * sizeof *b);
  ops->gemm(d, false, false, n, n, n, (pl_real)coefficient_aa, a, n, a, n, (pl_real)coefficient_a, b, n);
}

const pl_real *pl_newton_schulz(pl_device *d, size_t rows, size_t cols, size_t steps, pl_real *x, pl_real *scratch) {
  const pl_ops *ops = d->ops;
  size_t n = smaller(rows, cols);
  pl_real *next = scratch, *a = scratch + aligned(rows * cols), *b = a + aligned(n * n);
  for (size_t i = 0; i < steps; i++) {
    polynomial(d, rows, cols, x, a, b);
    ops->copy(d, next, x, rows * cols * sizeof *next);
    if (rows > cols)
      ops->gemm(d, false, false, rows, cols, n, 1, x, cols, b, n, (pl_real)coefficient_x, next, cols);
    else
      ops->gemm(d, false, false, rows, cols, n, 1, b, n, x, cols, (pl_real)coefficient_x, next, cols);
    pl_real *old = x;
    x = next;
    next = old;
  }
  return x;
}
