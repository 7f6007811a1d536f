/* Reductions of one row. Element i goes to lane i mod 16, the lanes are added in one fixed tree: the order depends on n
 * only, and the compiler may keep the lanes in vectors of any width. */
#ifndef PL_DEVICE_CPU_KERNELS_ROWS_H
#define PL_DEVICE_CPU_KERNELS_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/real.h"
#include "core/device/cpu/kernels/math.h"

enum { PL_LANES = 16 };

/* Before a loop over the lanes whose body is too much for gcc to turn 16 copies of it into vectors again. */
#define PL_LANE_LOOP _Pragma("GCC unroll 1")

static inline pl_real pl_lanes_sum(const pl_real lane[PL_LANES]) {
  pl_real eight[8], four[4];
  for (size_t l = 0; l < 8; l++) eight[l] = lane[l] + lane[l + 8];
  for (size_t l = 0; l < 4; l++) four[l] = eight[l] + eight[l + 4];
  return (four[0] + four[2]) + (four[1] + four[3]);
}

static inline pl_real pl_row_sum(size_t n, const pl_real *x) {
  pl_real lane[PL_LANES] = {0};
  size_t i = 0;
  for (; i + PL_LANES <= n; i += PL_LANES)
    for (size_t l = 0; l < PL_LANES; l++) lane[l] += x[i + l];
  for (size_t l = 0; i + l < n; l++) lane[l] += x[i + l];
  return pl_lanes_sum(lane);
}

/* Sum of (x - shift)^2. */
static inline pl_real pl_row_squares(size_t n, const pl_real *x, pl_real shift) {
  pl_real lane[PL_LANES] = {0};
  size_t i = 0;
  for (; i + PL_LANES <= n; i += PL_LANES)
    for (size_t l = 0; l < PL_LANES; l++) lane[l] += (x[i + l] - shift) * (x[i + l] - shift);
  for (size_t l = 0; i + l < n; l++) lane[l] += (x[i + l] - shift) * (x[i + l] - shift);
  return pl_lanes_sum(lane);
}

static inline pl_real pl_row_dot(size_t n, const pl_real *a, const pl_real *b) {
  pl_real lane[PL_LANES] = {0};
  size_t i = 0;
  for (; i + PL_LANES <= n; i += PL_LANES)
    for (size_t l = 0; l < PL_LANES; l++) lane[l] += a[i + l] * b[i + l];
  for (size_t l = 0; i + l < n; l++) lane[l] += a[i + l] * b[i + l];
  return pl_lanes_sum(lane);
}

/* Sum of a * b * (x - shift). */
static inline pl_real pl_row_dot3(size_t n, const pl_real *a, const pl_real *b, const pl_real *x, pl_real shift) {
  pl_real lane[PL_LANES] = {0};
  size_t i = 0;
  for (; i + PL_LANES <= n; i += PL_LANES)
    for (size_t l = 0; l < PL_LANES; l++) lane[l] += a[i + l] * b[i + l] * (x[i + l] - shift);
  for (size_t l = 0; i + l < n; l++) lane[l] += a[i + l] * b[i + l] * (x[i + l] - shift);
  return pl_lanes_sum(lane);
}

static inline pl_real larger(pl_real a, pl_real b) { return a > b ? a : b; }

/* The largest, NaN passed over: what is computed from the row shows it anyway. */
static inline pl_real pl_row_max(size_t n, const pl_real *x) {
  pl_real lane[PL_LANES];
  size_t i = 0;
  for (size_t l = 0; l < PL_LANES; l++) lane[l] = (pl_real)-INFINITY;
  for (; i + PL_LANES <= n; i += PL_LANES) {
    PL_LANE_LOOP
    for (size_t l = 0; l < PL_LANES; l++) lane[l] = larger(x[i + l], lane[l]);
  }
  for (size_t l = 0; i + l < n; l++) lane[l] = larger(x[i + l], lane[l]);
  for (size_t l = 0; l < 8; l++) lane[l] = larger(lane[l + 8], lane[l]);
  for (size_t l = 0; l < 4; l++) lane[l] = larger(lane[l + 4], lane[l]);
  return larger(larger(lane[0], lane[2]), larger(lane[1], lane[3]));
}

/* Sum of exp(x - shift); with `store`, which is a constant where it is called, x becomes its terms. */
static inline pl_real pl_row_exp(size_t n, pl_real shift, bool store, pl_real *x) {
  pl_real lane[PL_LANES] = {0};
  size_t i = 0;
  for (; i + PL_LANES <= n; i += PL_LANES) {
    PL_LANE_LOOP
    for (size_t l = 0; l < PL_LANES; l++) {
      const pl_real term = pl_exp(x[i + l] - shift);
      if (store) x[i + l] = term;
      lane[l] += term;
    }
  }
  for (size_t l = 0; i + l < n; l++) {
    const pl_real term = pl_exp(x[i + l] - shift);
    if (store) x[i + l] = term;
    lane[l] += term;
  }
  return pl_lanes_sum(lane);
}

#endif
