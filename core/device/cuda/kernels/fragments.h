/* What a warp does together on the tensor cores, one function for each operation: sm_80 and later. The tests'
 * <cuda_runtime.h> brings C++ of the same names; nothing else depends on what a fragment looks like inside.
 *
 * A matrix of 8 x 8 bfloat16 is one word of each lane: lane l has row l / 4, columns 2 (l % 4), in the lower half, and
 * 2 (l % 4) + 1. The accumulators of 8 columns are, of each lane, rows l / 4 (c[0], c[1]) and l / 4 + 8 (c[2], c[3]) in
 * those columns, so that two of them, packed, are a left operand (PTX ISA, "Matrix Fragments for mma.m16n8k16"). All
 * lanes of the warp must call. */
#ifndef PL_DEVICE_CUDA_KERNELS_FRAGMENTS_H
#define PL_DEVICE_CUDA_KERNELS_FRAGMENTS_H

#include "core/device/cuda/kernels/kernel.h"

#ifdef __CUDACC__
/* Two numbers rounded to bfloat16, to nearest, ties to even. */
PL_INLINE unsigned pl_pack_bf16(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

/* 2^x, to about 2^-22; results that are subnormal are 0. */
PL_INLINE float pl_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/* Four matrices from shared memory: lane l names row l % 8 of matrix l / 8, 8 elements that begin at 16 bytes. */
PL_INLINE void pl_load_matrices(unsigned (&x)[4], const uint16_t *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"((unsigned)__cvta_generic_to_shared(row))
               : "memory");
}

/* The same, each matrix transposed on the way. */
PL_INLINE void pl_load_matrices_turned(unsigned (&x)[4], const uint16_t *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"((unsigned)__cvta_generic_to_shared(row))
               : "memory");
}

/* c[16,8] += a[16,16] b[16,8]: of a the quarters above left, below left, above right, below right; of b, stored by
 * columns, the rows 0 to 7 and 8 to 15. */
PL_INLINE void pl_mma_bf16(float (&c)[4], const unsigned (&a)[4], unsigned upper, unsigned lower) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(upper), "r"(lower));
}
#endif

/* The number that pl_pack_bf16 makes of x. */
PL_INLINE float pl_round_bf16(float x) { return __int_as_float((int)(pl_pack_bf16(x, 0) << 16)); }

/* A left operand, 16 x 16, or a right one, 16 x 16 as two of 16 x 8. */
struct pl_fragment {
  unsigned x[4];
};

/* A left operand: 16 rows of a tile with the row stride `stride`, from its first element on. */
PL_INLINE void pl_load_left(pl_fragment &f, const uint16_t *tile, int stride) {
  const int lane = (int)threadIdx.x % PL_WARP;
  pl_load_matrices(f.x, tile + lane % 16 * stride + lane / 16 * 8);
}

/* A right operand: the transpose of 16 rows of a tile; or these rows themselves. Columns 0 to 7 are x[0] and x[1]. */
PL_INLINE void pl_load_right_turned(pl_fragment &f, const uint16_t *tile, int stride) {
  const int lane = (int)threadIdx.x % PL_WARP;
  pl_load_matrices(f.x, tile + (lane / 16 * 8 + lane % 8) * stride + lane / 8 % 2 * 8);
}
PL_INLINE void pl_load_right(pl_fragment &f, const uint16_t *tile, int stride) {
  const int lane = (int)threadIdx.x % PL_WARP;
  pl_load_matrices_turned(f.x, tile + lane % 16 * stride + lane / 16 * 8);
}

/* c[16,16] += a b, c as two of 8 columns. */
PL_INLINE void pl_multiply(float (&low)[4], float (&high)[4], const pl_fragment &a, const pl_fragment &b) {
  pl_mma_bf16(low, a.x, b.x[0], b.x[1]);
  pl_mma_bf16(high, a.x, b.x[2], b.x[3]);
}

/* Accumulators of 16 columns as a left operand. */
PL_INLINE void pl_pack_left(pl_fragment &f, const float (&low)[4], const float (&high)[4]) {
  f.x[0] = pl_pack_bf16(low[0], low[1]);
  f.x[1] = pl_pack_bf16(low[2], low[3]);
  f.x[2] = pl_pack_bf16(high[0], high[1]);
  f.x[3] = pl_pack_bf16(high[2], high[3]);
}

#endif
