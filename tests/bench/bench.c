#include "tests/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/memory.h"

const bench_shape bench_shapes[BENCH_SHAPES] = {
    {"a", 4, 256, 128, 704, 512, 2048},
    {"b", 6, 512, 256, 1408, 8192, 1024},
    {"c", 2, 128, 64, 384, 256, 1024},
    {"d", 2, 64, 32, 192, 128, 512},
};

void bench_matrices(const bench_shape *s, bench_matrix out[BENCH_MATRICES]) {
  const bench_matrix all[BENCH_MATRICES] = {
      {"q", s->width, s->width}, {"k", s->kv_width, s->width}, {"v", s->kv_width, s->width}, {"o", s->width, s->width},
      {"gate", s->ff, s->width}, {"up", s->ff, s->width},      {"down", s->width, s->ff},
  };
  memcpy(out, all, sizeof all);
}

void bench_must(pl_status st, const pl_err *e) {
  if (st == PL_OK) return;
  fprintf(stderr, "%s\n", e->text);
  exit(st);
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double seconds_of(const bench_work *w, size_t times) {
  const double before = pl_clock_seconds();
  for (size_t i = 0; i < times; i++) w->run(w->self);
  return pl_clock_seconds() - before;
}

/* How often it must be done to fill that time; the first call, which may touch new memory, tells nothing. */
static size_t calls_for(const bench_work *w, double least) {
  (void)seconds_of(w, 1);
  size_t times = 1;
  double seconds = seconds_of(w, 1);
  while (seconds < least / 4 && times < 1u << 24) {
    times *= 2;
    seconds = seconds_of(w, times);
  }
  const double wanted = (double)times * least / (seconds > 0 ? seconds : least);
  return wanted < 1 ? 1 : (size_t)wanted;
}

void bench_in_turn(const bench_work *works, size_t count, size_t rounds, double least, bench_time *out) {
  double seconds[BENCH_ARMS][BENCH_ROUNDS];
  size_t calls[BENCH_ARMS];
  if (rounds > BENCH_ROUNDS) rounds = BENCH_ROUNDS;
  for (size_t i = 0; i < count; i++) calls[i] = calls_for(&works[i], least);
  for (size_t r = 0; r < rounds; r++)
    for (size_t i = 0; i < count; i++) seconds[i][r] = seconds_of(&works[i], calls[i]) / (double)calls[i];
  for (size_t i = 0; i < count; i++) {
    qsort(seconds[i], rounds, sizeof *seconds[i], by_size);
    out[i] = (bench_time){seconds[i][0], (seconds[i][(rounds - 1) / 2] + seconds[i][rounds / 2]) / 2};
  }
}

pl_real *bench_numbers(size_t count) {
  pl_real *x =
      aligned_alloc((size_t)PL_ALIGN, (count * sizeof *x + (size_t)PL_ALIGN) / (size_t)PL_ALIGN * (size_t)PL_ALIGN);
  if (!x) abort();
  uint32_t state = 1;
  for (size_t i = 0; i < count; i++) {
    state = state * 1664525u + 1013904223u;
    x[i] = (pl_real)((double)(state >> 8) / (1 << 23) - 1);
  }
  return x;
}

bool bench_asked(int argc, char **argv, const char *flag) {
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], flag) == 0) return true;
  return false;
}

size_t bench_rounds(int argc, char **argv, size_t otherwise) {
  int64_t value = 0;
  for (int i = 1; i + 1 < argc; i++)
    if (strcmp(argv[i], "--rounds") == 0 && pl_parse_int(argv[i + 1], &value) && value > 0) return (size_t)value;
  return otherwise;
}

void bench_set(pl_json *object, const char *key, double value) {
  if (!pl_json_set(object, key, pl_json_new_number(value))) abort();
}

void bench_text(pl_json *object, const char *key, const char *value) {
  if (!pl_json_set(object, key, pl_json_new_string(value))) abort();
}

void bench_add(pl_json *rows, pl_json *row) {
  if (!pl_json_append(rows, row)) abort();
}

static void print(pl_json *value) {
  pl_str text = {0};
  pl_json_write_canonical(value, &text);
  printf("%s\n", pl_str_text(&text));
  pl_str_free(&text);
  pl_json_release(value);
}

static pl_json *peaks_json(const bench_peaks *p) {
  pl_json *json = pl_json_new_object();
  bench_set(json, "fp32", 1e-9 * p->fp32);
  if (p->avx512_bf16 > 0) bench_set(json, "avx512_bf16", 1e-9 * p->avx512_bf16);
  if (p->amx_bf16 > 0) bench_set(json, "amx_bf16", 1e-9 * p->amx_bf16);
  return json;
}

void bench_print_peaks(const bench_peaks *p) { print(peaks_json(p)); }

void bench_print_result(const char *name, pl_json *rows, const char *kernel, const bench_peaks *peaks) {
  pl_json *json = pl_json_new_object();
  if (!pl_json_set(json, name, rows) || !pl_json_set(json, "peak", peaks_json(peaks))) abort();
  bench_text(json, "kernel", kernel);
  print(json);
}
