/* Attention in full precision: a block of 256 threads makes 64 x 64 scores, 4 x 4 of each thread, and multiplies them with
 * rows. Heads wider than WIDTH are made in slices of WIDTH columns by blocks of their own, each of which makes the
 * scores again; so any head_dim goes. */
#include "core/device/cuda/kernels/attention.h"

/* SIDE: rows and columns of a thread; DEPTH: columns of the operands of scores that are there at once. */
enum { TILE = 64, SIDE = 4, ACROSS = TILE / SIDE, DEPTH = 32, ROOM = 2 * DEPTH * TILE };
static_assert(ACROSS * ACROSS == PL_CUDA_BLOCK, "a thread for each 4 x 4");

PL_INLINE int own_row(void) { return SIDE * ((int)threadIdx.x / ACROSS); }
PL_INLINE int own_column(void) { return SIDE * ((int)threadIdx.x % ACROSS); }

/* Where (k, i) is in an array [k][TILE]. Groups of four change places with k, so that neither those who write columns
 * nor those who read rows meet in a bank; the four stay together. */
PL_INLINE int place(int k, int i) { return k * TILE + (i ^ (k >> 2 & 7) << 2); }

PL_INLINE float4 four(const float *x) { return *reinterpret_cast<const float4 *>(x); }
PL_INLINE void put_four(float *x, float4 y) { *reinterpret_cast<float4 *>(x) = y; }

/* DEPTH columns of TILE rows, transposed: to[column][row]. */
template <bool QUADS> PL_INLINE void load_turned(const pl_attend &a, const pl_rows &r, int first_row, int first_column, float *to) {
  PL_UNROLL_IF(QUADS)
  for (int n = 0; n < TILE * DEPTH / 4 / PL_CUDA_BLOCK; n++) {
    const int i = n * PL_CUDA_BLOCK + (int)threadIdx.x, row = i / (DEPTH / 4), k = i % (DEPTH / 4) * 4;
    const float4 x = pl_quad<QUADS>(a, r, first_row + row, first_column + k);
    to[place(k, row)] = x.x;
    to[place(k + 1, row)] = x.y;
    to[place(k + 2, row)] = x.z;
    to[place(k + 3, row)] = x.w;
  }
}

/* ROOM elements: WIDTH columns of as many rows as fit. */
template <int WIDTH, bool QUADS> PL_INLINE void load_rows(const pl_attend &a, const pl_rows &r, int first_row, int first_column, float *to) {
  PL_UNROLL_IF(QUADS)
  for (int n = 0; n < ROOM / 4 / PL_CUDA_BLOCK; n++) {
    const int i = n * PL_CUDA_BLOCK + (int)threadIdx.x, row = i / (WIDTH / 4), column = i % (WIDTH / 4) * 4;
    put_four(to + 4 * i, pl_quad<QUADS>(a, r, first_row + row, first_column + column));
  }
}

/* s[i][j] = left row (left_row + own_row + i) times right row (right_row + own_column + j). All threads must call. */
PL_INLINE void product(const pl_attend &a, const pl_rows &left, int left_row, const pl_rows &right, int right_row, float *room, float (&s)[SIDE][SIDE]) {
  float *x = room, *y = room + DEPTH * TILE;
  PL_UNROLL
  for (int i = 0; i < SIDE * SIDE; i++) s[i / SIDE][i % SIDE] = 0;
  for (int first = 0; first < a.head_dim; first += DEPTH) {
    __syncthreads();
    if (a.quads) {
      load_turned<true>(a, left, left_row, first, x);
      load_turned<true>(a, right, right_row, first, y);
    } else {
      load_turned<false>(a, left, left_row, first, x);
      load_turned<false>(a, right, right_row, first, y);
    }
    __syncthreads();
    const int depth = a.head_dim - first < DEPTH ? a.head_dim - first : DEPTH;
    for (int k = 0; k < depth; k++) {
      const float4 p = four(x + place(k, own_row())), q = four(y + place(k, own_column()));
      const float l[SIDE] = {p.x, p.y, p.z, p.w}, r[SIDE] = {q.x, q.y, q.z, q.w};
      PL_UNROLL
      for (int i = 0; i < SIDE * SIDE; i++) s[i / SIDE][i % SIDE] += l[i / SIDE] * r[i % SIDE];
    }
  }
}

