/* Attention on the tensor cores, backward: a block for 64 keys makes their dk and dv, one for 64 query rows their dq.
 * Probabilities and score gradients stay in registers: their accumulators are the left operands of what follows. */
#include "core/device/cuda/kernels/attention_bf16.h"

enum { ROWS = 64, OWN = 16, THREADS = ROWS / OWN * PL_WARP, KEYS = 32, QUERIES = PL_WARP };

template <int WIDTH> PL_KERNEL __launch_bounds__(THREADS, WIDTH <= 64 ? 3 : 2) attention_query_gradient_bf16(pl_attend a, float *dq) {
  enum { N = KEYS / 8, STRIDE = PL_TILE_STRIDE(WIDTH) };
  PL_SHARED(uint4, room, PL_TILE_ROOM(WIDTH, 2 * KEYS));
  uint16_t *keys = reinterpret_cast<uint16_t *>(room), *values = keys + KEYS * STRIDE;
  const unsigned tiles = ((unsigned)a.time + ROWS - 1) / ROWS;
  const unsigned head = blockIdx.x / tiles, kv = head / pl_group(a);
  const int first = (int)(tiles - 1 - blockIdx.x % tiles) * ROWS, own = first + pl_own_warp() * OWN, end = first + ROWS < a.time ? first + ROWS : a.time;
  const pl_rows q = pl_head_rows(a, a.q, a.heads, head), k = pl_head_rows(a, a.k, a.kv_heads, kv), v = pl_head_rows(a, a.v, a.kv_heads, kv);
  const pl_rows dout = pl_head_rows(a, a.dout, a.heads, head);
  const int row = own + pl_own_lane() / 4;
  const float lse[2] = {PL_LOG2_E * pl_of_row(a, a.lse, head, row), PL_LOG2_E * pl_of_row(a, a.lse, head, row + 8)};
  const float level[2] = {pl_of_row(a, a.level, head, row), pl_of_row(a, a.level, head, row + 8)};
  const float unit = PL_LOG2_E * a.scale;
  pl_passage<WIDTH, KEYS, THREADS> next;
  pl_fragment left[1][WIDTH / 16], dleft[1][WIDTH / 16];
  float sum[1][WIDTH / 8][4];
  pl_bring(next, ROWS, a, q, first, keys); /* through the room of keys and values */
  __syncthreads();
  pl_take(left, keys + pl_own_warp() * OWN * STRIDE);
  __syncthreads();
  pl_bring(next, ROWS, a, dout, first, keys);
  __syncthreads();
  pl_take(dleft, keys + pl_own_warp() * OWN * STRIDE);
  pl_clear(sum);
  __syncthreads();
  pl_bring(next, KEYS, a, v, 0, values);
  for (int key = 0; key < end; key += KEYS) {
    const bool seen = key < own + OWN, more = key + KEYS < end;
    float s[1][N][4], ds[1][N][4];
    __syncthreads(); /* the values are there, earlier keys have been used */
    pl_fetch(next, a, k, key);
    if (seen) pl_scores(ds, dleft, values);
    pl_put(next, keys);
    __syncthreads();
    if (more) pl_fetch(next, a, v, key + KEYS);
    if (seen) {
      pl_scores(s, left, keys);
      if (key + KEYS > own + 1) pl_hide<false>(s[0], own - key);
      PL_UNROLL
      for (int i = 0; i < 4 * N; i++) {
        const int half = i % 4 / 2;
        ds[0][i / 4][i % 4] = pl_exp2(unit * s[0][i / 4][i % 4] - lse[half]) * (ds[0][i / 4][i % 4] - level[half]);
      }
      pl_spread(sum, ds, keys);
    }
    if (more) pl_put(next, values);
  }
  const float factor[2] = {a.scale, a.scale};
  pl_write(a, dq + pl_head_place(a, a.heads, head), q.stride, own, sum[0], factor);
}

/* Where the loop over the queries is: it goes over those that see the block's keys, for each query head in turn. */
struct cursor {
  unsigned head; /* of the group */
  int query;
};
PL_INLINE cursor after(const pl_attend &a, const cursor &c, int first) {
  if (c.query + QUERIES < a.time) return {c.head, c.query + QUERIES};
  return {c.head + 1, first};
}
/* The rows of that head, of which the group's first one is at `place`. */
PL_INLINE pl_rows member(const pl_attend &a, const float *x, size_t place, unsigned head) {
  return {x + place + (size_t)head * (size_t)a.head_dim, (size_t)a.heads * (size_t)a.head_dim};
}

/* Of what each lane has of one query: the two of n's columns. */
struct column_pair {
  float x[2];
};
PL_INLINE column_pair columns_of(float x, int n) {
  const int first = 8 * n + pl_own_lane() % 4 * 2;
  return {{__shfl_sync(0xffffffffu, x, first), __shfl_sync(0xffffffffu, x, first + 1)}};
}

/* Scores, keys by queries, to probabilities. */
template <int N> PL_INLINE void soften(float (&s)[N][4], float unit, float lse) {
  PL_UNROLL
  for (int n = 0; n < N; n++) {
    const column_pair shift = columns_of(lse, n);
    PL_UNROLL
    for (int i = 0; i < 4; i++) s[n][i] = pl_exp2(unit * s[n][i] - shift.x[i % 2]);
  }
}

