#include "core/device/profile.h"

#include "core/base/clock.h"

const char *const pl_profile_names[PL_PROFILE_COUNT] = {
#define PART_NAME(id, text) [PL_PROFILE_##id] = #id,
    PL_PROFILE_PARTS(PART_NAME)
#undef PART_NAME
};

const char *const pl_profile_texts[PL_PROFILE_COUNT] = {
#define PART_TEXT(id, text) [PL_PROFILE_##id] = text,
    PL_PROFILE_PARTS(PART_TEXT)
#undef PART_TEXT
};

void pl_profile_switch(pl_profile *p, pl_profile_part part) {
  const double now = pl_clock_seconds();
  p->sum[p->now].seconds += now - p->since;
  p->since = now;
  p->now = part;
}

double pl_profile_seconds(const pl_profile *p) {
  double sum = 0;
  for (size_t i = 0; i < PL_PROFILE_COUNT; i++) sum += p->sum[i].seconds;
  return sum;
}

/* An operation counts for itself in `other` alone; elsewhere it is what the section is about. */
static pl_profile_part begin(pl_profile *p, pl_profile_part part, double flops) {
  const pl_profile_part before = p->now;
  if (before == PL_PROFILE_other) {
    pl_profile_switch(p, part);
    p->sum[part].calls++;
  }
  p->sum[p->now].flops += flops;
  return before;
}

static void end(pl_profile *p, pl_profile_part before) {
  if (p->now != before) pl_profile_switch(p, before);
}

