/* Vectors of the working precision as wide as the instruction set's registers, for loops that gcc would not keep in
 * them by itself. Memory need not be aligned. */
#ifndef PL_DEVICE_CPU_KERNELS_VEC_H
#define PL_DEVICE_CPU_KERNELS_VEC_H

#include <stddef.h>
#include <stdint.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "core/base/real.h"

#if defined __AVX512F__
#define PL_VEC_BYTES 64
#elif defined __AVX2__
#define PL_VEC_BYTES 32
#else
#define PL_VEC_BYTES 16
#endif

enum { PL_VEC = PL_VEC_BYTES / sizeof(pl_real) }; /* numbers in a vector */
typedef pl_real pl_vec __attribute__((vector_size(PL_VEC_BYTES)));
typedef pl_real pl_vec_there __attribute__((vector_size(PL_VEC_BYTES), aligned(sizeof(pl_real)), may_alias));

static inline pl_vec pl_vec_load(const pl_real *x) { return *(const pl_vec_there *)x; }
static inline void pl_vec_store(pl_real *x, pl_vec v) { *(pl_vec_there *)x = v; }

/* x v + sum, rounded once where the instruction set can. */
static inline pl_vec pl_vec_multiply_add(pl_real x, pl_vec v, pl_vec sum) {
#if defined __AVX512F__ && defined PL_F64
  return (pl_vec)_mm512_fmadd_pd(_mm512_set1_pd(x), (__m512d)v, (__m512d)sum);
#elif defined __AVX512F__
  return (pl_vec)_mm512_fmadd_ps(_mm512_set1_ps(x), (__m512)v, (__m512)sum);
#elif defined __AVX2__ && defined PL_F64
  return (pl_vec)_mm256_fmadd_pd(_mm256_set1_pd(x), (__m256d)v, (__m256d)sum);
#elif defined __AVX2__
  return (pl_vec)_mm256_fmadd_ps(_mm256_set1_ps(x), (__m256)v, (__m256)sum);
#else
  return x * v + sum;
#endif
}

/* Four numbers, for transposing. */
#ifdef PL_F64
typedef int64_t pl_four_index __attribute__((vector_size(32)));
#else
typedef int32_t pl_four_index __attribute__((vector_size(16)));
#endif
typedef pl_real pl_four __attribute__((vector_size(4 * sizeof(pl_real))));
typedef pl_real pl_four_there __attribute__((vector_size(4 * sizeof(pl_real)), aligned(sizeof(pl_real)), may_alias));

/* Line i of a 4 x 4 square begins at from + i * ld; its column j goes to to + j * width. */
static inline void pl_four_transpose(const pl_real *from, size_t ld, size_t width, pl_real *to) {
  const pl_four a = *(const pl_four_there *)from, b = *(const pl_four_there *)(from + ld);
  const pl_four c = *(const pl_four_there *)(from + 2 * ld), d = *(const pl_four_there *)(from + 3 * ld);
  const pl_four_index low = {0, 4, 1, 5}, high = {2, 6, 3, 7}, first = {0, 1, 4, 5}, second = {2, 3, 6, 7};
  const pl_four ab = __builtin_shuffle(a, b, low), cd = __builtin_shuffle(c, d, low);
  const pl_four ab_high = __builtin_shuffle(a, b, high), cd_high = __builtin_shuffle(c, d, high);
  *(pl_four_there *)to = __builtin_shuffle(ab, cd, first);
  *(pl_four_there *)(to + width) = __builtin_shuffle(ab, cd, second);
  *(pl_four_there *)(to + 2 * width) = __builtin_shuffle(ab_high, cd_high, first);
  *(pl_four_there *)(to + 3 * width) = __builtin_shuffle(ab_high, cd_high, second);
}

#endif
