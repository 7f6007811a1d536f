/* Causal attention by blocks of query rows: the matrix products through the device's gemm, keys beyond a block's last
 * row are never touched; backward makes the probabilities again from one log-sum-exp per row. Backward uses rowsum(dP *
 * P) = rowsum(dO * O) (arXiv 2205.14135). */
#include <string.h>

#include "core/device/cpu/kernels/parts.h"
#include "core/device/cpu/kernels/rows.h"

enum { BLOCK = 32 }; /* query rows */

typedef struct shape {
  size_t time, heads, group, head_dim; /* group: query heads of a key-value head */
  size_t q_width, kv_width;            /* row strides */
  pl_real scale;
} shape;

static shape shape_of(const pl_attention *s) {
  return (shape){.time = s->time,
                 .heads = s->heads,
                 .group = s->heads / s->kv_heads,
                 .head_dim = s->head_dim,
                 .q_width = s->heads * s->head_dim,
                 .kv_width = s->kv_heads * s->head_dim,
                 .scale = (pl_real)(1.0 / sqrt((double)s->head_dim))};
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* The log-sum-exp of every row of scores. */
size_t PL_KERNEL(attention_saved_size)(const pl_attention *s) { return s->batch * s->heads * s->time; }

/* Two blocks: the probabilities and their gradients. */
size_t PL_KERNEL(attention_scratch_size)(pl_device *d, const pl_attention *s) {
  (void)d;
  return 2 * smaller(BLOCK, s->time) * s->time;
}

/* How many entries of a row are worth computing: whole vectors. The rest are probabilities 0. */
static size_t computed(size_t allowed, size_t keys) {
  return smaller(keys, (allowed + PL_LANES - 1) / PL_LANES * PL_LANES);
}

/* Hides the keys after the row's own among its computed ones. Always one vector, so that no branch depends on the row.
 */
static void mask_row(size_t allowed, size_t n, pl_real *x) {
  for (size_t j = n < PL_LANES ? 0 : n - PL_LANES; j < n; j++) x[j] = j < allowed ? x[j] : (pl_real)-INFINITY;
}

static void scale_row(size_t n, size_t keys, pl_real factor, pl_real *x) {
  for (size_t j = 0; j < n; j++) x[j] *= factor;
  memset(x + n, 0, (keys - n) * sizeof *x);
}

/* Scores to probabilities in place, lse[i] the log-sum-exp of a row. In passes over the block: the sums of one row wait
 * for each other, rows do not. */
static void softmax_block(size_t first, size_t rows, pl_real *p, pl_real *lse) {
  const size_t keys = first + rows;
  pl_real top[BLOCK], sum[BLOCK];
  for (size_t i = 0; i < rows; i++) {
    const size_t n = computed(first + i + 1, keys);
    mask_row(first + i + 1, n, p + i * keys);
    top[i] = pl_row_max(n, p + i * keys);
  }
  for (size_t i = 0; i < rows; i++) sum[i] = pl_row_exp(computed(first + i + 1, keys), top[i], true, p + i * keys);
  for (size_t i = 0; i < rows; i++) scale_row(computed(first + i + 1, keys), keys, 1 / sum[i], p + i * keys);
  for (size_t i = 0; i < rows; i++) lse[i] = top[i] + (pl_real)log((double)sum[i]);
}

static void score_block(pl_device *d, const shape *s, size_t first, size_t rows, const pl_real *q, const pl_real *k,
                        pl_real *p) {
  d->ops->gemm(d, false, true, rows, first + rows, s->head_dim, s->scale, q + first * s->q_width, s->q_width, k,
               s->kv_width, 0, p, first + rows);
}

/* One query head of one sequence; lse[time]. */
static void forward_head(pl_device *d, const shape *s, const pl_real *q, const pl_real *k, const pl_real *v,
                         pl_real *out, pl_real *lse, pl_real *p) {
  for (size_t first = 0; first < s->time; first += BLOCK) {
    const size_t rows = smaller(BLOCK, s->time - first), keys = first + rows;
    score_block(d, s, first, rows, q, k, p);
    softmax_block(first, rows, p, lse + first);
    d->ops->gemm(d, false, false, rows, s->head_dim, keys, 1, p, keys, v, s->kv_width, 0, out + first * s->q_width,
                 s->q_width);
  }
}

/* Where a unit's first query head and its key-value head begin. */
typedef struct unit {
  size_t head, q, kv;
} unit;

static unit unit_at(const shape *s, size_t u) {
  const size_t kv_heads = s->heads / s->group, row = u / kv_heads * s->time, kv_head = u % kv_heads;
  return (unit){.head = u * s->group,
                .q = row * s->q_width + kv_head * s->group * s->head_dim,
                .kv = row * s->kv_width + kv_head * s->head_dim};
}

void PL_KERNEL(attention_forward_units)(pl_device *d, size_t first, size_t end, const pl_attention *s, const pl_real *q,
                                        const pl_real *k, const pl_real *v, pl_real *out, pl_real *saved,
                                        pl_real *scratch) {
  const shape a = shape_of(s);
  for (size_t u = first; u < end; u++) {
    const unit at = unit_at(&a, u);
    for (size_t h = 0; h < a.group; h++) {
      const size_t begin = at.q + h * a.head_dim;
      forward_head(d, &a, q + begin, k + at.kv, v + at.kv, out + begin, saved + (at.head + h) * a.time, scratch);
    }
  }
}

void PL_KERNEL(attention_forward)(pl_device *d, const pl_attention *s, const pl_real *q, const pl_real *k,
                                  const pl_real *v, pl_real *out, pl_real *saved, pl_real *scratch) {
  PL_KERNEL(attention_forward_units)(d, 0, s->batch * s->kv_heads, s, q, k, v, out, saved, scratch);
}

/* The probabilities of a block once more. */
static void recall_block(pl_device *d, const shape *s, size_t first, size_t rows, const pl_real *q, const pl_real *k,
                         const pl_real *lse, pl_real *p) {
  const size_t keys = first + rows;
  score_block(d, s, first, rows, q, k, p);
  for (size_t i = 0; i < rows; i++) {
    const size_t n = computed(first + i + 1, keys);
    pl_real *x = p + i * keys;
    mask_row(first + i + 1, n, x);
    (void)pl_row_exp(n, lse[i], true, x);
    memset(x + n, 0, (keys - n) * sizeof *x);
  }
}

/* dP to dS in place: scale * P * (dP - rowsum(dO * O)). */
static void score_gradient_row(size_t n, pl_real scale, pl_real level, const pl_real *restrict p,
                               pl_real *restrict ds) {
  for (size_t j = 0; j < n; j++) ds[j] = scale * p[j] * (ds[j] - level);
}

typedef struct head {
  const pl_real *q, *k, *v, *out, *dout;
  pl_real *dq, *dk, *dv;
} head;

static void backward_block(pl_device *d, const shape *s, const head *h, size_t first, size_t rows, const pl_real *p,
                           pl_real *ds) {
  const size_t keys = first + rows, width = s->q_width, kv = s->kv_width, at = first * width, dim = s->head_dim;
  const pl_real *dout = h->dout + at, *out = h->out + at;
  d->ops->gemm(d, true, false, keys, dim, rows, 1, p, keys, dout, width, 1, h->dv, kv);
  d->ops->gemm(d, false, true, rows, keys, dim, 1, dout, width, h->v, kv, 0, ds, keys);
  for (size_t i = 0; i < rows; i++)
    score_gradient_row(keys, s->scale, pl_row_dot(dim, dout + i * width, out + i * width), p + i * keys, ds + i * keys);
  d->ops->gemm(d, false, false, rows, dim, keys, 1, ds, keys, h->k, kv, 0, h->dq + at, width);
  d->ops->gemm(d, true, false, keys, dim, rows, 1, ds, keys, h->q + at, width, 1, h->dk, kv);
}

/* Adds to dk and dv, which all query heads of a group share. */
static void backward_head(pl_device *d, const shape *s, const head *h, const pl_real *lse, pl_real *scratch) {
  pl_real *p = scratch, *ds = scratch + smaller(BLOCK, s->time) * s->time;
  for (size_t first = 0; first < s->time; first += BLOCK) {
    const size_t rows = smaller(BLOCK, s->time - first);
    recall_block(d, s, first, rows, h->q, h->k, lse + first, p);
    backward_block(d, s, h, first, rows, p, ds);
  }
}

static void clear_unit(const shape *s, pl_real *x) {
  for (size_t t = 0; t < s->time; t++) memset(x + t * s->kv_width, 0, s->head_dim * sizeof *x);
}

void PL_KERNEL(attention_backward_units)(pl_device *d, size_t first, size_t end, const pl_attention *s,
                                         const pl_real *q, const pl_real *k, const pl_real *v, const pl_real *out,
                                         const pl_real *saved, const pl_real *dout, pl_real *dq, pl_real *dk,
                                         pl_real *dv, pl_real *scratch) {
  const shape a = shape_of(s);
  for (size_t u = first; u < end; u++) {
    const unit at = unit_at(&a, u);
    clear_unit(&a, dk + at.kv);
    clear_unit(&a, dv + at.kv);
    for (size_t h = 0; h < a.group; h++) {
      const size_t begin = at.q + h * a.head_dim;
      const head one = {.q = q + begin,
                        .k = k + at.kv,
                        .v = v + at.kv,
                        .out = out + begin,
                        .dout = dout + begin,
                        .dq = dq + begin,
                        .dk = dk + at.kv,
                        .dv = dv + at.kv};
      backward_head(d, &a, &one, saved + (at.head + h) * a.time, scratch);
    }
  }
}

void PL_KERNEL(attention_backward)(pl_device *d, const pl_attention *s, const pl_real *q, const pl_real *k,
                                   const pl_real *v, const pl_real *out, const pl_real *saved, const pl_real *dout,
                                   pl_real *dq, pl_real *dk, pl_real *dv, pl_real *scratch) {
  PL_KERNEL(attention_backward_units)
  (d, 0, s->batch * s->kv_heads, s, q, k, v, out, saved, dout, dq, dk, dv, scratch);
}
