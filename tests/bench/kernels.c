/* Every operation of the device but the matrix products (bench_gemm), on arrays that stay in the second-level cache and
 * on arrays that do not: bytes that it must move and operations that it must make by formula, against the measured
 * triad and the measured peak. exp, division and square root count as one operation; rows of stats, tables and weights
 * that stay in the first-level cache count nothing, nor does the line that a write reads first. Usage: bench_kernels
 * [--rounds N]. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench.h"

enum { ARRAYS = 6, WIDTH = 256, HEADS = 4 };

/* What the operations work on; the arrays have rows * WIDTH elements. */
typedef struct room {
  pl_device *d;
  size_t rows, n, side; /* side: of a symmetric product */
  pl_real *x[ARRAYS], *weight, *bias, *stats, *more_stats, *grad, *more_grad, *table, *saved, *scratch;
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
OP(embedding_forward, r->rows, WIDTH, r->ids, r->x[0], r->x[1])
OP(embedding_backward, r->rows, WIDTH, r->ids, r->x[0], r->x[1])
OP(add_rows_forward, r->rows, WIDTH, 1, r->weight, r->x[0])
OP(add_rows_backward, r->rows, WIDTH, 1, r->x[0], r->grad)
OP(rmsnorm_forward, r->rows, WIDTH, r->x[0], r->weight, 1e-5, r->x[1], r->stats)
OP(rmsnorm_backward, r->rows, WIDTH, r->x[0], r->weight, r->stats, r->x[1], r->x[2], r->grad)
OP(layernorm_forward, r->rows, WIDTH, r->x[0], r->weight, r->bias, 1e-5, r->x[1], r->stats, r->more_stats)
OP(layernorm_backward, r->rows, WIDTH, r->x[0], r->weight, r->stats, r->more_stats, r->x[1], r->x[2], r->grad,
   r->more_grad)
OP(rope, r->rows, 64, HEADS, WIDTH / HEADS, r->table, false, r->x[0])
OP(swiglu_forward, r->n, r->x[0], r->x[1], r->x[2])
OP(swiglu_backward, r->n, r->x[0], r->x[1], r->x[2], r->x[3], r->x[4])
OP(gelu_forward, r->n, r->x[0], r->x[1])
OP(gelu_backward, r->n, r->x[0], r->x[1], r->x[2])
OP(cross_entropy, r->rows, WIDTH, r->ids, true, 1, r->x[0], r->doubles)
OP(axpby, r->n, 0.5, r->x[0], 0.5, r->x[1])
OP(shrink_subtract, r->n, 0.9, r->x[0], r->x[1], r->x[2])
OP(adamw, r->n, r->x[0], 0.9, 0.95, 0.1, 0.05, 1e-8, 1e-3, r->x[1], r->x[2], r->x[3])
OP(momentum, r->n, r->x[0], 0.9, 1, true, 1, 1e-3, r->x[1], r->x[2])
OP(syrk, false, r->side, r->n / r->side, 1, r->x[0], r->n / r->side, 0, r->x[1], r->side)
OP(attention_forward, &r->shape, r->x[0], r->x[1], r->x[2], r->x[3], r->saved, r->scratch)
OP(attention_backward, &r->shape, r->x[0], r->x[1], r->x[2], r->x[3], r->saved, r->x[4], r->x[5], r->grad, r->more_grad,
   r->scratch)
#undef OP
#define SUM(name, ...)                                                                                                 \
  static void run_##name(void *self) {                                                                                 \
    room *r = self;                                                                                                    \
    r->doubles[0] = r->d->ops->name(r->d, __VA_ARGS__);                                                                \
  }
SUM(sum_squares, r->n, r->x[0])
SUM(dot, r->n, r->x[0], r->x[1])
SUM(sum_double, r->rows, r->doubles)
#undef SUM

/* Of an element: bytes that must move, in units of an element, and operations. */
typedef struct kernel {
  const char *name;
  double moved, flops;
  void (*run)(void *self);
} kernel;

