/* The CPU device made hostile, for tests: memory starts as NaN, arrays that an operation may overwrite freely are NaN
 * again before it runs, and every argument must lie in an array that alloc gave. Operations cannot fail, so a violation
 * is printed and the process aborts: this device alone may. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/device/cpu/cpu.h"

typedef struct span {
  char *start;
  size_t bytes;
} span;

typedef struct paranoid {
  pl_ops ops;
  pl_device cpu;
  span *spans;
  size_t count, capacity;
} paranoid;

static pl_device *cpu_of(pl_device *d) { return &((paranoid *)d->state)->cpu; }

static void violate(const char *op, const char *what, const char *why) {
  fprintf(stderr, "paranoid device: %s: %s %s\n", op, what, why);
  abort();
}

static void require(bool holds, const char *op, const char *what) {
  if (!holds) violate(op, what, "does not hold");
}

static span *find(const paranoid *s, const void *p, size_t bytes) {
  const char *start = p;
  for (size_t i = 0; i < s->count; i++) {
    const span *a = &s->spans[i];
    if (start >= a->start && start <= a->start + a->bytes && bytes <= (size_t)(a->start + a->bytes - start))
      return &s->spans[i];
  }
  return NULL;
}

static void check(pl_device *d, const char *op, const char *name, const void *p, size_t bytes) {
  if (bytes && !find(d->state, p, bytes)) violate(op, name, "is not inside one array of this device");
}

static void check_host(pl_device *d, const char *op, const char *name, const void *p) {
  if (find(d->state, p, 1)) violate(op, name, "is not host memory");
}

/* All bits set: NaN in both precisions, -1 as an id. */
static void spoil(void *p, size_t bytes) {
  if (bytes) memset(p, 0xff, bytes);
}

static void check_matrix(pl_device *d, const char *op, const char *name, const pl_real *p, size_t rows, size_t cols,
                         size_t stride) {
  if (rows == 0 || cols == 0) return;
  if (cols > stride) violate(op, name, "has rows that overlap");
  check(d, op, name, p, ((rows - 1) * stride + cols) * sizeof *p);
}

/* An argument of `count` elements that is read or updated; one that is only written. */
#define CHECK(p, count) check(d, __func__, #p, p, (count) * sizeof *(p))
#define CHECK_OUT(p, count) (CHECK(p, count), spoil(p, (count) * sizeof *(p)))
#define REQUIRE(condition) require(condition, __func__, #condition)

static pl_status alloc(pl_device *d, size_t bytes, const char *what, void **out, pl_err *e) {
  pl_status st = PL_OK;
  paranoid *s = d->state;
  void *p = NULL;
  if (s->count == s->capacity) {
    const size_t capacity = 2 * s->capacity + 16;
    PL_TRY(pl_grow(s->capacity, capacity, sizeof *s->spans, "the paranoid device's list", &s->spans, e));
    s->capacity = capacity;
  }
  PL_TRY(s->cpu.ops->alloc(&s->cpu, bytes, what, &p, e));
  spoil(p, bytes);
  s->spans[s->count++] = (span){p, bytes};
  *out = p;
out:
  return st;
}

static void release(pl_device *d, void *p) {
  paranoid *s = d->state;
  if (!p) return;
  for (size_t i = 0; i < s->count; i++) {
    if (s->spans[i].start != p) continue;
    spoil(p, s->spans[i].bytes);
    s->spans[i] = s->spans[--s->count];
    s->cpu.ops->free(&s->cpu, p);
    return;
  }
  violate("free", "p", "is not an array of this device");
}

static void upload(pl_device *d, void *to_device, const void *from_host, size_t bytes) {
  check(d, __func__, "to_device", to_device, bytes);
  check_host(d, __func__, "from_host", from_host);
  cpu_of(d)->ops->upload(cpu_of(d), to_device, from_host, bytes);
}

