/* How fast the GPU is, measured: gpu_bench ceilings|kernels|muon [--small]; the last line is JSON. */
#include "tests/gpu/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"

enum { ROUNDS = 5 };

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double seconds_of(const gpu_work *w, size_t calls) {
  const double before = pl_clock_seconds();
  for (size_t i = 0; i < calls; i++) w->run(w->self);
  w->wait(w->self);
  return pl_clock_seconds() - before;
}

double gpu_seconds(const gpu_work *w, double least) {
  double rounds[ROUNDS], once = 0;
  size_t calls = 1;
  (void)seconds_of(w, 2);
  for (once = seconds_of(w, 1); once < least / 4 && calls < 1 << 16; once = seconds_of(w, calls)) calls *= 2;
  calls = (size_t)((double)calls * least / once) + 1;
  for (size_t i = 0; i < ROUNDS; i++) rounds[i] = seconds_of(w, calls) / (double)calls;
  qsort(rounds, ROUNDS, sizeof *rounds, ascending);
  return rounds[ROUNDS / 2];
}

void gpu_wait(pl_device *d) {
  static void *word;
  float out = 0;
  pl_err e = {0};
  if (!word) word = gpu_array(d, sizeof out);
  d->ops->download(d, &out, word, sizeof out);
  bench_must(d->ops->check(d, &e), &e);
}

void *gpu_array(pl_device *d, size_t bytes) {
  void *p = NULL;
  pl_err e = {0};
  bench_must(d->ops->alloc(d, bytes, "an array", &p, &e), &e);
  return p;
}

pl_real *gpu_numbers(pl_device *d, size_t n) {
  pl_real *host = bench_numbers(n), *p = gpu_array(d, n * sizeof *p);
  d->ops->upload(d, p, host, n * sizeof *p);
  free(host);
  return p;
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    pl_json *(*run)(const gpu_sizes *s);
  } parts[] = {{"ceilings", gpu_bench_ceilings}, {"kernels", gpu_bench_kernels}, {"muon", gpu_bench_muon}};
  const bool small = bench_asked(argc, argv, "--small");
  const gpu_sizes sizes = {.small = small, .least = small ? 1e-4 : 0.05};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    if (argc < 2 || strcmp(argv[1], parts[i].name) != 0) continue;
    pl_json *found = parts[i].run(&sizes);
    pl_str text = {0};
    pl_json_write_canonical(found, &text);
    printf("%s\n", pl_str_text(&text));
    pl_str_free(&text);
    pl_json_release(found);
    return 0;
  }
  fprintf(stderr, "gpu_bench: saw \"%s\"; allowed: ceilings, kernels, muon\n", argc < 2 ? "" : argv[1]);
  return PL_BAD;
}
