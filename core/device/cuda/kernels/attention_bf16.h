/* Attention's products on the tensor cores: tiles of rows in shared memory, rounded to bfloat16 on their way there, and
 * warps that own 16 rows of an output each, or M times 16.
 *
 * The next tile is read into registers while the last one is worked on, and goes to shared memory afterwards. */
#ifndef PL_DEVICE_CUDA_KERNELS_ATTENTION_BF16_H
#define PL_DEVICE_CUDA_KERNELS_ATTENTION_BF16_H

#include "core/device/cuda/kernels/attention.h"
#include "core/device/cuda/kernels/fragments.h"

#define PL_LOG2_E 1.4426950408889634f

/* From row to row of a tile of WIDTH columns: an odd number of 16 bytes, so that 8 rows are in different banks. */
#define PL_TILE_STRIDE(width) ((width) + 8)

/* Room for tiles of so many rows, as words of 16 bytes. */
#define PL_TILE_ROOM(width, rows) ((rows)*PL_TILE_STRIDE(width) / 8)

PL_INLINE int pl_own_lane(void) { return (int)threadIdx.x % PL_WARP; }
PL_INLINE int pl_own_warp(void) { return (int)threadIdx.x / PL_WARP; }

/* Rows on their way, spread over the threads of the block: LANES threads side by side in a row, each with columns 4
 * LANES apart, and rows APART apart. Two neighbouring groups of LANES are four rows apart, in different banks. */
template <int WIDTH, int ROWS, int THREADS> struct pl_passage {
  enum { LANES = WIDTH < 32 ? WIDTH / 4 : 8, APART = THREADS / LANES, STEPS = ROWS / APART, PARTS = WIDTH / 4 / LANES };
  static_assert(STEPS * APART == ROWS && PARTS * LANES * 4 == WIDTH && APART % 8 == 0, "the same for every thread");
  float4 x[STEPS][PARTS];
};

/* This thread's first row and column. */
template <int WIDTH, int ROWS, int THREADS> PL_INLINE int pl_passage_row(const pl_passage<WIDTH, ROWS, THREADS> &p) {
  const int group = (int)threadIdx.x / p.LANES;
  return (group & ~5) | (group & 1) << 2 | (group >> 2 & 1);
}
template <int WIDTH, int ROWS, int THREADS> PL_INLINE int pl_passage_column(const pl_passage<WIDTH, ROWS, THREADS> &p) {
  return (int)threadIdx.x % p.LANES * 4;
}

/* Reads rows from `first` on; those beyond the last are 0. */
template <int WIDTH, int ROWS, int THREADS>
PL_INLINE void pl_fetch(pl_passage<WIDTH, ROWS, THREADS> &p, const pl_attend &a, const pl_rows &from, int first) {
  const int row = first + pl_passage_row(p), column = pl_passage_column(p);
  const float *at = from.at + (size_t)row * from.stride + column;
  PL_UNROLL
  for (int n = 0; n < p.STEPS; n++) {
    PL_UNROLL
    for (int c = 0; c < p.PARTS; c++) {
      const int ahead = c * p.LANES * 4;
      p.x[n][c] = {0, 0, 0, 0};
      if (row + n * p.APART < a.time && column + ahead < a.head_dim)
        p.x[n][c] = *reinterpret_cast<const float4 *>(at + ahead);
    }
    at += p.APART * from.stride;
  }
}

template <int WIDTH, int ROWS, int THREADS>
PL_INLINE void pl_put(const pl_passage<WIDTH, ROWS, THREADS> &p, uint16_t *tile) {
  uint16_t *to = tile + pl_passage_row(p) * PL_TILE_STRIDE(WIDTH) + pl_passage_column(p);
  PL_UNROLL
  for (int n = 0; n < p.STEPS; n++) {
    PL_UNROLL
    for (int c = 0; c < p.PARTS; c++) {
      const float4 x = p.x[n][c];
      const uint2 words = {pl_pack_bf16(x.x, x.y), pl_pack_bf16(x.z, x.w)};
      *reinterpret_cast<uint2 *>(to + n * p.APART * PL_TILE_STRIDE(WIDTH) + c * p.LANES * 4) = words;
    }
  }
}

/* `count` rows, which ROWS divides, by way of p. */
template <int WIDTH, int ROWS, int THREADS>
PL_INLINE void pl_bring(pl_passage<WIDTH, ROWS, THREADS> &p, int count, const pl_attend &a, const pl_rows &from,
                        int first, uint16_t *tile) {
  for (int row = 0; row < count; row += ROWS) {
    pl_fetch(p, a, from, first + row);
    pl_put(p, tile + row * PL_TILE_STRIDE(WIDTH));
  }
}

