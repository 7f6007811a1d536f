/* Attention on the tensor cores, forward: a block for 128 query rows, tiles of 64 keys. */
#include "core/device/cuda/kernels/attention_bf16.h"

enum { ROWS = 128, KEYS = 64 };

/* A warp has M times 16 rows: 32 of narrow heads, which share what they read of keys and values; wide ones would not
 * leave enough registers. */
template <int WIDTH> struct forward_shape {
  enum { M = WIDTH <= 64 ? 2 : 1, OWN = 16 * M, THREADS = ROWS / OWN * PL_WARP };
};

/* The two rows of a lane. */
struct row_pair {
  float top[2], sum[2]; /* of scores before they are scaled; of this lane's keys */
};

/* Over the four lanes that share rows. */
PL_INLINE float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
PL_INLINE float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/* Scores to 2^(unit (score - top)) with the new maxima; what was summed with the old ones is multiplied by factor. */
template <int N> PL_INLINE void soften(float (&s)[N][4], float unit, row_pair &r, float (&factor)[2]) {
  PL_UNROLL
  for (int half = 0; half < 2; half++) {
    float most = r.top[half];
    PL_UNROLL
    for (int n = 0; n < N; n++) most = fmaxf(most, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
    most = quad_max(most);
    factor[half] = pl_exp2(unit * (r.top[half] - most));
    r.top[half] = most;
    r.sum[half] *= factor[half];
    PL_UNROLL
    for (int i = 0; i < 2 * N; i++) {
      float &x = s[i / 2][2 * half + i % 2];
      x = pl_exp2(unit * x - unit * most);
      r.sum[half] += x;
    }
  }
}

template <int N> PL_INLINE void scale(float (&o)[N][4], const float (&factor)[2]) {
  PL_UNROLL
  for (int i = 0; i < 4 * N; i++) o[i / 4][i % 4] *= factor[i % 4 / 2];
}

template <int WIDTH> PL_KERNEL __launch_bounds__(forward_shape<WIDTH>::THREADS) attention_forward_bf16(pl_attend a, float *out, float *lse) {
  enum { M = forward_shape<WIDTH>::M, OWN = forward_shape<WIDTH>::OWN, STRIDE = PL_TILE_STRIDE(WIDTH) };
  PL_SHARED(uint4, room, PL_TILE_ROOM(WIDTH, ROWS));
  uint16_t *keys = reinterpret_cast<uint16_t *>(room), *values = keys + KEYS * STRIDE;
  const unsigned tiles = ((unsigned)a.time + ROWS - 1) / ROWS;
  const unsigned head = blockIdx.x / tiles, kv = head / pl_group(a);
  const int first = (int)(tiles - 1 - blockIdx.x % tiles) * ROWS, own = first + pl_own_warp() * OWN, end = first + ROWS < a.time ? first + ROWS : a.time;
  const pl_rows q = pl_head_rows(a, a.q, a.heads, head), k = pl_head_rows(a, a.k, a.kv_heads, kv), v = pl_head_rows(a, a.v, a.kv_heads, kv);
  const float unit = PL_LOG2_E * a.scale;
  pl_passage<WIDTH, KEYS, forward_shape<WIDTH>::THREADS> next;
  pl_fragment left[M][WIDTH / 16];
  float o[M][WIDTH / 8][4];
  row_pair rows[M];
  pl_bring(next, ROWS, a, q, first, keys); /* through the room of keys and values */
  __syncthreads();
  pl_take(left, keys + pl_own_warp() * OWN * STRIDE);
  pl_clear(o);
  PL_UNROLL
  for (int m = 0; m < M; m++) rows[m] = {{-INFINITY, -INFINITY}, {0, 0}};
  __syncthreads();
  pl_bring(next, KEYS, a, k, 0, keys);
  for (int key = 0; key < end; key += KEYS) {
    const bool seen = key < own + OWN, more = key + KEYS < end;
    float s[M][KEYS / 8][4];
    __syncthreads(); /* the keys are there, earlier values have been used */
    pl_fetch(next, a, v, key);
    if (seen) pl_scores(s, left, keys);
    pl_put(next, values);
    __syncthreads();
    if (more) pl_fetch(next, a, k, key + KEYS);
    if (seen) {
      PL_UNROLL
      for (int m = 0; m < M; m++) {
        float factor[2];
        if (key + KEYS > own + 16 * m + 1) pl_hide<false>(s[m], own + 16 * m - key);
        soften(s[m], unit, rows[m], factor);
        scale(o[m], factor);
      }
      pl_spread(o, s, values);
    }
    if (more) pl_put(next, keys);
  }
  PL_UNROLL
  for (int m = 0; m < M; m++) {
    float inverse[2];
    PL_UNROLL
    for (int half = 0; half < 2; half++) {
      const float sum = quad_sum(rows[m].sum[half]);
      const int row = own + 16 * m + pl_own_lane() / 4 + 8 * half;
      inverse[half] = 1 / sum;
      if (pl_own_lane() % 4 == 0 && row < a.time) lse[(size_t)head * (size_t)a.time + (size_t)row] = a.scale * rows[m].top[half] + logf(sum);
    }
    pl_write(a, out + pl_head_place(a, a.heads, head), q.stride, own + 16 * m, o[m], inverse);
  }
}

template <int WIDTH> static void forward(pl_device *d, const pl_attend &a, float *out, float *lse) {
  PL_LAUNCH(d, attention_forward_bf16<WIDTH>, pl_attend_blocks(a, a.heads, ROWS, 1), forward_shape<WIDTH>::THREADS, a, out, lse);
}

void pl_attend_bf16_forward(pl_device *d, const pl_attend &a, float *out, float *lse) {
  if (a.head_dim <= 16)
    forward<16>(d, a, out, lse);
  else if (a.head_dim <= 32)
    forward<32>(d, a, out, lse);
  else if (a.head_dim <= 64)
    forward<64>(d, a, out, lse);
  else if (a.head_dim <= 96)
    forward<96>(d, a, out, lse);
  else
    forward<128>(d, a, out, lse);
}