static void download(pl_device *d, void *to_host, const void *from_device, size_t bytes) {
  check(d, __func__, "from_device", from_device, bytes);
  check_host(d, __func__, "to_host", to_host);
  cpu_of(d)->ops->download(cpu_of(d), to_host, from_device, bytes);
}

static void copy(pl_device *d, void *to, const void *from, size_t bytes) {
  check(d, __func__, "to", to, bytes);
  check(d, __func__, "from", from, bytes);
  cpu_of(d)->ops->copy(cpu_of(d), to, from, bytes);
}

static void zero(pl_device *d, void *p, size_t bytes) {
  check(d, __func__, "p", p, bytes);
  cpu_of(d)->ops->zero(cpu_of(d), p, bytes);
}

static void check_gemm(pl_device *d, const char *op, bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k,
                       const pl_real *a, size_t lda, const pl_real *b, size_t ldb, pl_real beta, pl_real *c,
                       size_t ldc) {
  check_matrix(d, op, "a", a, transpose_a ? k : m, transpose_a ? m : k, lda);
  check_matrix(d, op, "b", b, transpose_b ? n : k, transpose_b ? k : n, ldb);
  check_matrix(d, op, "c", c, m, n, ldc);
  for (size_t i = 0; beta == 0 && i < m; i++) spoil(c + i * ldc, n * sizeof *c);
}

