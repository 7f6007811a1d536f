/* What the attention kernels share: the arguments, where a head's rows are, and the two ways to compute.
 *
 * All blocks of a head follow each other, so that they find its keys and values in the cache, and those with the most
 * to do come first. A head's number counts those of all
 * sequences. */
#ifndef PL_DEVICE_CUDA_KERNELS_ATTENTION_H
#define PL_DEVICE_CUDA_KERNELS_ATTENTION_H

#include "core/device/cuda/kernels/kernel.h"

/* Before a loop whose index chooses registers, and before one that is to have many loads on their way. */
#ifdef __CUDACC__
#define PL_UNROLL _Pragma("unroll")
#define PL_UNROLL_TEXT(text) _Pragma(#text)
#define PL_UNROLL_IF(condition) PL_UNROLL_TEXT(unroll((condition) ? 64 : 1))
#else
#define PL_UNROLL
#define PL_UNROLL_IF(condition)
#endif

/* What is read; the forward pass has q, k and v only. */
struct pl_attend {
  size_t batch;
  int time, heads, kv_heads, head_dim;
  float scale;
  bool quads; /* four elements at once: all rows, also those written, begin at 16 bytes and hold a multiple of 4 */
  const float *q, *k, *v, *dout;
  const float *lse;   /* [batch, heads, time] log-sum-exp of the scaled scores */
  const float *level; /* [batch, heads, time] rowsum(dout * out) */
};

/* Launch the kernels. */
void pl_attend_fp32_forward(pl_device *d, const pl_attend &a, float *out, float *lse);
void pl_attend_fp32_backward(pl_device *d, const pl_attend &a, float *dq, float *dk, float *dv);
/* With quads, head_dim up to PL_ATTEND_WIDEST. */
void pl_attend_bf16_forward(pl_device *d, const pl_attend &a, float *out, float *lse);
void pl_attend_bf16_backward(pl_device *d, const pl_attend &a, float *dq, float *dk, float *dv);

enum { PL_ATTEND_WIDEST = 128 };

/* Blocks of a grid with `slices` for each tile of `tile` rows of each head; `heads` is heads or kv_heads. More than a
 * grid may have stays more, which the launch refuses. */
static inline unsigned pl_attend_blocks(const pl_attend &a, int heads, int tile, int slices) {
  const size_t tiles = ((size_t)a.time + (size_t)tile - 1) / (size_t)tile;
  const size_t blocks = a.batch * (size_t)heads * tiles * (size_t)slices;
  return blocks < UINT32_MAX ? (unsigned)blocks : UINT32_MAX;
}

/* The rows of one head in one sequence: row t is at + t * stride. */
struct pl_rows {
  const float *at;
  size_t stride;
};

/* Of an array with `per` heads in each row: where the head begins, of all heads of all sequences. */
PL_INLINE size_t pl_head_place(const pl_attend &a, int per, unsigned head) {
  const unsigned sequence = head / (unsigned)per, dim = (unsigned)a.head_dim;
  return (size_t)sequence * (size_t)a.time * (size_t)per * dim + (size_t)(head % (unsigned)per) * dim;
}
PL_INLINE pl_rows pl_head_rows(const pl_attend &a, const float *x, int per, unsigned head) {
  return {x + pl_head_place(a, per, head), (size_t)per * (size_t)a.head_dim};
}

/* Query heads of a key-value head; they follow each other. */
PL_INLINE unsigned pl_group(const pl_attend &a) { return (unsigned)(a.heads / a.kv_heads); }

/* Of a row of [batch, heads, time], 0 beyond the last. */
PL_INLINE float pl_of_row(const pl_attend &a, const float *x, unsigned head, int row) {
  return row < a.time ? x[(size_t)head * (size_t)a.time + (size_t)row] : 0;
}

/* Four columns of a row; 0 beyond the last row or column. */
template <bool QUADS> PL_INLINE float4 pl_quad(const pl_attend &a, const pl_rows &r, int row, int column) {
  float4 x = {0, 0, 0, 0};
  if (row >= a.time || column >= a.head_dim) return x;
  const float *p = r.at + (size_t)row * r.stride + column;
  if (QUADS) return *reinterpret_cast<const float4 *>(p);
  x.x = p[0];
  if (column + 1 < a.head_dim) x.y = p[1];
  if (column + 2 < a.head_dim) x.z = p[2];
  if (column + 3 < a.head_dim) x.w = p[3];
  return x;
}

#endif
