/* By vdpbf16ps: pairs of products are added to sums in fp32. Blocks as in Goto & van de Geijn, "Anatomy of
 * high-performance matrix multiplication" (2008): a panel of b stays in the first-level cache, a block of a in the
 * second. The order of additions depends on the shape only. */
#include "core/device/cpu/bf16/bf16.h"
#include "core/device/cpu/bf16/words.h"

enum {
  MR = 14, /* rows and columns of a tile: 28 registers of sums */
  NR = 32,
  KC = 384, /* depth, rows of a and columns of b of a block */
  MC = 15 * MR,
  NC = 1024
};
_Static_assert(MC *KC / 2 <= PL_BF16_A_WORDS && NC * KC / 2 <= PL_BF16_B_WORDS, "the blocks fit");

static void multiply(size_t pairs, const uint32_t *a, const uint32_t *b, __m512 sum[MR][2]) {
#pragma GCC unroll 14
  for (int i = 0; i < MR; i++) sum[i][0] = sum[i][1] = _mm512_setzero_ps();
  for (size_t p = 0; p < pairs; p++, a += MR, b += NR) {
    const __m512bh left = (__m512bh)_mm512_loadu_si512(b), right = (__m512bh)_mm512_loadu_si512(b + PL_WORDS);
#pragma GCC unroll 14
    for (int i = 0; i < MR; i++) {
      const __m512bh x = (__m512bh)_mm512_set1_epi32((int)a[i]);
      sum[i][0] = _mm512_dpbf16_ps(sum[i][0], x, left);
      sum[i][1] = _mm512_dpbf16_ps(sum[i][1], x, right);
    }
  }
}

/* The packed blocks, every panel of a with every panel of b, into c[rows, cols]. */
static void multiply_block(const pl_bf16_room *r, const pl_bf16_product *p, size_t pairs, float beta, size_t rows,
                           size_t cols, float *c) {
  for (size_t j = 0; j < cols; j += NR)
    for (size_t i = 0; i < rows; i += MR) {
      __m512 sum[MR][2];
      multiply(pairs, r->a + i * pairs, r->b + j * pairs, sum);
      for (size_t l = 0; l < pl_smaller(rows - i, MR); l++) {
        float *at = c + (i + l) * p->ldc + j;
        pl_store_sums(p->alpha, beta, cols - j, sum[l][0], at);
        if (cols - j > PL_WORDS) pl_store_sums(p->alpha, beta, cols - j - PL_WORDS, sum[l][1], at + PL_WORDS);
      }
    }
}

static void pack(bool along, const float *from, size_t ld, size_t lines, size_t k, size_t width, uint32_t *to) {
  const size_t pairs = (k + 1) / 2;
  for (size_t i = 0; i < lines; i += width)
    pl_pack_pairs(along, along ? from + i * ld : from + i, ld, pl_smaller(lines - i, width), k, pairs, width,
                  to + i * pairs);
}

void pl_bf16_by_vectors(const pl_bf16_room *r, const pl_bf16_product *p) {
  for (size_t l = 0; l < p->k; l += KC)
    for (size_t j = 0; j < p->n; j += NC) {
      const size_t depth = pl_smaller(p->k - l, KC), cols = pl_smaller(p->n - j, NC);
      pack(p->transpose_b, p->transpose_b ? p->b + j * p->ldb + l : p->b + l * p->ldb + j, p->ldb, cols, depth, NR,
           r->b);
      for (size_t i = 0; i < p->m; i += MC) {
        const size_t rows = pl_smaller(p->m - i, MC);
        pack(!p->transpose_a, p->transpose_a ? p->a + l * p->lda + i : p->a + i * p->lda + l, p->lda, rows, depth, MR,
             r->a);
        multiply_block(r, p, (depth + 1) / 2, l > 0 ? 1 : p->beta, rows, cols, p->c + i * p->ldc + j);
      }
    }
}
