#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/gpu/bench.h"

enum { ARRAYS = 6, ANGLES = 64 };

/* What the operations work on; the arrays x have rows * width elements, inner is 4 width x width. */
typedef struct room {
  pl_device *d;
  size_t rows, width, n, classes, tokens; /* classes: of the cross-entropy; tokens: of the products */
  pl_real *x[ARRAYS], *inner, *more_inner, *weight, *bias, *stats, *more_stats, *grad, *more_grad, *table, *saved,
      *scratch, *head, *logits;
  int32_t *ids;
  double *doubles;
  pl_attention shape;
} room;

#define OP(name, ...)                                                                                                  \
  static void run_##name(void *self) {                                                                                 \
    room *r = self;                                                                                                    \
    r->d->ops->name(r->d, __VA_ARGS__);                                                                                \
  }
OP(copy, r->x[0], r->x[1], r->n * sizeof(pl_real))
OP(zero, r->x[0], r->n * sizeof(pl_real))
OP(embedding_forward, r->rows, r->width, r->ids, r->x[0], r->x[1])
OP(embedding_backward, r->rows, r->width, r->ids, r->x[0], r->x[1])
OP(add_rows_forward, r->rows, r->width, 1, r->weight, r->x[0])
OP(add_rows_backward, r->rows, r->width, 1, r->x[0], r->grad)
OP(rmsnorm_forward, r->rows, r->width, r->x[0], r->weight, 1e-5, r->x[1], r->stats)
OP(rmsnorm_backward, r->rows, r->width, r->x[0], r->weight, r->stats, r->x[1], r->x[2], r->grad)
OP(layernorm_forward, r->rows, r->width, r->x[0], r->weight, r->bias, 1e-5, r->x[1], r->stats, r->more_stats)
OP(layernorm_backward, r->rows, r->width, r->x[0], r->weight, r->stats, r->more_stats, r->x[1], r->x[2], r->grad,
   r->more_grad)
OP(rope, r->rows, ANGLES, r->shape.heads, r->shape.head_dim, r->table, false, r->x[0])
OP(swiglu_forward, r->n, r->x[0], r->x[1], r->x[2])
OP(swiglu_backward, r->n, r->x[0], r->x[1], r->x[2], r->x[3], r->x[4])
OP(gelu_forward, r->n, r->x[0], r->x[1])
OP(gelu_backward, r->n, r->x[0], r->x[1], r->x[2])
OP(cross_entropy, r->n / r->classes, r->classes, r->ids, true, 1, r->x[0], r->doubles)
OP(axpby, r->n, 0.5, r->x[0], 0.5, r->x[1])
OP(shrink_subtract, r->n, 0.9, r->x[0], r->x[1], r->x[2])
OP(adamw, r->n, r->x[0], 0.9, 0.95, 0.1, 0.05, 1e-8, 1e-3, r->x[1], r->x[5], r->x[3])
OP(momentum, r->n, r->x[0], 0.9, 1, true, 1, 1e-3, r->x[1], r->x[2])
OP(attention_forward, &r->shape, r->x[0], r->x[1], r->x[2], r->x[3], r->saved, r->scratch)
OP(attention_backward, &r->shape, r->x[0], r->x[1], r->x[2], r->x[3], r->saved, r->x[4], r->x[5], r->grad, r->more_grad,
   r->scratch)
#undef OP

static void run_sum_squares(void *self) {
  room *r = self;
  (void)r->d->ops->sum_squares(r->d, r->n, r->x[0]);
}

/* The products of one layer's larger matrix and of the head: forward, and backward for the input and for the weight. */
#define PRODUCT(name, ta, tb, m, n, k, a, lda, b, ldb, c, ldc)                                                         \
  static void run_##name(void *self) {                                                                                 \
    room *r = self;                                                                                                    \
    r->d->ops->gemm_low(r->d, ta, tb, m, n, k, 1, a, lda, b, ldb, 0, c, ldc);                                          \
  }
PRODUCT(up_forward, false, true, r->tokens, 4 * r->width, r->width, r->x[0], r->width, r->inner, r->width, r->x[2],
        4 * r->width)
PRODUCT(up_input, false, false, r->tokens, r->width, 4 * r->width, r->x[2], 4 * r->width, r->inner, r->width, r->x[3],
        r->width)
PRODUCT(up_weight, true, false, 4 * r->width, r->width, r->tokens, r->x[2], 4 * r->width, r->x[0], r->width,
        r->more_inner, r->width)
PRODUCT(head_forward, false, true, r->tokens, r->classes, r->width, r->x[0], r->width, r->head, r->width, r->logits,
        r->classes)
#undef PRODUCT

typedef struct kernel {
  const char *name;
  double moved; /* bytes of an element, in units of an element; 0 where operations count */
  void (*run)(void *self);
} kernel;

