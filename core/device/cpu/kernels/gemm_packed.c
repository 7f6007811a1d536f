/* The product that several threads may compute at once. Blocks as in Goto & van de Geijn, "Anatomy of high-performance
 * matrix multiplication" (2008): a panel of b stays in the first-level cache, a block of a in the second. The sum of an
 * element runs along k in blocks of DEPTH, so its bits do not depend on where a caller cuts c. */
#include <string.h>

#include "core/device/cpu/kernels/parts.h"
#include "core/device/cpu/kernels/vec.h"

/* Rows of a tile: as many as there are registers for, and two for what is left below. ROWS are whole tiles. */
#if defined __AVX512F__
enum { TALL = 14, HALF = 8, LOW = 4, ROWS = 15 * TALL };
#elif defined __AVX2__
enum { TALL = 6, HALF = 4, LOW = 4, ROWS = 32 * TALL };
#else
enum { TALL = 4, HALF = 4, LOW = 4, ROWS = 48 * TALL };
#endif
/* Columns of a tile; depth and columns of a block. */
enum { WIDE = 2 * PL_VEC, DEPTH = 2048 / sizeof(pl_real), COLUMNS = 512 };

/* c[m,n] = alpha op(a) op(b) + beta c. With `upper`, tiles wholly below the diagonal of c may stay as they are. */
typedef struct product {
  bool transpose_a, transpose_b, upper;
  size_t m, n, k;
  pl_real alpha, beta;
  const pl_real *a, *b;
  size_t lda, ldb;
  pl_real *c;
  size_t ldc;
} product;

static size_t smaller(size_t x, size_t y) { return x < y ? x : y; }

static size_t height_of(size_t rows) { return rows > HALF ? TALL : rows > LOW ? HALF : LOW; }

/* A panel of `width` lines of which `lines` are there, to [depth][width] with zeros for the others. `along`: each line
 * is contiguous. The width, at least 4, is a constant where this is called. */
static inline void pack_panel(bool along, const pl_real *from, size_t ld, size_t lines, size_t width, size_t depth,
                              pl_real *to) {
  size_t p = 0;
  if (lines == width && !along)
    for (; p < depth; p++) memcpy(to + p * width, from + p * ld, width * sizeof *to);
  if (lines == width && along)
    for (; p + 4 <= depth; p += 4)
      for (size_t i = 0; i < width; i += 4) {
        const size_t line = smaller(i, width - 4); /* the last four may overlap those before */
        pl_four_transpose(from + line * ld + p, ld, width, to + p * width + line);
      }
  for (; p < depth; p++)
    for (size_t i = 0; i < width; i++) to[p * width + i] = i >= lines ? 0 : along ? from[i * ld + p] : from[p * ld + i];
}

static void pack_a(const product *p, size_t row, size_t rows, size_t at, size_t depth, pl_real *to) {
  for (size_t i = 0; i < rows; i += TALL, to += TALL * depth) {
    const bool along = !p->transpose_a;
    const pl_real *from = along ? p->a + (row + i) * p->lda + at : p->a + at * p->lda + row + i;
    const size_t lines = smaller(rows - i, TALL), height = height_of(lines);
    if (height == TALL)
      pack_panel(along, from, p->lda, lines, TALL, depth, to);
    else if (height == HALF)
      pack_panel(along, from, p->lda, lines, HALF, depth, to);
    else
      pack_panel(along, from, p->lda, lines, LOW, depth, to);
  }
}

static void pack_b(const product *p, size_t column, size_t columns, size_t at, size_t depth, pl_real *to) {
  for (size_t j = column; j < column + columns; j += WIDE, to += WIDE * depth) {
    const pl_real *from = p->transpose_b ? p->b + j * p->ldb + at : p->b + at * p->ldb + j;
    pack_panel(p->transpose_b, from, p->ldb, smaller(column + columns - j, WIDE), WIDE, depth, to);
  }
}

/* A tile that lies wholly inside c. */
static inline void store_whole(size_t height, const product *p, pl_real beta, pl_vec sum[TALL][2], pl_real *c) {
#pragma GCC unroll 14
  for (size_t i = 0; i < height; i++)
    for (size_t v = 0; v < 2; v++) {
      pl_real *at = c + i * p->ldc + v * PL_VEC;
      pl_vec x = p->alpha * sum[i][v];
      if (beta != 0) x += beta * pl_vec_load(at);
      pl_vec_store(at, x);
    }
}

static void store_edge(const product *p, pl_real beta, size_t rows, size_t columns, pl_real sum[TALL][WIDE],
                       pl_real *c) {
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < columns; j++) {
      pl_real x = p->alpha * sum[i][j];
      if (beta != 0) x += beta * c[i * p->ldc + j];
      c[i * p->ldc + j] = x;
    }
}

