/* What one core of this machine can do at most, measured. */
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "tests/bench/bench.h"

enum { CHAINS = 12, TURNS = 1 << 20, TRIES = 5 };

/* A loop over CHAINS independent accumulators, which hides the latency of an operation. */
#define CHAIN_LOOP(type, zero, step)                                                                                   \
  type sum[CHAINS];                                                                                                    \
  for (int i = 0; i < CHAINS; i++) sum[i] = zero;                                                                      \
  for (int t = 0; t < TURNS; t++) {                                                                                    \
    _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) sum[i] = step;                                           \
  }                                                                                                                    \
  for (int i = 1; i < CHAINS; i++) sum[0] += sum[i]

/* The best of a few tries of something with so many operations. */
static double rate_of(double (*run)(void), double operations) {
  double best = 0;
  volatile double used = 0;
  for (int i = 0; i < TRIES; i++) {
    const double before = pl_clock_seconds();
    used += run();
    const double rate = operations / (pl_clock_seconds() - before);
    if (rate > best) best = rate;
  }
  return best;
}

#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((target("avx512f"))) static double fma_512(void) {
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  CHAIN_LOOP(__m512, _mm512_set1_ps((float)i), _mm512_fmadd_ps(sum[i], a, b));
  return (double)_mm512_reduce_add_ps(sum[0]);
}

__attribute__((target("avx2,fma"))) static double fma_256(void) {
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  CHAIN_LOOP(__m256, _mm256_set1_ps((float)i), _mm256_fmadd_ps(sum[i], a, b));
  return (double)_mm256_cvtss_f32(sum[0]);
}

static double multiply_add_128(void) {
  const __m128 a = _mm_set1_ps(0.999f), b = _mm_set1_ps(0.001f);
  CHAIN_LOOP(__m128, _mm_set1_ps((float)i), _mm_add_ps(_mm_mul_ps(sum[i], a), b));
  return (double)_mm_cvtss_f32(sum[0]);
}

__attribute__((target("avx512f,avx512bf16"))) static double dot_bf16(void) {
  const __m512bh a = (__m512bh)_mm512_set1_epi16(0x3f00), b = (__m512bh)_mm512_set1_epi16(0x3c00);
  CHAIN_LOOP(__m512, _mm512_set1_ps((float)i), _mm512_dpbf16_ps(sum[i], a, b));
  return (double)_mm512_reduce_add_ps(sum[0]);
}

enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };

static bool has_tiles(void) {
  unsigned a = 7, b = 0, c = 0, d = 0;
  __asm__ volatile("cpuid" : "+a"(a), "+b"(b), "+c"(c), "+d"(d));
  return (d >> 22 & 1) && (d >> 24 & 1) && syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

__attribute__((target("amx-tile,amx-bf16"))) static double dot_tiles(void) {
  /* Whole and constant: the compiler takes the instruction to read only the first bytes of it. */
  static const struct {
    uint8_t palette, start, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
  } config = {.palette = 1, .bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
  static const uint16_t words[16 * 32] = {0};
  _tile_loadconfig(&config);
  _tile_loadd(4, words, 64);
  _tile_loadd(5, words, 64);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int t = 0; t < TURNS / 4; t++) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_release();
  return 0;
}

bench_peaks bench_measure_peaks(void) {
  const double turns = (double)TURNS * CHAINS;
  bench_peaks p = {.fp32 = rate_of(multiply_add_128, turns * 4 * 2)};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    const double rate = rate_of(fma_256, turns * 8 * 2);
    if (rate > p.fp32) p.fp32 = rate;
  }
  if (__builtin_cpu_supports("avx512f")) {
    const double rate = rate_of(fma_512, turns * 16 * 2);
    if (rate > p.fp32) p.fp32 = rate;
  }
  if (__builtin_cpu_supports("avx512bf16")) p.avx512_bf16 = rate_of(dot_bf16, turns * 32 * 2);
  if (has_tiles()) p.amx_bf16 = rate_of(dot_tiles, (double)TURNS * 16 * 16 * 32 * 2);
  return p;
}
#else
static double multiply_add(void) {
  CHAIN_LOOP(double, i, sum[i] * 0.999 + 0.001);
  return sum[0];
}

bench_peaks bench_measure_peaks(void) { return (bench_peaks){.fp32 = rate_of(multiply_add, 2.0 * TURNS * CHAINS)}; }
#endif

typedef struct triad {
  size_t n;
  pl_real *a, *b, *c;
} triad;

__attribute__((optimize("O3"))) static void run_triad(void *self) {
  triad *t = self;
  pl_real *restrict a = t->a;
  const pl_real *restrict b = t->b, *restrict c = t->c;
  for (size_t i = 0; i < t->n; i++) a[i] = b[i] + (pl_real)3 * c[i];
}

static double triad_rate(size_t n) {
  triad t = {n, bench_numbers(n), bench_numbers(n), bench_numbers(n)};
  bench_time time;
  bench_in_turn(&(bench_work){run_triad, &t}, 1, TRIES, 0.05, &time);
  free(t.a);
  free(t.b);
  free(t.c);
  return 3 * (double)(n * sizeof(pl_real)) / time.best;
}

bench_bandwidth bench_measure_bandwidth(void) {
  return (bench_bandwidth){triad_rate(32 << 20 >> 2), triad_rate(16 << 10)};
}