/* Leaves the block's 64 x 64 numbers transposed in to[column][row]. */
PL_INLINE void keep(const float (&s)[SIDE][SIDE], float *to) {
  __syncthreads(); /* earlier ones have been read */
  PL_UNROLL
  for (int j = 0; j < SIDE; j++) put_four(to + place(own_column() + j, own_row()), {s[0][j], s[1][j], s[2][j], s[3][j]});
}

/* Of each thread: its rows, and of WIDTH columns those that column_of names. */
template <int WIDTH> struct sums {
  float x[SIDE][WIDTH / ACROSS];
};
PL_INLINE int column_of(int c) { return c / SIDE * TILE + own_column() + c % SIDE; }

template <int WIDTH> PL_INLINE void scale_row(sums<WIDTH> &out, int i, float factor) {
  PL_UNROLL
  for (int c = 0; c < WIDTH / ACROSS; c++) out.x[i][c] *= factor;
}

/* out += kept^T rows, of the TILE rows from first_row on and WIDTH columns. All threads must call. */
template <int WIDTH> PL_INLINE void spread(const pl_attend &a, const float *kept, const pl_rows &r, int first_row, int first_column, float *room, sums<WIDTH> &out) {
  enum { AT_ONCE = ROOM / WIDTH };
  for (int first = 0; first < TILE && first_row + first < a.time; first += AT_ONCE) {
    __syncthreads();
    if (a.quads)
      load_rows<WIDTH, true>(a, r, first_row + first, first_column, room);
    else
      load_rows<WIDTH, false>(a, r, first_row + first, first_column, room);
    __syncthreads();
    for (int k = 0; k < AT_ONCE; k++) {
      const float4 p = four(kept + place(first + k, own_row()));
      const float l[SIDE] = {p.x, p.y, p.z, p.w};
      PL_UNROLL
      for (int c = 0; c < WIDTH / ACROSS; c += SIDE) {
        const float4 q = four(room + k * WIDTH + column_of(c));
        const float y[SIDE] = {q.x, q.y, q.z, q.w};
        PL_UNROLL
        for (int i = 0; i < SIDE * SIDE; i++) out.x[i / SIDE][c + i % SIDE] += l[i / SIDE] * y[i % SIDE];
      }
    }
  }
}

/* Rows of a head, WIDTH columns of them, times a factor for each of the thread's rows. */
template <int WIDTH> PL_INLINE void write(const pl_attend &a, float *to, size_t stride, int first_row, int first_column, const sums<WIDTH> &from, const float (&factor)[SIDE]) {
  PL_UNROLL
  for (int i = 0; i < SIDE; i++) {
    const int row = first_row + own_row() + i;
    if (row >= a.time) continue;
    PL_UNROLL
    for (int c = 0; c < WIDTH / ACROSS; c += SIDE) {
      const int column = first_column + column_of(c);
      const float *x = from.x[i] + c, f = factor[i];
      float *p = to + (size_t)row * stride + column;
      if (a.quads && column < a.head_dim) put_four(p, {f * x[0], f * x[1], f * x[2], f * x[3]});
      PL_UNROLL
      for (int j = 0; j < SIDE; j++)
        if (!a.quads && column + j < a.head_dim) p[j] = f * x[j];
    }
  }
}

/* What a block does: one slice of one tile of one head. */
struct part {
  unsigned head;
  int row, column; /* the first ones */
};
template <int WIDTH> PL_INLINE part own_part(const pl_attend &a, bool last_first) {
  const unsigned slices = ((unsigned)a.head_dim + WIDTH - 1) / WIDTH, tiles = ((unsigned)a.time + TILE - 1) / TILE;
  const unsigned tile = blockIdx.x / slices % tiles;
  return {blockIdx.x / slices / tiles, (int)(last_first ? tiles - 1 - tile : tile) * TILE, (int)(blockIdx.x % slices) * WIDTH};
}

