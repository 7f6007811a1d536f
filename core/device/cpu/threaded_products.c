#include "core/device/cpu/threaded.h"

/* Multiplications that are worth a thread: about 25 microseconds of them. Those in bf16 are faster. */
static const double PRODUCTS = 2e6, PRODUCTS_LOW = 8e6;
/* Where c is cut: a multiple of the tiles that make bits depend on it. */
enum { CUT = 32 };

typedef struct product {
  bool transpose_a, transpose_b;
  size_t m, n, k;
  pl_real alpha, beta;
  const pl_real *a, *b;
  size_t lda, ldb;
  pl_real *c;
  size_t ldc;
  bool low, by_columns;
} product;

static void multiply(pl_device *part, size_t thread, const void *args, size_t first, size_t end) {
  product p = *(const product *)args;
  (void)thread;
  if (p.by_columns) {
    p.b += p.transpose_b ? first * p.ldb : first;
    p.c += first;
    p.n = end - first;
  } else {
    p.a += p.transpose_a ? first : first * p.lda;
    p.c += first * p.ldc;
    p.m = end - first;
  }
  (p.low ? part->ops->gemm_low : part->ops->gemm)(part, p.transpose_a, p.transpose_b, p.m, p.n, p.k, p.alpha, p.a,
                                                  p.lda, p.b, p.ldb, p.beta, p.c, p.ldc);
}

/* Along the longer side: every thread packs all of what is not cut. */
static void split_product(pl_device *d, product p) {
  p.by_columns = p.n > p.m;
  const double work = (double)p.m * (double)p.n * (double)p.k;
  const bool bf16 = p.low && d->precision == PL_PRECISION_BF16;
  pl_threaded_split(d, work / (bf16 ? PRODUCTS_LOW : PRODUCTS), p.by_columns ? p.n : p.m, CUT, multiply, &p);
}

static void gemm(pl_device *d, bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, pl_real alpha,
                 const pl_real *a, size_t lda, const pl_real *b, size_t ldb, pl_real beta, pl_real *c, size_t ldc) {
  split_product(d, (product){transpose_a, transpose_b, m, n, k, alpha, beta, a, b, lda, ldb, c, ldc, .low = false});
}

static void gemm_low(pl_device *d, bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, pl_real alpha,
                     const pl_real *a, size_t lda, const pl_real *b, size_t ldb, pl_real beta, pl_real *c, size_t ldc) {
  split_product(d, (product){transpose_a, transpose_b, m, n, k, alpha, beta, a, b, lda, ldb, c, ldc, .low = true});
}

typedef struct square {
  bool transpose;
  size_t n, k;
  pl_real alpha, beta;
  const pl_real *a;
  size_t lda;
  pl_real *c;
  size_t ldc;
} square;

/* A unit is a row and the one as far from the end, which together have as much work as any other two. */
static void multiply_rows(pl_device *part, size_t thread, const void *args, size_t first, size_t end) {
  const square *s = args;
  const pl_cpu_state *state = part->state;
  const size_t second = s->n - end > end ? s->n - end : end; /* the middle row is its own other one */
  (void)thread;
  state->parts->syrk_rows(part, first, end, s->transpose, s->n, s->k, s->alpha, s->a, s->lda, s->beta, s->c, s->ldc);
  state->parts->syrk_rows(part, second, s->n - first, s->transpose, s->n, s->k, s->alpha, s->a, s->lda, s->beta, s->c,
                          s->ldc);
}

static void mirror(pl_device *part, size_t thread, const void *args, size_t first, size_t end) {
  const square *s = args;
  (void)part;
  (void)thread;
  pl_cpu_mirror(first, end, s->c, s->ldc);
}

static void syrk(pl_device *d, bool transpose, size_t n, size_t k, pl_real alpha, const pl_real *a, size_t lda,
                 pl_real beta, pl_real *c, size_t ldc) {
  const square s = {transpose, n, k, alpha, beta, a, lda, c, ldc};
  const double tasks = 0.5 * (double)n * (double)n * (double)k / PRODUCTS;
  pl_threaded_split(d, tasks, (n + 1) / 2, CUT, multiply_rows, &s);
  pl_threaded_split(d, tasks, n, CUT, mirror, &s);
}

typedef struct attention {
  const pl_attention *shape;
  const pl_real *q, *k, *v;
  pl_real *out, *saved;              /* of the forward pass */
  const pl_real *made, *kept, *dout; /* of the backward pass: out and saved are read */
  pl_real *dq, *dk, *dv, *scratch;
} attention;

static pl_real *scratch_of(pl_device *part, size_t thread, const attention *a) {
  return a->scratch + thread * part->ops->attention_scratch_size(part, a->shape);
}

static void attend(pl_device *part, size_t thread, const void *args, size_t first, size_t end) {
  const attention *a = args;
  const pl_cpu_state *state = part->state;
  state->parts->attention_forward_units(part, first, end, a->shape, a->q, a->k, a->v, a->out, a->saved,
                                        scratch_of(part, thread, a));
}

static void attend_back(pl_device *part, size_t thread, const void *args, size_t first, size_t end) {
  const attention *a = args;
  const pl_cpu_state *state = part->state;
  state->parts->attention_backward_units(part, first, end, a->shape, a->q, a->k, a->v, a->made, a->kept, a->dout, a->dq,
                                         a->dk, a->dv, scratch_of(part, thread, a));
}

static void split_attention(pl_device *d, const attention *a, pl_threaded_work *work) {
  const pl_attention *s = a->shape;
  const double pairs = 0.5 * (double)s->time * (double)s->time;
  pl_threaded_split(d, (double)s->batch * (double)s->heads * pairs * (double)s->head_dim / PRODUCTS,
                    s->batch * s->kv_heads, 1, work, a);
}

static size_t attention_scratch_size(pl_device *d, const pl_attention *s) {
  pl_threaded *t = d->state;
  pl_device *part = &t->parts[0];
  return t->threads * part->ops->attention_scratch_size(part, s);
}

static void attention_forward(pl_device *d, const pl_attention *s, const pl_real *q, const pl_real *k, const pl_real *v,
                              pl_real *out, pl_real *saved, pl_real *scratch) {
  const attention a = {.shape = s, .q = q, .k = k, .v = v, .out = out, .saved = saved, .scratch = scratch};
  split_attention(d, &a, attend);
}

static void attention_backward(pl_device *d, const pl_attention *s, const pl_real *q, const pl_real *k,
                               const pl_real *v, const pl_real *out, const pl_real *saved, const pl_real *dout,
                               pl_real *dq, pl_real *dk, pl_real *dv, pl_real *scratch) {
  const attention a = {.shape = s,
                       .q = q,
                       .k = k,
                       .v = v,
                       .made = out,
                       .kept = saved,
                       .dout = dout,
                       .dq = dq,
                       .dk = dk,
                       .dv = dv,
                       .scratch = scratch};
  split_attention(d, &a, attend_back);
}

void pl_threaded_products(pl_ops *ops) {
  ops->gemm = gemm;
  ops->gemm_low = gemm_low;
  ops->syrk = syrk;
  ops->attention_scratch_size = attention_scratch_size;
  ops->attention_forward = attention_forward;
  ops->attention_backward = attention_backward;
}
