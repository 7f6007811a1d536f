/* Numbers rounded to bfloat16, in words of two neighbours along k, as the bf16 instructions take them. */
#ifndef PL_DEVICE_CPU_BF16_WORDS_H
#define PL_DEVICE_CPU_BF16_WORDS_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PL_WORDS = 16 }; /* of a vector */

static inline size_t pl_smaller(size_t x, size_t y) { return x < y ? x : y; }
static inline __mmask16 pl_first_words(size_t n) { return (__mmask16)(n >= PL_WORDS ? 0xffff : (1u << n) - 1); }

/* Transposes 16 x 16 words. */
static inline void pl_transpose_words(__m512i r[PL_WORDS]) {
  __m512i t[PL_WORDS];
  for (int i = 0; i < 8; i++) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 4; i++) {
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
  for (int j = 0; j < 4; j++) {
    t[j] = _mm512_shuffle_i32x4(r[j], r[4 + j], 0x88);
    t[4 + j] = _mm512_shuffle_i32x4(r[j], r[4 + j], 0xdd);
    t[8 + j] = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0x88);
    t[12 + j] = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0xdd);
  }
  for (int j = 0; j < 4; j++) {
    r[j] = _mm512_shuffle_i32x4(t[j], t[8 + j], 0x88);
    r[8 + j] = _mm512_shuffle_i32x4(t[j], t[8 + j], 0xdd);
    r[4 + j] = _mm512_shuffle_i32x4(t[4 + j], t[12 + j], 0x88);
    r[12 + j] = _mm512_shuffle_i32x4(t[4 + j], t[12 + j], 0xdd);
  }
}

/* Of up to 16 lines, the first 32 numbers along k, or k where that is less: r[i] is line i. */
static inline void pl_words_along(const float *from, size_t ld, size_t lines, size_t k, __m512i r[PL_WORDS]) {
  const __mmask16 low = pl_first_words(k), high = pl_first_words(k > PL_WORDS ? k - PL_WORDS : 0);
  for (size_t i = 0; i < PL_WORDS; i++) {
    const float *x = from + i * ld;
    if (i < lines)
      r[i] = (__m512i)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(high, x + PL_WORDS), _mm512_maskz_loadu_ps(low, x));
    else
      r[i] = _mm512_setzero_si512();
  }
}

/* The same numbers of lines that lie side by side, a row of them for each k: r[j] is the j-th word of every line. */
static inline void pl_words_across(const float *from, size_t ld, size_t lines, size_t k, __m512i r[PL_WORDS]) {
  const __mmask16 loaded = pl_first_words(lines);
  for (size_t j = 0; j < PL_WORDS; j++) {
    const float *x = from + 2 * j * ld;
    const __m512 even = 2 * j < k ? _mm512_maskz_loadu_ps(loaded, x) : _mm512_setzero_ps();
    const __m512 odd = 2 * j + 1 < k ? _mm512_maskz_loadu_ps(loaded, x + ld) : _mm512_setzero_ps();
    const __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(even));
    const __m512i high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(odd));
    r[j] = _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
  }
}

/* A panel of `width` lines (at most 16, or a multiple of it), of which `lines` exist: words [k / 2][width], and zeros
 * up to `pairs` of them. `along`: each line is contiguous. */
static inline void pl_pack_pairs(bool along, const float *from, size_t ld, size_t lines, size_t k, size_t pairs,
                                 size_t width, uint32_t *to) {
  for (size_t i = 0; i < width; i += PL_WORDS) {
    const size_t here = lines > i ? pl_smaller(lines - i, PL_WORDS) : 0;
    const __mmask16 stored = pl_first_words(width - i);
    for (size_t p = 0; p < pairs; p += PL_WORDS) {
      const size_t left = k > 2 * p ? k - 2 * p : 0;
      __m512i r[PL_WORDS];
      if (along) {
        pl_words_along(from + i * ld + 2 * p, ld, here, left, r);
        pl_transpose_words(r);
      } else {
        pl_words_across(from + 2 * p * ld + i, ld, here, left, r);
      }
      for (size_t j = 0; j < pl_smaller(pairs - p, PL_WORDS); j++)
        _mm512_mask_storeu_epi32(to + (p + j) * width + i, stored, r[j]);
    }
  }
}

/* c = alpha * sum + beta * c for the first `cols` of 16 columns; beta 0 does not read c. */
static inline void pl_store_sums(float alpha, float beta, size_t cols, __m512 sum, float *c) {
  const __mmask16 mask = pl_first_words(cols);
  sum = _mm512_mul_ps(_mm512_set1_ps(alpha), sum);
  if (beta != 0) sum = _mm512_fmadd_ps(_mm512_set1_ps(beta), _mm512_maskz_loadu_ps(mask, c), sum);
  _mm512_mask_storeu_ps(c, mask, sum);
}

#endif
