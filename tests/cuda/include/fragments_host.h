/* The operations of core/device/cuda/kernels/fragments.h in C++: the lanes give each other their words and take theirs
 * from where the PTX ISA says that they are. */
#ifndef PL_TESTS_CUDA_FRAGMENTS_HOST_H
#define PL_TESTS_CUDA_FRAGMENTS_HOST_H

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/cuda/grid.h"

/* To nearest, ties to even. */
static inline unsigned pl_host_bf16(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, sizeof bits);
  if (std::isnan(x)) return 0x7fffu;
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

static inline float pl_host_float(unsigned half) {
  const unsigned bits = half << 16;
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

static inline unsigned pl_pack_bf16(float low, float high) { return pl_host_bf16(low) | pl_host_bf16(high) << 16; }

static inline float pl_exp2(float x) { return std::exp2(x); }

/* The 32 rows of 16 bytes that the lanes name. */
static inline const char *pl_host_rows(const uint16_t *row) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) {
    std::fputs("ldmatrix: a row does not begin at 16 bytes\n", stderr);
    std::abort();
  }
  return static_cast<const char *>(pl_grid_exchange(0xffffffffu, row, 16));
}

static inline void pl_load_matrices(unsigned (&x)[4], const uint16_t *row) {
  const int lane = pl_grid_lane();
  const char *rows = pl_host_rows(row);
  for (int m = 0; m < 4; m++) std::memcpy(&x[m], rows + (8 * m + lane / 4) * 16 + lane % 4 * 4, sizeof x[m]);
}

static inline void pl_load_matrices_turned(unsigned (&x)[4], const uint16_t *row) {
  const int lane = pl_grid_lane();
  const char *rows = pl_host_rows(row);
  for (int m = 0; m < 4; m++) {
    uint16_t pair[2];
    for (int e = 0; e < 2; e++)
      std::memcpy(&pair[e], rows + (8 * m + lane % 4 * 2 + e) * 16 + lane / 4 * 2, sizeof pair[e]);
    x[m] = pair[0] | static_cast<unsigned>(pair[1]) << 16;
  }
}

struct pl_host_operands {
  unsigned a[4], b[2];
};

static inline void pl_mma_bf16(float (&c)[4], const unsigned (&a)[4], unsigned upper, unsigned lower) {
  const pl_host_operands mine = {{a[0], a[1], a[2], a[3]}, {upper, lower}};
  const int lane = pl_grid_lane();
  const char *all = static_cast<const char *>(pl_grid_exchange(0xffffffffu, &mine, sizeof mine));
  for (int pair = 0; pair < 8; pair++) { /* of the inner index: 2 pair and 2 pair + 1 */
    const int right = pair / 4;
    pl_host_operands left, one, two;
    std::memcpy(&left, all + static_cast<size_t>(lane / 4 * 4 + pair % 4) * sizeof left, sizeof left);
    std::memcpy(&one, all + static_cast<size_t>(lane % 4 * 8 + pair % 4) * sizeof one, sizeof one);
    std::memcpy(&two, all + static_cast<size_t>(lane % 4 * 8 + 4 + pair % 4) * sizeof two, sizeof two);
    for (int i = 0; i < 4; i++) {
      const unsigned x = left.a[i / 2 + 2 * right], y = i % 2 ? two.b[right] : one.b[right];
      c[i] += pl_host_float(x & 0xffffu) * pl_host_float(y & 0xffffu);
      c[i] += pl_host_float(x >> 16) * pl_host_float(y >> 16);
    }
  }
}

#endif
