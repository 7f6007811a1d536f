/* By AMX: tiles of 16 rows of 16 words. Four tiles of sums, from two of a and two of b. A panel of a stays in the
 * first-level cache while it meets all panels of b, which stay in the second. The order of additions depends on the
 * shape only. */
#include <sys/syscall.h>
#include <unistd.h>

#include "core/device/cpu/bf16/bf16.h"
#include "core/device/cpu/bf16/words.h"

enum {
  EDGE = 32, /* rows and columns of a panel */
  TILE_WORDS = PL_WORDS * PL_WORDS,
  DEPTH = 2 * PL_WORDS, /* of a tile, along k */
  KC = 512,             /* depth and columns of b of a block */
  NC = 1024,
  ARCH_REQ_XCOMP_PERM = 0x1023,
  XFEATURE_XTILEDATA = 18
};
_Static_assert(EDGE *KC / 2 <= PL_BF16_A_WORDS && NC * KC / 2 <= PL_BF16_B_WORDS, "the blocks fit");

bool pl_bf16_tiles_allowed(void) {
  unsigned a = 7, b = 0, c = 0, d = 0;
  __asm__ volatile("cpuid" : "+a"(a), "+b"(b), "+c"(c), "+d"(d));
  const bool there = (d >> 22 & 1) && (d >> 24 & 1); /* AMX-BF16, AMX-TILE */
  return there && syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

/* Static, as gcc takes _tile_loadconfig to read the first 8 bytes only and would drop the rest of a local one. */
static void configure(void) {
  static const struct {
    uint8_t palette, start, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
  } config = {.palette = 1,
              .bytes = {64, 64, 64, 64, 64, 64, 64, 64},
              .rows = {PL_WORDS, PL_WORDS, PL_WORDS, PL_WORDS, PL_WORDS, PL_WORDS, PL_WORDS, PL_WORDS}};
  _tile_loadconfig(&config);
}

/* A panel of a: for each 32 along k two tiles, whose rows are the lines. */
static void pack_a(bool along, const float *from, size_t ld, size_t lines, size_t k, uint32_t *to) {
  for (size_t p = 0; p < k; p += DEPTH)
    for (size_t i = 0; i < EDGE; i += PL_WORDS, to += TILE_WORDS) {
      const size_t here = lines > i ? pl_smaller(lines - i, PL_WORDS) : 0;
      __m512i r[PL_WORDS];
      if (along) {
        pl_words_along(from + i * ld + p, ld, here, k - p, r);
      } else {
        pl_words_across(from + p * ld + i, ld, here, k - p, r);
        pl_transpose_words(r);
      }
      for (size_t j = 0; j < PL_WORDS; j++) _mm512_storeu_si512(to + j * PL_WORDS, r[j]);
    }
}

/* One panel with another; sum[32, ld] is added to where `add`. */
static void multiply(size_t tiles, const uint32_t *a, const uint32_t *b, bool add, float *sum, size_t ld) {
  const size_t stride = ld * sizeof *sum;
  if (add) {
    _tile_loadd(0, sum, stride);
    _tile_loadd(1, sum + PL_WORDS, stride);
    _tile_loadd(2, sum + PL_WORDS * ld, stride);
    _tile_loadd(3, sum + PL_WORDS * ld + PL_WORDS, stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (size_t t = 0; t < tiles; t++, a += 2 * TILE_WORDS, b += PL_WORDS * EDGE) {
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 128);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + PL_WORDS, 128);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + TILE_WORDS, 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sum, stride);
  _tile_stored(1, sum + PL_WORDS, stride);
  _tile_stored(2, sum + PL_WORDS * ld, stride);
  _tile_stored(3, sum + PL_WORDS * ld + PL_WORDS, stride);
}

/* What is left of c to the right of and below its first element; sums go there straight where they can. */
static void multiply_into(size_t tiles, const uint32_t *a, const uint32_t *b, const pl_bf16_product *p, float beta,
                          size_t rows, size_t cols, float *c) {
  if (rows >= EDGE && cols >= EDGE && p->alpha == 1 && (beta == 0 || beta == 1)) {
    multiply(tiles, a, b, beta == 1, c, p->ldc);
    return;
  }
  float sum[EDGE * EDGE];
  multiply(tiles, a, b, false, sum, EDGE);
  for (size_t i = 0; i < pl_smaller(rows, EDGE); i++) {
    float *at = c + i * p->ldc;
    const float *from = sum + i * EDGE;
    pl_store_sums(p->alpha, beta, cols, _mm512_loadu_ps(from), at);
    if (cols > PL_WORDS)
      pl_store_sums(p->alpha, beta, cols - PL_WORDS, _mm512_loadu_ps(from + PL_WORDS), at + PL_WORDS);
  }
}

void pl_bf16_by_tiles(const pl_bf16_room *r, const pl_bf16_product *p) {
  configure();
  for (size_t l = 0; l < p->k; l += KC)
    for (size_t j = 0; j < p->n; j += NC) {
      const size_t depth = pl_smaller(p->k - l, KC), cols = pl_smaller(p->n - j, NC);
      const size_t tiles = (depth + DEPTH - 1) / DEPTH, pairs = tiles * PL_WORDS;
      const float beta = l > 0 ? 1 : p->beta;
      for (size_t x = 0; x < cols; x += EDGE)
        pl_pack_pairs(p->transpose_b, p->transpose_b ? p->b + (j + x) * p->ldb + l : p->b + l * p->ldb + j + x, p->ldb,
                      pl_smaller(cols - x, EDGE), depth, pairs, EDGE, r->b + x * pairs);
      for (size_t i = 0; i < p->m; i += EDGE) {
        pack_a(!p->transpose_a, p->transpose_a ? p->a + l * p->lda + i : p->a + i * p->lda + l, p->lda,
               pl_smaller(p->m - i, EDGE), depth, r->a);
        for (size_t x = 0; x < cols; x += EDGE)
          multiply_into(tiles, r->a, r->b + x * pairs, p, beta, p->m - i, cols - x, p->c + i * p->ldc + j + x);
      }
    }
  _tile_release();
}
