/* Elementary functions that gcc vectorises inside loops: no branches, no tables. NaN gives NaN. */
#ifndef PL_DEVICE_CPU_KERNELS_MATH_H
#define PL_DEVICE_CPU_KERNELS_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/base/real.h"

#ifdef PL_F64
static inline double pl_exp(double x) { return exp(x); }
static inline double pl_sqrt(double x) { return sqrt(x); }
#else
/* a b + c, rounded once where the instruction set can: half the work. */
#ifdef __FMA__
static inline float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
#else
static inline float multiply_add(float a, float b, float c) { return a * b + c; }
#endif

/* Within 1 ulp on [-87.3, 88.3]; below it 0, above it Infinity. Cephes' expf: x = n ln 2 + r, e^r by a polynomial. */
static inline float pl_exp(float x) {
  const float round = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer, kept in the low bits */
  const float above = x < -88.0f ? -88.0f : x;
  const float y = x > 88.5f ? 88.5f : above; /* of x, not of above: two selects, where gcc would make branches */
  const float shifted = multiply_add(y, 1.44269504088896341f, round);
  const float n = shifted - round;
  const float r = multiply_add(n, 2.12194440e-4f, multiply_add(n, -0.693359375f, y)); /* n * 0.693359375 is exact */
  float p = 1.9875691500e-4f;
  p = multiply_add(p, r, 1.3981999507e-3f);
  p = multiply_add(p, r, 8.3334519073e-3f);
  p = multiply_add(p, r, 4.1665795894e-2f);
  p = multiply_add(p, r, 1.6666665459e-1f);
  p = multiply_add(p, r, 5.0000001201e-1f);
  p = multiply_add(p, r * r, r) + 1.0f;
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 127u) << 23; /* 2^n: n = 128 is Infinity, -127 is 0; only a product keeps a NaN in p */
  float power;
  memcpy(&power, &bits, sizeof power);
  return p * power;
}
static inline float pl_sqrt(float x) { return sqrtf(x); }
#endif

static inline pl_real pl_sigmoid(pl_real x) { return 1 / (1 + pl_exp(-x)); }

#endif
