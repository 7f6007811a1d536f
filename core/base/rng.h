/* Counter-based random numbers (Philox4x32-10, Random123): a number depends on (seed, stream, counter) only, never on
 * what was drawn before. */
#ifndef PL_BASE_RNG_H
#define PL_BASE_RNG_H

#include <stdint.h>

#include "core/base/real.h"
#include "core/base/status.h"

/* Streams keep uses of one seed apart. */
typedef enum pl_stream {
  PL_STREAM_INIT = 1,      /* weights, counter high word = hash of the segment's name */
  PL_STREAM_DATA = 2,      /* data order, counter = (step, index in the batch) */
  PL_STREAM_NOISE = 3,     /* gradient noise of the quadratic model */
  PL_STREAM_SWEEP = 4,     /* random axes, counter = (hash of the axis, draw) */
  PL_STREAM_SYNTHETIC = 5, /* the synthetic language's own tables and text */
  PL_STREAM_PROBLEM = 6    /* the quadratic model's own eigenvectors and optimum */
} pl_stream;

typedef struct pl_rng {
  uint64_t seed;
  pl_stream stream;
  uint64_t a; /* the two counter words that name what is drawn for: (step, index), (segment hash, 0), ... */
  uint32_t b;
  uint32_t next;     /* how many blocks of four were drawn */
  uint32_t block[4]; /* the current block */
  uint32_t used;     /* how much of it */
} pl_rng;

pl_rng pl_rng_at(uint64_t seed, pl_stream stream, uint64_t a, uint32_t b);
uint32_t pl_rng_u32(pl_rng *r);
uint64_t pl_rng_u64(pl_rng *r);
double pl_rng_uniform(pl_rng *r);             /* [0, 1), 53 bits */
uint64_t pl_rng_below(pl_rng *r, uint64_t n); /* [0, n), unbiased; n >= 1 */
double pl_rng_normal(pl_rng *r);              /* N(0, 1), Box-Muller in double */
void pl_rng_fill_normal(pl_rng *r, size_t n, double mean, double std, pl_real *out);

#endif