/* The operation of the inner device that has the wrapper's name. */
#define PASS(part, flops, op, ...)                                                                                     \
  do {                                                                                                                 \
    pl_profile *p = d->profile;                                                                                        \
    const pl_profile_part before = begin(p, PL_PROFILE_##part, flops);                                                 \
    p->inner->ops->op(p->inner, __VA_ARGS__);                                                                          \
    end(p, before);                                                                                                    \
  } while (0)
#define PASS_BACK(part, op, ...)                                                                                       \
  do {                                                                                                                 \
    pl_profile *p = d->profile;                                                                                        \
    const pl_profile_part before = begin(p, PL_PROFILE_##part, 0);                                                     \
    const double result = p->inner->ops->op(p->inner, __VA_ARGS__);                                                    \
    end(p, before);                                                                                                    \
    return result;                                                                                                     \
  } while (0)

static double products(size_t m, size_t n, size_t k) { return 2 * (double)m * (double)n * (double)k; }

/* Of one product of the probabilities, or their gradients, with one of q, k, v, out. */
static double attention_product(const pl_attention *s) {
  const double pairs = 0.5 * (double)s->time * (double)(s->time + 1);
  return 2 * (double)s->batch * (double)s->heads * pairs * (double)s->head_dim;
}

static pl_status alloc(pl_device *d, size_t bytes, const char *what, void **out, pl_err *e) {
  return d->profile->inner->ops->alloc(d->profile->inner, bytes, what, out, e);
}

static void release(pl_device *d, void *memory) { d->profile->inner->ops->free(d->profile->inner, memory); }

static void upload(pl_device *d, void *to_device, const void *from_host, size_t bytes) {
  PASS(vectors, 0, upload, to_device, from_host, bytes);
}

static void download(pl_device *d, void *to_host, const void *from_device, size_t bytes) {
  PASS(vectors, 0, download, to_host, from_device, bytes);
}

static void copy(pl_device *d, void *to, const void *from, size_t bytes) { PASS(vectors, 0, copy, to, from, bytes); }

static void zero(pl_device *d, void *memory, size_t bytes) { PASS(vectors, 0, zero, memory, bytes); }

static void gemm(pl_device *d, bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, pl_real alpha,
                 const pl_real *a, size_t lda, const pl_real *b, size_t ldb, pl_real beta, pl_real *c, size_t ldc) {
  PASS(gemm, products(m, n, k), gemm, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

static void gemm_low(pl_device *d, bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, pl_real alpha,
                     const pl_real *a, size_t lda, const pl_real *b, size_t ldb, pl_real beta, pl_real *c, size_t ldc) {
  PASS(gemm, products(m, n, k), gemm_low, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/* One triangle with the diagonal is enough. */
static void syrk(pl_device *d, bool transpose, size_t n, size_t k, pl_real alpha, const pl_real *a, size_t lda,
                 pl_real beta, pl_real *c, size_t ldc) {
  PASS(gemm, products(n, n + 1, k) / 2, syrk, transpose, n, k, alpha, a, lda, beta, c, ldc);
}

static void embedding_forward(pl_device *d, size_t rows, size_t width, const int32_t *ids, const pl_real *table,
                              pl_real *out) {
  PASS(embedding_loss, 0, embedding_forward, rows, width, ids, table, out);
}

static void embedding_backward(pl_device *d, size_t rows, size_t width, const int32_t *ids, const pl_real *dout,
                               pl_real *dtable) {
  PASS(embedding_loss, 0, embedding_backward, rows, width, ids, dout, dtable);
}

static void add_rows_forward(pl_device *d, size_t rows, size_t width, size_t period, const pl_real *table, pl_real *x) {
  PASS(vectors, 0, add_rows_forward, rows, width, period, table, x);
}

static void add_rows_backward(pl_device *d, size_t rows, size_t width, size_t period, const pl_real *dx,
                              pl_real *dtable) {
  PASS(vectors, 0, add_rows_backward, rows, width, period, dx, dtable);
}

static void rmsnorm_forward(pl_device *d, size_t rows, size_t width, const pl_real *x, const pl_real *weight,
                            double eps, pl_real *out, pl_real *rstd) {
  PASS(norms, 0, rmsnorm_forward, rows, width, x, weight, eps, out, rstd);
}

static void rmsnorm_backward(pl_device *d, size_t rows, size_t width, const pl_real *x, const pl_real *weight,
                             const pl_real *rstd, const pl_real *dout, pl_real *dx, pl_real *dweight) {
  PASS(norms, 0, rmsnorm_backward, rows, width, x, weight, rstd, dout, dx, dweight);
}

static void layernorm_forward(pl_device *d, size_t rows, size_t width, const pl_real *x, const pl_real *weight,
                              const pl_real *bias, double eps, pl_real *out, pl_real *mean, pl_real *rstd) {
  PASS(norms, 0, layernorm_forward, rows, width, x, weight, bias, eps, out, mean, rstd);
}

static void layernorm_backward(pl_device *d, size_t rows, size_t width, const pl_real *x, const pl_real *weight,
                               const pl_real *mean, const pl_real *rstd, const pl_real *dout, pl_real *dx,
                               pl_real *dweight, pl_real *dbias) {
  PASS(norms, 0, layernorm_backward, rows, width, x, weight, mean, rstd, dout, dx, dweight, dbias);
}

static void rope(pl_device *d, size_t rows, size_t time, size_t heads, size_t head_dim, const pl_real *table,
                 bool inverse, pl_real *x) {
  PASS(attention, 0, rope, rows, time, heads, head_dim, table, inverse, x);
}

static void attention_forward(pl_device *d, const pl_attention *s, const pl_real *q, const pl_real *k, const pl_real *v,
                              pl_real *out, pl_real *saved, pl_real *scratch) {
  PASS(attention, 2 * attention_product(s), attention_forward, s, q, k, v, out, saved, scratch);
}

static void attention_backward(pl_device *d, const pl_attention *s, const pl_real *q, const pl_real *k,
                               const pl_real *v, const pl_real *out, const pl_real *saved, const pl_real *dout,
                               pl_real *dq, pl_real *dk, pl_real *dv, pl_real *scratch) {
  PASS(attention, 4 * attention_product(s), attention_backward, s, q, k, v, out, saved, dout, dq, dk, dv, scratch);
}

static void swiglu_forward(pl_device *d, size_t n, const pl_real *gate, const pl_real *up, pl_real *out) {
  PASS(activations, 0, swiglu_forward, n, gate, up, out);
}

static void swiglu_backward(pl_device *d, size_t n, const pl_real *gate, const pl_real *up, const pl_real *dout,
                            pl_real *dgate, pl_real *dup) {
  PASS(activations, 0, swiglu_backward, n, gate, up, dout, dgate, dup);
}

static void gelu_forward(pl_device *d, size_t n, const pl_real *x, pl_real *out) {
  PASS(activations, 0, gelu_forward, n, x, out);
}

static void gelu_backward(pl_device *d, size_t n, const pl_real *x, const pl_real *dout, pl_real *dx) {
  PASS(activations, 0, gelu_backward, n, x, dout, dx);
}

static void cross_entropy(pl_device *d, size_t rows, size_t classes, const int32_t *targets, bool gradient,
                          double scale, pl_real *logits, double *loss) {
  PASS(embedding_loss, 0, cross_entropy, rows, classes, targets, gradient, scale, logits, loss);
}

static void axpby(pl_device *d, size_t n, double a, const pl_real *x, double b, pl_real *y) {
  PASS(vectors, 0, axpby, n, a, x, b, y);
}

static void shrink_subtract(pl_device *d, size_t n, double s, const pl_real *x, const pl_real *v, pl_real *out) {
  PASS(vectors, 0, shrink_subtract, n, s, x, v, out);
}

static double sum_squares(pl_device *d, size_t n, const pl_real *x) { PASS_BACK(vectors, sum_squares, n, x); }

static double dot(pl_device *d, size_t n, const pl_real *x, const pl_real *y) { PASS_BACK(vectors, dot, n, x, y); }

static double sum_double(pl_device *d, size_t n, const double *x) { PASS_BACK(embedding_loss, sum_double, n, x); }

static void adamw(pl_device *d, size_t n, const pl_real *g, double beta1, double beta2, double bias1, double bias2,
                  double eps, double lr, pl_real *m, pl_real *v, pl_real *u) {
  PASS(optimizer, 0, adamw, n, g, beta1, beta2, bias1, bias2, eps, lr, m, v, u);
}

static void sum_squares_parts(pl_device *d, size_t count, const size_t *offset, const size_t *size, const pl_real *x,
                              double *out) {
  PASS(vectors, 0, sum_squares_parts, count, offset, size, x, out);
}

static void momentum(pl_device *d, size_t n, const pl_real *g, double mu, double take, bool nesterov,
                     double take_direct, double lr, pl_real *buf, pl_real *u) {
  PASS(optimizer, 0, momentum, n, g, mu, take, nesterov, take_direct, lr, buf, u);
}

/* What is not here stays the inner device's own: it works on its state too, and counts where it is called. */
static void wrap(pl_ops *ops) {
  ops->alloc = alloc;
  ops->free = release;
  ops->upload = upload;
  ops->download = download;
  ops->copy = copy;
  ops->zero = zero;
  ops->gemm = gemm;
  ops->gemm_low = gemm_low;
  ops->syrk = syrk;
  ops->embedding_forward = embedding_forward;
  ops->embedding_backward = embedding_backward;
  ops->add_rows_forward = add_rows_forward;
  ops->add_rows_backward = add_rows_backward;
  ops->rmsnorm_forward = rmsnorm_forward;
  ops->rmsnorm_backward = rmsnorm_backward;
  ops->layernorm_forward = layernorm_forward;
  ops->layernorm_backward = layernorm_backward;
  ops->rope = rope;
  ops->attention_forward = attention_forward;
  ops->attention_backward = attention_backward;
  ops->swiglu_forward = swiglu_forward;
  ops->swiglu_backward = swiglu_backward;
  ops->gelu_forward = gelu_forward;
  ops->gelu_backward = gelu_backward;
  ops->cross_entropy = cross_entropy;
  ops->axpby = axpby;
  ops->shrink_subtract = shrink_subtract;
  ops->sum_squares = sum_squares;
  ops->dot = dot;
  ops->sum_double = sum_double;
  if (ops->sum_squares_parts) ops->sum_squares_parts = sum_squares_parts;
  ops->adamw = adamw;
  ops->momentum = momentum;
}

void pl_profile_open(pl_profile *p, pl_device *inner) {
  *p = (pl_profile){
      .device = *inner, .inner = inner, .ops = *inner->ops, .now = PL_PROFILE_ends, .since = pl_clock_seconds()};
  wrap(&p->ops);
  p->device.ops = &p->ops;
  p->device.profile = p;
  p->sum[PL_PROFILE_ends].calls = 1;
}

void pl_profile_stop(pl_profile *p) { pl_profile_switch(p, p->now); }