#define ROW(name, moved)                                                                                               \
  { #name, moved, run_##name }
static const kernel kernels[] = {
    ROW(copy, 2),
    ROW(zero, 1),
    ROW(embedding_forward, 1),
    ROW(embedding_backward, 1),
    ROW(add_rows_forward, 2),
    ROW(add_rows_backward, 1),
    ROW(rmsnorm_forward, 2),
    ROW(rmsnorm_backward, 4),
    ROW(layernorm_forward, 2),
    ROW(layernorm_backward, 4),
    ROW(rope, 2),
    ROW(swiglu_forward, 3),
    ROW(swiglu_backward, 5),
    ROW(gelu_forward, 2),
    ROW(gelu_backward, 3),
    ROW(cross_entropy, 2),
    ROW(axpby, 3),
    ROW(shrink_subtract, 3),
    ROW(sum_squares, 1),
    ROW(adamw, 6),
    ROW(momentum, 4),
};
static const kernel attention[] = {ROW(attention_forward, 0), ROW(attention_backward, 0)};
static const kernel layer_products[] = {ROW(up_forward, 0), ROW(up_input, 0), ROW(up_weight, 0)};
static const kernel head_product = ROW(head_forward, 0);
#undef ROW

/* Angles of a rotary embedding; anything else would make numbers vanish or grow from call to call. */
static pl_real *rotations(pl_device *d, size_t time, size_t head_dim) {
  pl_real *host = bench_numbers(time * head_dim), *table = gpu_array(d, time * head_dim * sizeof *table);
  for (size_t t = 0; t < time; t++)
    for (size_t i = 0; i < head_dim / 2; i++) {
      host[t * head_dim + i] = (pl_real)cos((double)(t * i));
      host[t * head_dim + head_dim / 2 + i] = (pl_real)sin((double)(t * i));
    }
  d->ops->upload(d, table, host, time * head_dim * sizeof *table);
  free(host);
  return table;
}

/* Both rows of a table and classes: below both. */
static int32_t *some_ids(const room *r) {
  int32_t *host = calloc(r->rows, sizeof *host), *ids = gpu_array(r->d, r->rows * sizeof *ids);
  const size_t most = r->rows < r->classes ? r->rows : r->classes;
  if (!host) abort();
  for (size_t i = 0; i < r->rows; i++) host[i] = (int32_t)(i * 97 % most);
  r->d->ops->upload(r->d, ids, host, r->rows * sizeof *ids);
  free(host);
  return ids;
}

/* GPT-2's; no array of the large ones fits into a GPU's cache. */
static const room large = {
    .rows = 65536, .width = 768, .classes = 50304, .tokens = 16384, .shape = {64, 1024, 12, 12, 64}};
static const room tiny = {.rows = 32, .width = 32, .classes = 96, .tokens = 4, .shape = {1, 32, 2, 2, 16}};

static void open_room(pl_device *d, bool small, room *r) {
  *r = small ? tiny : large;
  r->d = d;
  r->n = r->rows * r->width;
  for (size_t i = 0; i < ARRAYS; i++) r->x[i] = gpu_numbers(d, r->n);
  d->ops->zero(d, r->x[5], r->n * sizeof(pl_real)); /* a second moment */
  r->inner = gpu_numbers(d, 4 * r->width * r->width);
  r->more_inner = gpu_numbers(d, 4 * r->width * r->width);
  r->weight = gpu_numbers(d, r->width);
  r->bias = gpu_numbers(d, r->width);
  r->grad = gpu_numbers(d, r->n);
  r->more_grad = gpu_numbers(d, r->n);
  r->stats = gpu_numbers(d, r->rows);
  r->more_stats = gpu_numbers(d, r->rows);
  r->table = rotations(d, ANGLES, r->shape.head_dim);
  r->saved = gpu_numbers(d, d->ops->attention_saved_size(&r->shape));
  r->scratch = gpu_numbers(d, d->ops->attention_scratch_size(d, &r->shape) + 1);
  r->head = gpu_numbers(d, r->classes * r->width);
  r->logits = gpu_numbers(d, r->tokens * r->classes);
  r->ids = some_ids(r);
  r->doubles = gpu_array(d, r->rows * sizeof *r->doubles);
}

static void wait_room(void *self) { gpu_wait(((room *)self)->d); }

/* A line of the result; its bytes or operations are 0 where the other counts. */
static void measure(const gpu_sizes *s, room *r, const kernel *k, double bytes, double flops, pl_json *rows) {
  const gpu_work work = {k->run, wait_room, r};
  const double seconds = gpu_seconds(&work, s->least);
  pl_json *line = pl_json_new_object();
  bench_text(line, "op", k->name);
  bench_set(line, "microseconds", 1e6 * seconds);
  if (bytes > 0) bench_set(line, "gb_per_second", 1e-9 * bytes / seconds);
  if (flops > 0) bench_set(line, "tflops", 1e-12 * flops / seconds);
  bench_add(rows, line);
  fprintf(stderr, "%-20s %10.1f us %8.1f GB/s %8.1f TFLOP/s\n", k->name, 1e6 * seconds, 1e-9 * bytes / seconds,
          1e-12 * flops / seconds);
}

pl_json *gpu_bench_kernels(const gpu_sizes *s) {
  pl_device *d = NULL;
  pl_err e = {0};
  room r;
  bench_must(pl_device_open("cuda", PL_PRECISION_BF16, 1, &d, &e), &e);
  open_room(d, s->small, &r);
  pl_json *rows = pl_json_new_array(), *found = pl_json_new_object();
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    measure(s, &r, &kernels[i], kernels[i].moved * (double)(r.n * sizeof(pl_real)), 0, rows);
  const pl_attention *a = &r.shape; /* a product over the scores that the mask leaves, of which forward has two */
  const double scores = (double)(a->batch * a->heads) * (double)a->time * (double)(a->time + 1) * (double)a->head_dim;
  for (size_t i = 0; i < 2; i++) measure(s, &r, &attention[i], 0, (i == 0 ? 2 : 4) * scores, rows);
  const double tokens = (double)r.tokens, width = (double)r.width;
  for (size_t i = 0; i < sizeof layer_products / sizeof *layer_products; i++)
    measure(s, &r, &layer_products[i], 0, 8 * tokens * width * width, rows);
  measure(s, &r, &head_product, 0, 2 * tokens * (double)r.classes * width, rows);
  if (!pl_json_set(found, "kernels", rows)) abort();
  pl_device_close(d);
  return found;
}