/* A panel of a with one of b. The height is a constant where this is called. */
static inline void multiply(size_t height, const product *p, size_t depth, const pl_real *a, const pl_real *b,
                            pl_real beta, size_t rows, size_t columns, pl_real *c) {
  pl_vec sum[TALL][2];
#pragma GCC unroll 14
  for (size_t i = 0; i < height; i++) sum[i][0] = sum[i][1] = (pl_vec){0};
  for (size_t l = 0; l < depth; l++, a += height, b += WIDE) {
    const pl_vec left = pl_vec_load(b), right = pl_vec_load(b + PL_VEC);
#pragma GCC unroll 14
    for (size_t i = 0; i < height; i++) {
      sum[i][0] = pl_vec_multiply_add(a[i], left, sum[i][0]);
      sum[i][1] = pl_vec_multiply_add(a[i], right, sum[i][1]);
    }
  }
  if (rows == height && columns >= WIDE) {
    store_whole(height, p, beta, sum, c);
    return;
  }
  pl_real edge[TALL][WIDE];
#pragma GCC unroll 14
  for (size_t i = 0; i < height; i++) {
    pl_vec_store(edge[i], sum[i][0]);
    pl_vec_store(edge[i] + PL_VEC, sum[i][1]);
  }
  store_edge(p, beta, rows, smaller(columns, WIDE), edge, c);
}

/* Every panel of a with every panel of b, into c from its element (row, column) on. */
static void multiply_block(const product *p, size_t depth, const pl_real *a, const pl_real *b, pl_real beta, size_t row,
                           size_t rows, size_t column, size_t columns) {
  for (size_t j = 0; j < columns; j += WIDE)
    for (size_t i = 0; i < rows; i += TALL) {
      if (p->upper && row + i >= column + j + WIDE) continue;
      const size_t here = smaller(rows - i, TALL), height = height_of(here);
      const pl_real *x = a + i * depth, *y = b + j * depth;
      pl_real *c = p->c + (row + i) * p->ldc + column + j;
      if (height == TALL)
        multiply(TALL, p, depth, x, y, beta, here, columns - j, c);
      else if (height == HALF)
        multiply(HALF, p, depth, x, y, beta, here, columns - j, c);
      else
        multiply(LOW, p, depth, x, y, beta, here, columns - j, c);
    }
}

/* An empty sum is a block without depth. */
static void multiply_all(const product *p, pl_real *room) {
  pl_real *packed_b = room + ROWS * DEPTH;
  size_t at = 0;
  do {
    const size_t depth = smaller(p->k - at, DEPTH);
    const pl_real beta = at > 0 ? 1 : p->beta;
    for (size_t j = 0; j < p->n; j += COLUMNS) {
      const size_t columns = smaller(p->n - j, COLUMNS);
      pack_b(p, j, columns, at, depth, packed_b);
      for (size_t i = 0; i < p->m; i += ROWS) {
        const size_t rows = smaller(p->m - i, ROWS);
        if (p->upper && i >= j + columns) break;
        pack_a(p, i, rows, at, depth, room);
        multiply_block(p, depth, room, packed_b, beta, i, rows, j, columns);
      }
    }
    at += depth;
  } while (at < p->k);
}

size_t PL_KERNEL(packed_size)(void) { return (size_t)(ROWS + COLUMNS) * DEPTH; }

void PL_KERNEL(gemm_packed)(pl_device *d, bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k,
                            pl_real alpha, const pl_real *a, size_t lda, const pl_real *b, size_t ldb, pl_real beta,
                            pl_real *c, size_t ldc) {
  const product p = {.transpose_a = transpose_a,
                     .transpose_b = transpose_b,
                     .m = m,
                     .n = n,
                     .k = k,
                     .alpha = alpha,
                     .beta = beta,
                     .a = a,
                     .b = b,
                     .lda = lda,
                     .ldb = ldb,
                     .c = c,
                     .ldc = ldc};
  multiply_all(&p, ((const pl_cpu_state *)d->state)->packed);
}

void PL_KERNEL(syrk_rows)(pl_device *d, size_t first, size_t end, bool transpose, size_t n, size_t k, pl_real alpha,
                          const pl_real *a, size_t lda, pl_real beta, pl_real *c, size_t ldc) {
  const pl_real *from = a + (transpose ? first : first * lda);
  const product p = {.transpose_a = transpose,
                     .transpose_b = !transpose,
                     .upper = true,
                     .m = end - first,
                     .n = n - first,
                     .k = k,
                     .alpha = alpha,
                     .beta = beta,
                     .a = from,
                     .b = from,
                     .lda = lda,
                     .ldb = lda,
                     .c = c + first * ldc + first,
                     .ldc = ldc};
  multiply_all(&p, ((const pl_cpu_state *)d->state)->packed);
}
