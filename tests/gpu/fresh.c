#include "tests/gpu/fresh.h"

#include "core/base/rng.h"

uint64_t fresh_seed;

double *numbers(size_t n, double stream) {
  uint64_t words = 0;
  double *x = calloc(n + 1, sizeof *x);
  assert_non_null(x);
  memcpy(&words, &stream, sizeof words);
  pl_rng r = pl_rng_at(fresh_seed, PL_STREAM_NOISE, words ^ n, 0);
  for (size_t i = 0; i < n; i++) x[i] = (double)(pl_real)(2 * pl_rng_uniform(&r) - 1);
  return x;
}
