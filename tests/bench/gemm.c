/* The products of a model's training step through the device, each by itself: forward, gradient of the input, gradient
 * of the weights, in fp32 and in bf16, in turn with oneDNN where the build has it, beside the measured peak. Usage:
 * bench_gemm [--rounds N] [SHAPE...], or --peak, or --kernel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench.h"
#include "tests/bench/onednn.h"

typedef enum pass { FORWARD, INPUT, WEIGHTS, PASSES } pass;
static const char *const pass_names[PASSES] = {"forward", "input", "weights"};

/* c[m,n] (+)= op(a) op(b); the weights' gradient is added to. */
typedef struct product {
  pass pass;
  size_t m, n, k;
  pl_real *a, *b, *c;
  pl_device *device;
  void *rival;
} product;

static void multiply(const product *p, bool low) {
  const bool ta = p->pass == WEIGHTS, tb = p->pass == FORWARD;
  (low ? p->device->ops->gemm_low : p->device->ops->gemm)(p->device, ta, tb, p->m, p->n, p->k, 1, p->a,
                                                          ta ? p->m : p->k, p->b, tb ? p->k : p->n,
                                                          p->pass == WEIGHTS ? 1 : 0, p->c, p->n);
}

static void run_full(void *self) { multiply(self, false); }
static void run_low(void *self) { multiply(self, true); }

static void run_rival(void *self) {
  const product *p = self;
  const bool ta = p->pass == WEIGHTS, tb = p->pass == FORWARD;
  bench_onednn_sgemm(ta, tb, p->m, p->n, p->k, p->a, ta ? p->m : p->k, p->b, tb ? p->k : p->n,
                     p->pass == WEIGHTS ? 1 : 0, p->c, p->n);
}

static void run_rival_low(void *self) { bench_onednn_run(((product *)self)->rival); }

typedef struct devices {
  pl_device *full, *low; /* low: NULL without bf16 instructions */
} devices;

/* A linear map of `rows` tokens from `in` to `out` features, in one of its passes. */
static product make(pass which, size_t rows, size_t in, size_t out) {
  product p = {.pass = which, .m = rows, .n = out, .k = in};
  if (which == INPUT) p = (product){.pass = which, .m = rows, .n = in, .k = out};
  if (which == WEIGHTS) p = (product){.pass = which, .m = out, .n = in, .k = rows};
  p.a = bench_numbers(p.m * p.k);
  p.b = bench_numbers(p.k * p.n);
  p.c = bench_numbers(p.m * p.n);
  return p;
}

static void measure(const devices *d, const char *shape, const char *name, product p, size_t rounds, pl_json *rows) {
  static const char *const names[] = {"fp32", "bf16", "onednn_fp32", "onednn_bf16"};
  product full = p, low = p;
  full.device = d->full;
  low.device = d->low;
  low.rival = bench_onednn_low(p.pass == WEIGHTS, p.pass == FORWARD, p.m, p.n, p.k);
  const bench_work all[] = {{run_full, &full},
                            {d->low ? run_low : NULL, &low},
                            {bench_onednn_is_there() ? run_rival : NULL, &full},
                            {low.rival ? run_rival_low : NULL, &low}};
  bench_work works[BENCH_ARMS];
  bench_time times[BENCH_ARMS];
  size_t which[BENCH_ARMS], count = 0;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i].run) {
      which[count] = i;
      works[count++] = all[i];
    }
  bench_in_turn(works, count, rounds, 0.02, times);
  const double gflop = 2e-9 * (double)p.m * (double)p.n * (double)p.k;
  pl_json *line = pl_json_new_object();
  bench_text(line, "shape", shape);
  bench_text(line, "product", name);
  bench_text(line, "pass", pass_names[p.pass]);
  bench_set(line, "m", (double)p.m);
  bench_set(line, "n", (double)p.n);
  bench_set(line, "k", (double)p.k);
  printf("%-5s %-5s %-8s %5zu %5zu %5zu ", shape, name, pass_names[p.pass], p.m, p.n, p.k);
  for (size_t i = 0; i < count; i++) {
    char key[32];
    printf(" %s %.0f (%.0f)", names[which[i]], gflop / times[i].median, gflop / times[i].best);
    bench_set(line, names[which[i]], gflop / times[i].median);
    snprintf(key, sizeof key, "%s_best", names[which[i]]);
    bench_set(line, key, gflop / times[i].best);
  }
  printf("\n");
  bench_add(rows, line);
  bench_onednn_free(low.rival);
  free(p.a);
  free(p.b);
  free(p.c);
}

static void measure_shape(const devices *d, const bench_shape *s, size_t rounds, pl_json *rows) {
  bench_matrix m[BENCH_MATRICES + 1];
  bench_matrices(s, m);
  m[BENCH_MATRICES] = (bench_matrix){"head", s->vocab, s->width};
  for (size_t i = 0; i <= BENCH_MATRICES; i++) {
    if (strcmp(m[i].name, "v") == 0 || strcmp(m[i].name, "o") == 0 || strcmp(m[i].name, "up") == 0) continue;
    for (pass p = 0; p < PASSES; p++)
      measure(d, s->name, m[i].name, make(p, s->tokens, m[i].cols, m[i].rows), rounds, rows);
  }
}

int main(int argc, char **argv) {
  devices d = {0};
  pl_err e = {0}, none = {0};
  bool any = false;
  bench_must(pl_device_open("cpu", PL_PRECISION_FP32, 1, &d.full, &e), &e);
  if (pl_device_open("cpu", PL_PRECISION_BF16, 1, &d.low, &none) != PL_OK) d.low = NULL;
  const char *kernel = (d.low ? d.low : d.full)->kernel;
  if (bench_asked(argc, argv, "--kernel")) {
    printf("%s\n", kernel);
  } else {
    const bench_peaks peaks = bench_measure_peaks();
    pl_json *rows = pl_json_new_array();
    bench_print_peaks(&peaks);
    for (size_t i = 0; i < BENCH_SHAPES; i++) any = any || bench_asked(argc, argv, bench_shapes[i].name);
    for (size_t i = 0; i < BENCH_SHAPES && !bench_asked(argc, argv, "--peak"); i++)
      if (any ? bench_asked(argc, argv, bench_shapes[i].name) : i < 2)
        measure_shape(&d, &bench_shapes[i], bench_rounds(argc, argv, 5), rows);
    if (pl_json_size(rows) > 0)
      bench_print_result("gemm", rows, kernel, &peaks);
    else
      pl_json_release(rows);
  }
  pl_device_close(d.low);
  pl_device_close(d.full);
  return 0;
}
