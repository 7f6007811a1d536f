/* Causal attention without a time x time matrix in memory (FlashAttention-2, arXiv 2307.08691): blocks of query rows go
 * over the keys once, keeping each row's maximum and sum; backward makes the probabilities again from the log-sum-exp.
 * No atomics: one kernel makes dk and dv, its blocks going over the queries, and one makes dq.
 *
 * With precision fp32 all products are in full precision. With bf16 they are made by the tensor cores where head_dim is
 * a multiple of 4 and at most 128 and all arrays begin at 16 bytes: q, k, v, dout, the probabilities and the gradients
 * of the scores are rounded to bfloat16 (to nearest, ties to even) as they enter a product; sums, exponentials and what
 * is written keep full precision. (The CPU device's attention rounds nothing.) */
#include <initializer_list>

#include "core/device/cuda/kernels/attention.h"
#include "core/device/cuda/kernels/fragments.h"

/* level = rowsum(dout * out), which is rowsum(dP * P); dout as the products of dP see it. A warp for each row. */
PL_KERNEL attention_level(pl_attend a, size_t rows, bool low, const float *out, float *level) {
  const size_t r = (size_t)blockIdx.x * PL_WARPS + threadIdx.x / PL_WARP, heads = (size_t)a.heads, time = (size_t)a.time;
  if (r >= rows) return;
  const size_t width = (size_t)a.head_dim, lane = threadIdx.x % PL_WARP, token = r / heads;
  const float *dout = a.dout + r * width;
  float sum = 0;
  for (size_t j = lane; j < width; j += PL_WARP) sum += (low ? pl_round_bf16(dout[j]) : dout[j]) * out[r * width + j];
  sum = pl_warp_sum(sum);
  if (lane == 0) level[(token / time * heads + r % heads) * time + token % time] = sum;
}

static size_t rows_of(const pl_attention *s) { return s->batch * s->heads * s->time; }

static bool aligned(std::initializer_list<const float *> arrays) {
  for (const float *x : arrays)
    if (reinterpret_cast<uintptr_t>(x) % sizeof(float4) != 0) return false;
  return true;
}

static bool on_tensor_cores(const pl_device *d, const pl_attend &a) { return d->precision == PL_PRECISION_BF16 && a.quads && a.head_dim <= PL_ATTEND_WIDEST; }

static pl_attend of_shape(const pl_attention *s, const float *q, const float *k, const float *v) {
  pl_attend a = {};
  a.batch = s->batch;
  a.time = (int)s->time;
  a.heads = (int)s->heads;
  a.kv_heads = (int)s->kv_heads;
  a.head_dim = (int)s->head_dim;
  a.scale = (float)(1.0 / sqrt((double)s->head_dim));
  a.q = q;
  a.k = k;
  a.v = v;
  return a;
}

size_t pl_cuda_attention_saved_size(const pl_attention *s) { return rows_of(s); }

/* `level`, of the backward pass. */
size_t pl_cuda_attention_scratch_size(pl_device *d, const pl_attention *s) {
  (void)d;
  return rows_of(s);
}

void pl_cuda_attention_forward(pl_device *d, const pl_attention *s, const float *q, const float *k, const float *v, float *out, float *saved, float *scratch) {
  (void)scratch;
  if (rows_of(s) == 0) return;
  pl_attend a = of_shape(s, q, k, v);
  a.quads = s->head_dim % 4 == 0 && aligned({q, k, v, out});
  if (on_tensor_cores(d, a))
    pl_attend_bf16_forward(d, a, out, saved);
  else
    pl_attend_fp32_forward(d, a, out, saved);
}

void pl_cuda_attention_backward(pl_device *d, const pl_attention *s, const float *q, const float *k, const float *v, const float *out, const float *saved, const float *dout, float *dq,
                                float *dk, float *dv, float *scratch) {
  const size_t rows = rows_of(s);
  if (rows == 0) return;
  pl_attend a = of_shape(s, q, k, v);
  a.quads = s->head_dim % 4 == 0 && aligned({q, k, v, dout, dq, dk, dv});
  a.dout = dout;
  a.lse = saved;
  a.level = scratch;
  PL_LAUNCH(d, attention_level, (unsigned)((rows + PL_WARPS - 1) / PL_WARPS), PL_CUDA_BLOCK, a, rows, on_tensor_cores(d, a), out, scratch);
  if (on_tensor_cores(d, a))
    pl_attend_bf16_backward(d, a, dq, dk, dv);
  else
    pl_attend_fp32_backward(d, a, dq, dk, dv);
}