/* dP to dS. */
template <int N> PL_INLINE void differ(float (&ds)[N][4], const float (&p)[N][4], float level) {
  PL_UNROLL
  for (int n = 0; n < N; n++) {
    const column_pair shift = columns_of(level, n);
    PL_UNROLL
    for (int i = 0; i < 4; i++) ds[n][i] = p[n][i] * (ds[n][i] - shift.x[i % 2]);
  }
}

/* Two tiles of queries, so that the next one can be put while the last one is used. */
template <int WIDTH> PL_KERNEL __launch_bounds__(THREADS, WIDTH <= 64 ? 3 : 2) attention_key_gradient_bf16(pl_attend a, float *dk, float *dv) {
  enum { N = QUERIES / 8, STRIDE = PL_TILE_STRIDE(WIDTH) };
  PL_SHARED(uint4, room, PL_TILE_ROOM(WIDTH, ROWS + 3 * QUERIES));
  uint16_t *keys = reinterpret_cast<uint16_t *>(room), *queries = keys + ROWS * STRIDE, *douts = queries + 2 * QUERIES * STRIDE;
  const unsigned tiles = ((unsigned)a.time + ROWS - 1) / ROWS;
  const unsigned head = blockIdx.x / tiles, group = pl_group(a);
  const int first = (int)(blockIdx.x % tiles) * ROWS, own = first + pl_own_warp() * OWN;
  const pl_rows k = pl_head_rows(a, a.k, a.kv_heads, head), v = pl_head_rows(a, a.v, a.kv_heads, head);
  const size_t place = pl_head_place(a, a.heads, head * group);
  const float unit = PL_LOG2_E * a.scale;
  pl_passage<WIDTH, QUERIES, THREADS> next;
  pl_fragment left[1][WIDTH / 16];
  float sum_k[1][WIDTH / 8][4], sum_v[1][WIDTH / 8][4];
  pl_bring(next, ROWS, a, k, first, keys);
  pl_bring(next, ROWS, a, v, first, queries); /* through the room of both tiles */
  __syncthreads();
  pl_take(left, queries + pl_own_warp() * OWN * STRIDE);
  pl_clear(sum_k);
  pl_clear(sum_v);
  __syncthreads();
  cursor at = {0, first};
  pl_bring(next, QUERIES, a, member(a, a.q, place, 0), first, queries);
  for (int step = 0; at.head < group; step++) {
    const cursor then = after(a, at, first);
    const bool seen = own < at.query + QUERIES, more = then.head < group;
    const uint16_t *query = queries + step % 2 * QUERIES * STRIDE;
    float p[1][N][4], ds[1][N][4];
    __syncthreads(); /* the queries are there, earlier gradients have been used */
    pl_fetch(next, a, member(a, a.dout, place, at.head), at.query);
    const float lse = PL_LOG2_E * pl_of_row(a, a.lse, head * group + at.head, at.query + pl_own_lane());
    const float level = pl_of_row(a, a.level, head * group + at.head, at.query + pl_own_lane());
    if (seen) {
      pl_scores_of_tile<WIDTH>(p, keys + pl_own_warp() * OWN * STRIDE, query);
      if (own + OWN > at.query + 1) pl_hide<true>(p[0], at.query - own);
      soften(p[0], unit, lse);
    }
    pl_put(next, douts);
    __syncthreads();
    if (more) pl_fetch(next, a, member(a, a.q, place, then.head), then.query);
    if (seen) {
      pl_scores(ds, left, douts);
      pl_spread(sum_v, p, douts);
      differ(ds[0], p[0], level);
      pl_spread(sum_k, ds, query);
    }
    if (more) pl_put(next, queries + (step + 1) % 2 * QUERIES * STRIDE);
    at = then;
  }
  const float one[2] = {1, 1}, factor[2] = {a.scale, a.scale};
  const size_t to = pl_head_place(a, a.kv_heads, head);
  pl_write(a, dv + to, v.stride, own, sum_v[0], one);
  pl_write(a, dk + to, k.stride, own, sum_k[0], factor);
}

template <int WIDTH> static void backward(pl_device *d, const pl_attend &a, float *dq, float *dk, float *dv) {
  PL_LAUNCH(d, attention_key_gradient_bf16<WIDTH>, pl_attend_blocks(a, a.kv_heads, ROWS, 1), THREADS, a, dk, dv);
  PL_LAUNCH(d, attention_query_gradient_bf16<WIDTH>, pl_attend_blocks(a, a.heads, ROWS, 1), THREADS, a, dq);
}

void pl_attend_bf16_backward(pl_device *d, const pl_attend &a, float *dq, float *dk, float *dv) {
  if (a.head_dim <= 16)
    backward<16>(d, a, dq, dk, dv);
  else if (a.head_dim <= 32)
    backward<32>(d, a, dq, dk, dv);
  else if (a.head_dim <= 64)
    backward<64>(d, a, dq, dk, dv);
  else if (a.head_dim <= 96)
    backward<96>(d, a, dq, dk, dv);
  else
    backward<128>(d, a, dq, dk, dv);
}