/* The first 16 M rows of a tile as left operands. */
template <int M, int STEPS> PL_INLINE void pl_take(pl_fragment (&left)[M][STEPS], const uint16_t *tile) {
  PL_UNROLL
  for (int m = 0; m < M; m++) {
    PL_UNROLL
    for (int k = 0; k < STEPS; k++)
      pl_load_left(left[m][k], tile + 16 * m * PL_TILE_STRIDE(16 * STEPS) + 16 * k, PL_TILE_STRIDE(16 * STEPS));
  }
}

template <int M, int N> PL_INLINE void pl_clear(float (&x)[M][N][4]) {
  PL_UNROLL
  for (int i = 0; i < M * N * 4; i++) x[i / (4 * N)][i / 4 % N][i % 4] = 0;
}

/* s = left rows times each row of a tile of 8 N rows. */
template <int M, int STEPS, int N>
PL_INLINE void pl_scores(float (&s)[M][N][4], const pl_fragment (&left)[M][STEPS], const uint16_t *tile) {
  enum { STRIDE = PL_TILE_STRIDE(16 * STEPS) };
  pl_clear(s);
  PL_UNROLL
  for (int k = 0; k < STEPS; k++) {
    PL_UNROLL
    for (int n = 0; n < N; n += 2) {
      pl_fragment right;
      pl_load_right_turned(right, tile + 8 * n * STRIDE + 16 * k, STRIDE);
      PL_UNROLL
      for (int m = 0; m < M; m++) pl_multiply(s[m][n], s[m][n + 1], left[m][k], right);
    }
  }
}

/* The same, the 16 left rows from a tile too. */
template <int WIDTH, int N>
PL_INLINE void pl_scores_of_tile(float (&s)[1][N][4], const uint16_t *left, const uint16_t *tile) {
  enum { STRIDE = PL_TILE_STRIDE(WIDTH) };
  pl_clear(s);
  PL_UNROLL
  for (int k = 0; k < WIDTH / 16; k++) {
    pl_fragment rows;
    pl_load_left(rows, left + 16 * k, STRIDE);
    PL_UNROLL
    for (int n = 0; n < N; n += 2) {
      pl_fragment right;
      pl_load_right_turned(right, tile + 8 * n * STRIDE + 16 * k, STRIDE);
      pl_multiply(s[0][n], s[0][n + 1], rows, right);
    }
  }
}

/* Hides the keys after the query's own. `lead` is the first query less the first key of the 16 rows and 8 N columns. */
template <bool KEYS_ARE_ROWS, int N> PL_INLINE void pl_hide(float (&s)[N][4], int lead) {
  PL_UNROLL
  for (int i = 0; i < 4 * N; i++) {
    const int row = pl_own_lane() / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + pl_own_lane() % 4 * 2 + i % 2;
    if ((KEYS_ARE_ROWS ? row - column : column - row) > lead) s[i / 4][i % 4] = -INFINITY;
  }
}

/* sum[rows][8 COLUMNS] += p[rows][8 N] times a tile of 8 N rows; p is rounded. */
template <int M, int N, int COLUMNS>
PL_INLINE void pl_spread(float (&sum)[M][COLUMNS][4], const float (&p)[M][N][4], const uint16_t *tile) {
  enum { STRIDE = PL_TILE_STRIDE(8 * COLUMNS) };
  PL_UNROLL
  for (int n = 0; n < N; n += 2) {
    pl_fragment left[M];
    PL_UNROLL
    for (int m = 0; m < M; m++) pl_pack_left(left[m], p[m][n], p[m][n + 1]);
    PL_UNROLL
    for (int c = 0; c < COLUMNS; c += 2) {
      pl_fragment right;
      pl_load_right(right, tile + 8 * n * STRIDE + 8 * c, STRIDE);
      PL_UNROLL
      for (int m = 0; m < M; m++) pl_multiply(sum[m][c], sum[m][c + 1], left[m], right);
    }
  }
}

/* 16 rows of a head from `first` on, times a factor for each of the lane's two rows. */
template <int COLUMNS>
PL_INLINE void pl_write(const pl_attend &a, float *to, size_t stride, int first, const float (&x)[COLUMNS][4],
                        const float (&factor)[2]) {
  PL_UNROLL
  for (int half = 0; half < 2; half++) {
    const int row = first + pl_own_lane() / 4 + 8 * half;
    if (row >= a.time) continue;
    PL_UNROLL
    for (int c = 0; c < COLUMNS; c++) {
      const int column = 8 * c + pl_own_lane() % 4 * 2;
      const float2 y = {factor[half] * x[c][2 * half], factor[half] * x[c][2 * half + 1]};
      float *p = to + (size_t)row * stride + column;
      if (column < a.head_dim) *reinterpret_cast<float2 *>(p) = y;
    }
  }
}

#endif