/* Over the threads that share rows. */
PL_INLINE float across_max(float x) {
  for (int step = ACROSS / 2; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}
PL_INLINE float across_sum(float x) {
  for (int step = ACROSS / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

/* Scores of one row to exp(score - top); `top` becomes the maximum of all keys so far and the returned factor takes
 * earlier sums there. `sum` is of this thread's keys. */
PL_INLINE float soften(float (&s)[SIDE], float scale, int allowed, float &top, float &sum) {
  float most = top;
  PL_UNROLL
  for (int j = 0; j < SIDE; j++) {
    s[j] = own_column() + j < allowed ? scale * s[j] : -INFINITY;
    most = fmaxf(most, s[j]);
  }
  most = across_max(most);
  const float factor = expf(top - most);
  top = most;
  sum *= factor;
  PL_UNROLL
  for (int j = 0; j < SIDE; j++) sum += s[j] = expf(s[j] - most);
  return factor;
}

template <int WIDTH> PL_KERNEL __launch_bounds__(PL_CUDA_BLOCK, WIDTH <= 64 ? 2 : 1) attention_forward(pl_attend a, float *out, float *lse) {
  PL_SHARED(float4, room4, ROOM / 4);
  PL_SHARED(float4, kept4, TILE *TILE / 4);
  float *room = reinterpret_cast<float *>(room4), *kept = reinterpret_cast<float *>(kept4);
  const part own = own_part<WIDTH>(a, true);
  const unsigned kv = own.head / pl_group(a);
  const pl_rows q = pl_head_rows(a, a.q, a.heads, own.head), k = pl_head_rows(a, a.k, a.kv_heads, kv), v = pl_head_rows(a, a.v, a.kv_heads, kv);
  float top[SIDE] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY}, sum[SIDE] = {};
  sums<WIDTH> o = {};
  for (int key = 0; key <= own.row; key += TILE) {
    float s[SIDE][SIDE];
    product(a, q, own.row, k, key, room, s);
    PL_UNROLL
    for (int i = 0; i < SIDE; i++) scale_row(o, i, soften(s[i], a.scale, own.row + own_row() + i + 1 - key, top[i], sum[i]));
    keep(s, kept);
    spread(a, kept, v, key, own.column, room, o);
  }
  float inverse[SIDE];
  PL_UNROLL
  for (int i = 0; i < SIDE; i++) {
    const float all = across_sum(sum[i]);
    const int row = own.row + own_row() + i;
    inverse[i] = 1 / all;
    if (own.column == 0 && own_column() == 0 && row < a.time) lse[(size_t)own.head * (size_t)a.time + (size_t)row] = top[i] + logf(all);
  }
  write(a, out + pl_head_place(a, a.heads, own.head), q.stride, own.row, own.column, o, inverse);
}

PL_INLINE float probability(float score, float scale, float lse, bool allowed) { return allowed ? expf(scale * score - lse) : 0; }

template <int WIDTH> PL_KERNEL __launch_bounds__(PL_CUDA_BLOCK, WIDTH <= 64 ? 2 : 1) attention_query_gradient(pl_attend a, float *dq) {
  PL_SHARED(float4, room4, ROOM / 4);
  PL_SHARED(float4, kept4, TILE *TILE / 4);
  float *room = reinterpret_cast<float *>(room4), *kept = reinterpret_cast<float *>(kept4);
  const part own = own_part<WIDTH>(a, true);
  const unsigned kv = own.head / pl_group(a);
  const pl_rows q = pl_head_rows(a, a.q, a.heads, own.head), k = pl_head_rows(a, a.k, a.kv_heads, kv), v = pl_head_rows(a, a.v, a.kv_heads, kv);
  const pl_rows dout = pl_head_rows(a, a.dout, a.heads, own.head);
  sums<WIDTH> sum = {};
  for (int key = 0; key <= own.row; key += TILE) {
    float s[SIDE][SIDE], ds[SIDE][SIDE];
    product(a, q, own.row, k, key, room, s);
    product(a, dout, own.row, v, key, room, ds);
    PL_UNROLL
    for (int i = 0; i < SIDE; i++) {
      const int row = own.row + own_row() + i;
      const float lse = pl_of_row(a, a.lse, own.head, row), level = pl_of_row(a, a.level, own.head, row);
      PL_UNROLL
      for (int j = 0; j < SIDE; j++) ds[i][j] = (ds[i][j] - level) * probability(s[i][j], a.scale, lse, key + own_column() + j <= row);
    }
    keep(ds, kept);
    spread(a, kept, k, key, own.column, room, sum);
  }
  const float factor[SIDE] = {a.scale, a.scale, a.scale, a.scale};
  write(a, dq + pl_head_place(a, a.heads, own.head), q.stride, own.row, own.column, sum, factor);
}

/* Rows are keys here and columns queries, over which the block goes for each query head in turn. */
template <int WIDTH> PL_KERNEL __launch_bounds__(PL_CUDA_BLOCK, WIDTH <= 64 ? 2 : 1) attention_key_gradient(pl_attend a, float *dk, float *dv) {
  PL_SHARED(float4, room4, ROOM / 4);
  PL_SHARED(float4, kept4, TILE *TILE / 4);
  float *room = reinterpret_cast<float *>(room4), *kept = reinterpret_cast<float *>(kept4);
  const part own = own_part<WIDTH>(a, false);
  const pl_rows k = pl_head_rows(a, a.k, a.kv_heads, own.head), v = pl_head_rows(a, a.v, a.kv_heads, own.head);
  sums<WIDTH> sum_k = {}, sum_v = {};
  for (unsigned head = own.head * pl_group(a); head < (own.head + 1) * pl_group(a); head++) {
    const pl_rows q = pl_head_rows(a, a.q, a.heads, head), dout = pl_head_rows(a, a.dout, a.heads, head);
    for (int query = own.row; query < a.time; query += TILE) {
      float p[SIDE][SIDE], ds[SIDE][SIDE];
      product(a, k, own.row, q, query, room, p);
      product(a, v, own.row, dout, query, room, ds);
      PL_UNROLL
      for (int j = 0; j < SIDE; j++) {
        const int column = query + own_column() + j;
        const float lse = pl_of_row(a, a.lse, head, column), level = pl_of_row(a, a.level, head, column);
        PL_UNROLL
        for (int i = 0; i < SIDE; i++) {
          p[i][j] = probability(p[i][j], a.scale, lse, own.row + own_row() + i <= column);
          ds[i][j] = p[i][j] * (ds[i][j] - level);
        }
      }
      keep(p, kept);
      spread(a, kept, dout, query, own.column, room, sum_v);
      keep(ds, kept);
      spread(a, kept, q, query, own.column, room, sum_k);
    }
  }
  const float one[SIDE] = {1, 1, 1, 1}, factor[SIDE] = {a.scale, a.scale, a.scale, a.scale};
  const size_t at = pl_head_place(a, a.kv_heads, own.head);
  write(a, dv + at, v.stride, own.row, own.column, sum_v, one);
  write(a, dk + at, k.stride, own.row, own.column, sum_k, factor);
}

enum { NARROW = 64, WIDE = 128 };

template <int WIDTH> static unsigned blocks(const pl_attend &a, int heads) { return pl_attend_blocks(a, heads, TILE, (a.head_dim + WIDTH - 1) / WIDTH); }

template <int WIDTH> static void forward(pl_device *d, const pl_attend &a, float *out, float *lse) {
  PL_LAUNCH(d, attention_forward<WIDTH>, blocks<WIDTH>(a, a.heads), PL_CUDA_BLOCK, a, out, lse);
}

template <int WIDTH> static void backward(pl_device *d, const pl_attend &a, float *dq, float *dk, float *dv) {
  PL_LAUNCH(d, attention_key_gradient<WIDTH>, blocks<WIDTH>(a, a.kv_heads), PL_CUDA_BLOCK, a, dk, dv);
  PL_LAUNCH(d, attention_query_gradient<WIDTH>, blocks<WIDTH>(a, a.heads), PL_CUDA_BLOCK, a, dq);
}

void pl_attend_fp32_forward(pl_device *d, const pl_attend &a, float *out, float *lse) { (a.head_dim <= NARROW ? forward<NARROW> : forward<WIDE>)(d, a, out, lse); }

void pl_attend_fp32_backward(pl_device *d, const pl_attend &a, float *dq, float *dk, float *dv) { (a.head_dim <= NARROW ? backward<NARROW> : backward<WIDE>)(d, a, dq, dk, dv); }
