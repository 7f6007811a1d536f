/* Every operation of the CUDA device against float64 on numbers that are drawn anew each time, with precision bf16
 * those that have other kernels then: a line of JSON each, and exit status 1 when one is off by too much. Usage:
 * gpu_ops
 * [--seed N] [--small] [--plant]. --small leaves the large arrays out; --plant reads beyond an array instead, which a
 * memory checker has to see. */
#include <sys/random.h>

#include "core/base/str.h"
#include "tests/gpu/fresh.h"

/* A few roundings of numbers near 1; sums of thousands of them; roundings to bf16, with 8 bits, where the reference
 * does not round. */
#define SMALL 2e-5
#define LARGE 1e-4
#define BF16 0.05

static pl_device *opened(pl_precision precision) {
  pl_device *d = NULL;
  pl_err e = {0};
  if (pl_device_open("cuda", precision, 1, &d, &e) == PL_OK) return d;
  fprintf(stderr, "%s\n", e.text);
  exit(PL_BAD);
}

static bool run(pl_device *d, const fresh_check *c, double allowed) {
  const bool low = d->precision == PL_PRECISION_BF16;
  const double worst = c->run(d);
  if (low && c->rounds) allowed = BF16;
  pl_err e = {0};
  const bool good = worst < allowed && d->ops->check(d, &e) == PL_OK;
  printf("{\"op\":\"%s\",\"precision\":\"%s\",\"worst\":", c->name, low ? "bf16" : "fp32");
  printf(isfinite(worst) ? "%.3g" : "\"%f\"", worst);
  printf(",\"allowed\":%g,\"good\":%s}\n", allowed, good ? "true" : "false");
  fflush(stdout);
  if (e.text[0] != '\0') fprintf(stderr, "%s: %s\n", c->name, e.text);
  return good;
}

static bool run_each(pl_device *d, const fresh_check *checks, size_t count, double allowed) {
  bool good = true;
  for (size_t i = 0; i < count; i++)
    if (checks[i].low || d->precision == PL_PRECISION_FP32) good = run(d, &checks[i], allowed) && good;
  return good;
}

static bool run_all(pl_precision precision, bool small) {
  pl_device *d = opened(precision);
  bool good = run_each(d, fresh_small, fresh_small_count, SMALL);
  if (!small) good = run_each(d, fresh_large, fresh_large_count, LARGE) && good;
  pl_device_close(d);
  return good;
}

static int plant(void) {
  pl_device *d = opened(PL_PRECISION_FP32);
  bed b = {.d = d};
  pl_real *x = room(&b, 64);
  printf("%g\n", d->ops->sum_squares(d, 4096, x));
  finish(&b);
  pl_device_close(d);
  return 0;
}

int main(int argc, char **argv) {
  bool small = false, planted = false;
  if (getrandom(&fresh_seed, sizeof fresh_seed, 0) != sizeof fresh_seed) return PL_FAIL;
  fresh_seed >>= 1; /* --seed takes what is printed */
  for (int i = 1; i < argc; i++) {
    int64_t seed = 0;
    if (strcmp(argv[i], "--small") == 0) {
      small = true;
    } else if (strcmp(argv[i], "--plant") == 0) {
      planted = true;
    } else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc && pl_parse_int(argv[i + 1], &seed)) {
      fresh_seed = (uint64_t)seed;
      i++;
    } else {
      fprintf(stderr, "gpu_ops: saw \"%s\"; allowed: --seed N, --small, --plant\n", argv[i]);
      return PL_BAD;
    }
  }
  if (planted) return plant();
  printf("{\"seed\":%lld}\n", (long long)fresh_seed);
  const bool fp32 = run_all(PL_PRECISION_FP32, small);
  return run_all(PL_PRECISION_BF16, small) && fp32 ? 0 : PL_FAIL;
}
