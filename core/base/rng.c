#include "core/base/rng.h"

#include <math.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wundef"
#include <Random123/philox.h>
#pragma GCC diagnostic pop

/* Key = the seed. Counter = (stream in 4 bits | block in 28 bits, b, a): a bijection of all that names a number, so no
 * two of them share a block as long as one generator gives fewer than 2^30 words. */
enum { BLOCK_BITS = 28 };

pl_rng pl_rng_at(uint64_t seed, pl_stream stream, uint64_t a, uint32_t b) {
  return (pl_rng){.seed = seed, .stream = stream, .a = a, .b = b, .used = 4};
}

static void next_block(pl_rng *r) {
  uint32_t block = r->next++ & ((UINT32_C(1) << BLOCK_BITS) - 1);
  philox4x32_ctr_t counter = {
      {(uint32_t)r->stream << BLOCK_BITS | block, r->b, (uint32_t)r->a, (uint32_t)(r->a >> 32)}};
  philox4x32_key_t key = {{(uint32_t)r->seed, (uint32_t)(r->seed >> 32)}};
  philox4x32_ctr_t drawn = philox4x32_R(10, counter, key);
  for (int i = 0; i < 4; i++) r->block[i] = drawn.v[i];
  r->used = 0;
}

uint32_t pl_rng_u32(pl_rng *r) {
  if (r->used == 4) next_block(r);
  return r->block[r->used++];
}

uint64_t pl_rng_u64(pl_rng *r) {
  uint64_t low = pl_rng_u32(r);
  return low | (uint64_t)pl_rng_u32(r) << 32;
}

double pl_rng_uniform(pl_rng *r) { return (double)(pl_rng_u64(r) >> 11) * 0x1p-53; }

uint64_t pl_rng_below(pl_rng *r, uint64_t n) {
  uint64_t uneven = (UINT64_MAX % n + 1) % n; /* 2^64 mod n: the topmost values that would favour small results */
  uint64_t drawn;
  do drawn = pl_rng_u64(r);
  while (drawn > UINT64_MAX - uneven);
  return drawn % n;
}

double pl_rng_normal(pl_rng *r) {
  double radius = sqrt(-2.0 * log(1.0 - pl_rng_uniform(r)));
  return radius * cos(2.0 * M_PI * pl_rng_uniform(r));
}

void pl_rng_fill_normal(pl_rng *r, size_t n, double mean, double std, pl_real *out) {
  for (size_t i = 0; i < n; i++) out[i] = (pl_real)(mean + std * pl_rng_normal(r));
}