static void gemm(pl_device *d, bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, pl_real alpha,
                 const pl_real *a, size_t lda, const pl_real *b, size_t ldb, pl_real beta, pl_real *c, size_t ldc) {
  check_gemm(d, __func__, transpose_a, transpose_b, m, n, k, a, lda, b, ldb, beta, c, ldc);
  cpu_of(d)->ops->gemm(cpu_of(d), transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

static void gemm_low(pl_device *d, bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, pl_real alpha,
                     const pl_real *a, size_t lda, const pl_real *b, size_t ldb, pl_real beta, pl_real *c, size_t ldc) {
  check_gemm(d, __func__, transpose_a, transpose_b, m, n, k, a, lda, b, ldb, beta, c, ldc);
  cpu_of(d)->ops->gemm_low(cpu_of(d), transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

static void syrk(pl_device *d, bool transpose, size_t n, size_t k, pl_real alpha, const pl_real *a, size_t lda,
                 pl_real beta, pl_real *c, size_t ldc) {
  check_matrix(d, __func__, "a", a, transpose ? k : n, transpose ? n : k, lda);
  check_matrix(d, __func__, "c", c, n, n, ldc);
  for (size_t i = 0; i < n; i++) {
    if (beta == 0) spoil(c + i * ldc, n * sizeof *c);
    for (size_t j = 0; beta != 0 && j < i; j++) REQUIRE(c[i * ldc + j] == c[j * ldc + i]);
  }
  cpu_of(d)->ops->syrk(cpu_of(d), transpose, n, k, alpha, a, lda, beta, c, ldc);
}

static void embedding_forward(pl_device *d, size_t rows, size_t width, const int32_t *ids, const pl_real *table,
                              pl_real *out) {
  CHECK(ids, rows);
  CHECK_OUT(out, rows * width);
  for (size_t r = 0; r < rows; r++) {
    REQUIRE(ids[r] >= 0);
    CHECK(table, ((size_t)ids[r] + 1) * width);
  }
  cpu_of(d)->ops->embedding_forward(cpu_of(d), rows, width, ids, table, out);
}

static void embedding_backward(pl_device *d, size_t rows, size_t width, const int32_t *ids, const pl_real *dout,
                               pl_real *dtable) {
  CHECK(ids, rows);
  CHECK(dout, rows * width);
  for (size_t r = 0; r < rows; r++) {
    REQUIRE(ids[r] >= 0);
    CHECK(dtable, ((size_t)ids[r] + 1) * width);
  }
  cpu_of(d)->ops->embedding_backward(cpu_of(d), rows, width, ids, dout, dtable);
}

static void add_rows_forward(pl_device *d, size_t rows, size_t width, size_t period, const pl_real *table, pl_real *x) {
  REQUIRE(period >= 1);
  CHECK(table, period * width);
  CHECK(x, rows * width);
  cpu_of(d)->ops->add_rows_forward(cpu_of(d), rows, width, period, table, x);
}

static void add_rows_backward(pl_device *d, size_t rows, size_t width, size_t period, const pl_real *dx,
                              pl_real *dtable) {
  REQUIRE(period >= 1);
  CHECK(dx, rows * width);
  CHECK(dtable, period * width);
  cpu_of(d)->ops->add_rows_backward(cpu_of(d), rows, width, period, dx, dtable);
}

static void rmsnorm_forward(pl_device *d, size_t rows, size_t width, const pl_real *x, const pl_real *weight,
                            double eps, pl_real *out, pl_real *rstd) {
  CHECK(x, rows * width);
  CHECK(weight, width);
  CHECK_OUT(out, rows * width);
  CHECK_OUT(rstd, rows);
  cpu_of(d)->ops->rmsnorm_forward(cpu_of(d), rows, width, x, weight, eps, out, rstd);
}

static void rmsnorm_backward(pl_device *d, size_t rows, size_t width, const pl_real *x, const pl_real *weight,
                             const pl_real *rstd, const pl_real *dout, pl_real *dx, pl_real *dweight) {
  CHECK(x, rows * width);
  CHECK(weight, width);
  CHECK(rstd, rows);
  CHECK(dout, rows * width);
  CHECK(dx, rows * width);
  CHECK(dweight, width);
  cpu_of(d)->ops->rmsnorm_backward(cpu_of(d), rows, width, x, weight, rstd, dout, dx, dweight);
}

static void layernorm_forward(pl_device *d, size_t rows, size_t width, const pl_real *x, const pl_real *weight,
                              const pl_real *bias, double eps, pl_real *out, pl_real *mean, pl_real *rstd) {
  CHECK(x, rows * width);
  CHECK(weight, width);
  CHECK(bias, width);
  CHECK_OUT(out, rows * width);
  CHECK_OUT(mean, rows);
  CHECK_OUT(rstd, rows);
  cpu_of(d)->ops->layernorm_forward(cpu_of(d), rows, width, x, weight, bias, eps, out, mean, rstd);
}

static void layernorm_backward(pl_device *d, size_t rows, size_t width, const pl_real *x, const pl_real *weight,
                               const pl_real *mean, const pl_real *rstd, const pl_real *dout, pl_real *dx,
                               pl_real *dweight, pl_real *dbias) {
  CHECK(x, rows * width);
  CHECK(weight, width);
  CHECK(mean, rows);
  CHECK(rstd, rows);
  CHECK(dout, rows * width);
  CHECK(dx, rows * width);
  CHECK(dweight, width);
  CHECK(dbias, width);
  cpu_of(d)->ops->layernorm_backward(cpu_of(d), rows, width, x, weight, mean, rstd, dout, dx, dweight, dbias);
}

static void rope(pl_device *d, size_t rows, size_t time, size_t heads, size_t head_dim, const pl_real *table,
                 bool inverse, pl_real *x) {
  REQUIRE(time >= 1);
  REQUIRE(head_dim % 2 == 0);
  CHECK(table, time * head_dim);
  CHECK(x, rows * heads * head_dim);
  cpu_of(d)->ops->rope(cpu_of(d), rows, time, heads, head_dim, table, inverse, x);
}

static size_t q_size(const pl_attention *s) { return s->batch * s->time * s->heads * s->head_dim; }
static size_t kv_size(const pl_attention *s) { return s->batch * s->time * s->kv_heads * s->head_dim; }

static size_t attention_scratch_size(pl_device *d, const pl_attention *s) {
  return cpu_of(d)->ops->attention_scratch_size(cpu_of(d), s);
}

static void attention_forward(pl_device *d, const pl_attention *s, const pl_real *q, const pl_real *k, const pl_real *v,
                              pl_real *out, pl_real *saved, pl_real *scratch) {
  REQUIRE(s->kv_heads >= 1 && s->heads % s->kv_heads == 0);
  CHECK(q, q_size(s));
  CHECK(k, kv_size(s));
  CHECK(v, kv_size(s));
  CHECK_OUT(out, q_size(s));
  CHECK_OUT(saved, d->ops->attention_saved_size(s));
  CHECK_OUT(scratch, d->ops->attention_scratch_size(d, s));
  cpu_of(d)->ops->attention_forward(cpu_of(d), s, q, k, v, out, saved, scratch);
}

static void attention_backward(pl_device *d, const pl_attention *s, const pl_real *q, const pl_real *k,
                               const pl_real *v, const pl_real *out, const pl_real *saved, const pl_real *dout,
                               pl_real *dq, pl_real *dk, pl_real *dv, pl_real *scratch) {
  REQUIRE(s->kv_heads >= 1 && s->heads % s->kv_heads == 0);
  CHECK(q, q_size(s));
  CHECK(k, kv_size(s));
  CHECK(v, kv_size(s));
  CHECK(out, q_size(s));
  CHECK(saved, d->ops->attention_saved_size(s));
  CHECK(dout, q_size(s));
  CHECK_OUT(dq, q_size(s));
  CHECK_OUT(dk, kv_size(s));
  CHECK_OUT(dv, kv_size(s));
  CHECK_OUT(scratch, d->ops->attention_scratch_size(d, s));
  cpu_of(d)->ops->attention_backward(cpu_of(d), s, q, k, v, out, saved, dout, dq, dk, dv, scratch);
}

static void swiglu_forward(pl_device *d, size_t n, const pl_real *gate, const pl_real *up, pl_real *out) {
  CHECK(gate, n);
  CHECK(up, n);
  CHECK_OUT(out, n);
  cpu_of(d)->ops->swiglu_forward(cpu_of(d), n, gate, up, out);
}

static void swiglu_backward(pl_device *d, size_t n, const pl_real *gate, const pl_real *up, const pl_real *dout,
                            pl_real *dgate, pl_real *dup) {
  CHECK(gate, n);
  CHECK(up, n);
  CHECK(dout, n);
  CHECK(dgate, n);
  CHECK(dup, n);
  cpu_of(d)->ops->swiglu_backward(cpu_of(d), n, gate, up, dout, dgate, dup);
}

static void gelu_forward(pl_device *d, size_t n, const pl_real *x, pl_real *out) {
  CHECK(x, n);
  CHECK_OUT(out, n);
  cpu_of(d)->ops->gelu_forward(cpu_of(d), n, x, out);
}

static void gelu_backward(pl_device *d, size_t n, const pl_real *x, const pl_real *dout, pl_real *dx) {
  CHECK(x, n);
  CHECK(dout, n);
  CHECK(dx, n);
  cpu_of(d)->ops->gelu_backward(cpu_of(d), n, x, dout, dx);
}

static void cross_entropy(pl_device *d, size_t rows, size_t classes, const int32_t *targets, bool gradient,
                          double scale, pl_real *logits, double *loss) {
  CHECK(targets, rows);
  CHECK(logits, rows * classes);
  CHECK_OUT(loss, rows);
  for (size_t r = 0; r < rows; r++) REQUIRE(targets[r] >= 0 && (size_t)targets[r] < classes);
  cpu_of(d)->ops->cross_entropy(cpu_of(d), rows, classes, targets, gradient, scale, logits, loss);
}

static void axpby(pl_device *d, size_t n, double a, const pl_real *x, double b, pl_real *y) {
  CHECK(x, n);
  CHECK(y, n);
  cpu_of(d)->ops->axpby(cpu_of(d), n, a, x, b, y);
}

static void shrink_subtract(pl_device *d, size_t n, double s, const pl_real *x, const pl_real *v, pl_real *out) {
  CHECK(x, n);
  CHECK(v, n);
  CHECK(out, n);
  cpu_of(d)->ops->shrink_subtract(cpu_of(d), n, s, x, v, out);
}

static double sum_squares(pl_device *d, size_t n, const pl_real *x) {
  CHECK(x, n);
  return cpu_of(d)->ops->sum_squares(cpu_of(d), n, x);
}

static double dot(pl_device *d, size_t n, const pl_real *x, const pl_real *y) {
  CHECK(x, n);
  CHECK(y, n);
  return cpu_of(d)->ops->dot(cpu_of(d), n, x, y);
}

static double sum_double(pl_device *d, size_t n, const double *x) {
  CHECK(x, n);
  return cpu_of(d)->ops->sum_double(cpu_of(d), n, x);
}

static void adamw(pl_device *d, size_t n, const pl_real *g, double beta1, double beta2, double bias1, double bias2,
                  double eps, double lr, pl_real *m, pl_real *v, pl_real *u) {
  CHECK(g, n);
  CHECK(m, n);
  CHECK(v, n);
  CHECK_OUT(u, n);
  cpu_of(d)->ops->adamw(cpu_of(d), n, g, beta1, beta2, bias1, bias2, eps, lr, m, v, u);
}

static void momentum(pl_device *d, size_t n, const pl_real *g, double mu, double take, bool nesterov,
                     double take_direct, double lr, pl_real *buf, pl_real *u) {
  CHECK(g, n);
  CHECK(buf, n);
  CHECK_OUT(u, n);
  cpu_of(d)->ops->momentum(cpu_of(d), n, g, mu, take, nesterov, take_direct, lr, buf, u);
}

/* The size of what attention saves is the CPU device's own. */
static const pl_ops checked = {
    .name = "paranoid",
    .alloc = alloc,
    .free = release,
    .upload = upload,
    .download = download,
    .copy = copy,
    .zero = zero,
    .check = pl_cpu_check,
    .gemm = gemm,
    .gemm_low = gemm_low,
    .syrk = syrk,
    .embedding_forward = embedding_forward,
    .embedding_backward = embedding_backward,
    .add_rows_forward = add_rows_forward,
    .add_rows_backward = add_rows_backward,
    .rmsnorm_forward = rmsnorm_forward,
    .rmsnorm_backward = rmsnorm_backward,
    .layernorm_forward = layernorm_forward,
    .layernorm_backward = layernorm_backward,
    .rope = rope,
    .attention_scratch_size = attention_scratch_size,
    .attention_forward = attention_forward,
    .attention_backward = attention_backward,
    .swiglu_forward = swiglu_forward,
    .swiglu_backward = swiglu_backward,
    .gelu_forward = gelu_forward,
    .gelu_backward = gelu_backward,
    .cross_entropy = cross_entropy,
    .axpby = axpby,
    .shrink_subtract = shrink_subtract,
    .sum_squares = sum_squares,
    .dot = dot,
    .sum_double = sum_double,
    .adamw = adamw,
    .momentum = momentum,
};

pl_status pl_paranoid_open(pl_device *d, pl_err *e) {
  pl_status st = PL_OK;
  paranoid *s = NULL;
  PL_TRY(pl_alloc(1, sizeof *s, "the paranoid device", &s, e));
  s->cpu.precision = d->precision;
  s->cpu.threads = d->threads;
  PL_TRY(pl_cpu_open(&s->cpu, e));
  s->ops = checked;
  s->ops.stretch = s->cpu.ops->stretch;
  s->ops.attention_saved_size = s->cpu.ops->attention_saved_size;
  memcpy(d->kernel, s->cpu.kernel, sizeof d->kernel);
  d->ops = &s->ops;
  d->state = s;
  s = NULL;
out:
  pl_free(s);
  return st;
}

/* Arrays that are still there stay with their owners, so that a leak check names them. */
void pl_paranoid_close(pl_device *d) {
  paranoid *s = d->state;
  pl_cpu_close(&s->cpu);
  pl_free(s->spans);
  pl_free(s);
}
