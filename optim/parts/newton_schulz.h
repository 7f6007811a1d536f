/* The quintic Newton-Schulz iteration that brings a matrix's singular values near 1 (Muon, github KellerJordan/Muon).
 */
#ifndef PL_OPTIM_PARTS_NEWTON_SCHULZ_H
#define PL_OPTIM_PARTS_NEWTON_SCHULZ_H

#include "core/device/device.h"

/* Elements of scratch for a [rows, cols] matrix. */
size_t pl_newton_schulz_scratch(size_t rows, size_t cols);

/* X <- 3.4445 X + (-4.7750 A + 2.0315 A A) X with A = X X^T, `steps` times; tall matrices take the transposed form, so
 * that A has min(rows, cols)^2 elements. x [rows, cols] comes in with Frobenius norm at most about 1 and is
 * overwritten, like scratch (PL_ALIGN-aligned). Returns the result, which lies in x or in scratch. Zero gives zero.
 * Products are made in the device's precision (gemm_low). */
const pl_real *pl_newton_schulz(pl_device *d, size_t rows, size_t cols, size_t steps, pl_real *x, pl_real *scratch);

#endif