#define ROW(name, moved, flops)                                                                                        \
  { #name, moved, flops, run_##name }
static const kernel kernels[] = {
    ROW(copy, 2, 0),
    ROW(zero, 1, 0),
    ROW(embedding_forward, 1, 0),
    ROW(embedding_backward, 1, 1),
    ROW(add_rows_forward, 2, 1),
    ROW(add_rows_backward, 1, 1),
    ROW(rmsnorm_forward, 2, 4),
    ROW(rmsnorm_backward, 4, 10),
    ROW(layernorm_forward, 2, 7),
    ROW(layernorm_backward, 4, 13),
    ROW(rope, 2, 3),
    ROW(swiglu_forward, 3, 5),
    ROW(swiglu_backward, 5, 11),
    ROW(gelu_forward, 2, 10),
    ROW(gelu_backward, 3, 17),
    ROW(cross_entropy, 2, 5),
    ROW(axpby, 3, 3),
    ROW(shrink_subtract, 3, 2),
    ROW(sum_squares, 1, 2),
    ROW(dot, 2, 2),
    ROW(adamw, 6, 13),
    ROW(momentum, 4, 6),
};
/* Of the numbers that they have: a double of each row; products. */
static const kernel sum_double = ROW(sum_double, 0, 0), syrk = ROW(syrk, 0, 0);
static const kernel attention[] = {ROW(attention_forward, 4, 2), ROW(attention_backward, 8, 4)};

/* Angles of a rotary embedding; anything else would make numbers vanish or grow from call to call. */
static pl_real *rotations(size_t time, size_t head_dim) {
  pl_real *table = bench_numbers(time * head_dim);
  for (size_t t = 0; t < time; t++)
    for (size_t i = 0; i < head_dim / 2; i++) {
      table[t * head_dim + i] = (pl_real)cos((double)(t * i));
      table[t * head_dim + head_dim / 2 + i] = (pl_real)sin((double)(t * i));
    }
  return table;
}

static room open_room(pl_device *d, size_t rows) {
  room r = {.d = d,
            .rows = rows,
            .n = rows * WIDTH,
            .side = rows < 1024 ? 64 : 1024,
            .shape = {rows / 256, 256, HEADS, HEADS, WIDTH / HEADS}};
  if (r.shape.batch == 0) r.shape = (pl_attention){1, rows, HEADS, HEADS, WIDTH / HEADS};
  for (size_t i = 0; i < ARRAYS; i++) r.x[i] = bench_numbers(r.n);
  for (size_t i = 0; i < r.n; i++) r.x[2][i] = (pl_real)fabs((double)r.x[2][i]); /* a second moment */
  r.weight = bench_numbers(WIDTH);
  r.bias = bench_numbers(WIDTH);
  r.grad = bench_numbers(r.n);
  r.more_grad = bench_numbers(r.n);
  r.stats = bench_numbers(rows);
  r.more_stats = bench_numbers(rows);
  r.table = rotations(64, WIDTH / HEADS);
  r.saved = bench_numbers(d->ops->attention_saved_size(&r.shape));
  r.scratch = bench_numbers(d->ops->attention_scratch_size(d, &r.shape));
  r.ids = calloc(rows, sizeof *r.ids);
  r.doubles = calloc(rows, sizeof *r.doubles);
  if (!r.ids || !r.doubles) abort();
  const size_t ids = rows < WIDTH ? rows : WIDTH; /* both rows of a table and classes */
  for (size_t i = 0; i < rows; i++) r.ids[i] = (int32_t)(i * 97 % ids);
  return r;
}

static void close_room(room *r) {
  pl_real *const arrays[] = {r->weight, r->bias,       r->grad,  r->more_grad, r->stats,
                             r->table,  r->more_stats, r->saved, r->scratch};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
  for (size_t i = 0; i < ARRAYS; i++) free(r->x[i]);
  free(r->ids);
  free(r->doubles);
}

typedef struct machine {
  double peak, bandwidth; /* of the size */
  const char *size;
  size_t rounds;
  pl_json *rows;
} machine;

static void measure(const machine *m, const kernel *k, room *r, double bytes, double flops) {
  bench_time time;
  bench_in_turn(&(bench_work){k->run, r}, 1, m->rounds, 0.02, &time);
  pl_json *line = pl_json_new_object();
  bench_text(line, "op", k->name);
  bench_text(line, "size", m->size);
  bench_set(line, "bytes", bytes);
  bench_set(line, "flops", flops);
  bench_set(line, "microseconds", 1e6 * time.median);
  bench_set(line, "microseconds_best", 1e6 * time.best);
  bench_set(line, "gb_per_second", 1e-9 * bytes / time.median);
  bench_set(line, "of_triad", bytes / time.median / m->bandwidth);
  bench_set(line, "gflops", 1e-9 * flops / time.median);
  bench_set(line, "of_peak", flops / time.median / m->peak);
  bench_add(m->rows, line);
  printf("%-20s %-6s %10.1f us %7.1f GB/s %4.0f%% of triad %8.1f GFLOP/s %3.0f%% of peak\n", k->name, m->size,
         1e6 * time.median, 1e-9 * bytes / time.median, 100 * bytes / time.median / m->bandwidth,
         1e-9 * flops / time.median, 100 * flops / time.median / m->peak);
}

static void measure_all(pl_device *d, const machine *m, size_t rows) {
  room r = open_room(d, rows);
  const double n = (double)r.n, real = sizeof(pl_real);
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    measure(m, &kernels[i], &r, real * kernels[i].moved * n, kernels[i].flops * n);
  measure(m, &sum_double, &r, 8.0 * (double)rows, (double)rows);
  measure(m, &syrk, &r, real * (n + (double)(r.side * r.side)), n * (double)(r.side + 1));
  const pl_attention *s = &r.shape;
  const double product = (double)s->batch * HEADS * (double)s->time * (double)(s->time + 1) * (double)s->head_dim;
  for (size_t i = 0; i < sizeof attention / sizeof *attention; i++)
    measure(m, &attention[i], &r, real * attention[i].moved * n, attention[i].flops * product);
  close_room(&r);
}

int main(int argc, char **argv) {
  pl_device *d = NULL;
  pl_err e = {0};
  const size_t rounds = bench_rounds(argc, argv, 5);
  const bench_peaks peaks = bench_measure_peaks();
  const bench_bandwidth b = bench_measure_bandwidth();
  bench_must(pl_device_open("cpu", PL_PRECISION_FP32, 1, &d, &e), &e);
  pl_json *rows = pl_json_new_array(), *triad = pl_json_new_object();
  bench_text(triad, "op", "triad");
  bench_set(triad, "cache_gb_per_second", 1e-9 * b.cache);
  bench_set(triad, "large_gb_per_second", 1e-9 * b.large);
  bench_add(rows, triad);
  printf("peak %.1f GFLOP/s, triad %.1f GB/s in the cache, %.1f GB/s large\n", 1e-9 * peaks.fp32, 1e-9 * b.cache,
         1e-9 * b.large);
  measure_all(d, &(machine){peaks.fp32, b.cache, "cache", rounds, rows}, 64);
  measure_all(d, &(machine){peaks.fp32, b.large, "large", rounds, rows}, 32768);
  bench_print_result("kernels", rows, d->kernel, &peaks);
  pl_device_close(d);
  return 0;
}
