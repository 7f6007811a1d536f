#include "models/parts/spectrum.h"

#include <math.h>

#include "core/base/memory.h"
#include "core/base/rng.h"

double pl_spectrum_value(const pl_spectrum *s, size_t i, size_t n) {
  double part = n > 1 ? (double)i / (double)(n - 1) : 1;
  switch ((pl_spectrum_kind)s->kind) {
  case PL_SPECTRUM_GEOMETRIC:
    return part < 1 ? s->h_min * pow(s->h_max / s->h_min, part) : s->h_max;
  case PL_SPECTRUM_LINEAR:
    return part < 1 ? s->h_min + part * (s->h_max - s->h_min) : s->h_max;
  case PL_SPECTRUM_CONSTANT:
    break;
  }
  return s->h_max;
}

static double dot(size_t n, const double *a, const double *b) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

/* Makes row r of q orthogonal to the rows before it, and of length 1. The second pass removes what rounding left. */
static void orthogonalise(size_t n, size_t r, double *q) {
  double *row = q + r * n;
  for (int pass = 0; pass < 2; pass++) {
    for (size_t k = 0; k < r; k++) {
      double overlap = dot(n, row, q + k * n);
      for (size_t i = 0; i < n; i++) row[i] -= overlap * q[k * n + i];
    }
  }
  double length = sqrt(dot(n, row, row));
  for (size_t i = 0; i < n; i++) row[i] /= length;
}

/* out = sum over rows r of q of h_r q_r q_r^T, in double. */
static void compose(const pl_spectrum *s, size_t n, const double *q, double *sum, pl_real *out) {
  for (size_t r = 0; r < n; r++) {
    double h = pl_spectrum_value(s, r, n);
    for (size_t i = 0; i < n; i++) {
      for (size_t j = 0; j <= i; j++) sum[i * n + j] += h * q[r * n + i] * q[r * n + j];
    }
  }
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j < n; j++) out[i * n + j] = (pl_real)(j <= i ? sum[i * n + j] : sum[j * n + i]);
  }
}

static pl_status rotated(const pl_spectrum *s, uint64_t seed, size_t n, pl_real *out, pl_err *e) {
  pl_status st = PL_OK;
  double *q = NULL, *sum = NULL;
  PL_TRY(pl_alloc(n * n, sizeof *q, "the eigenvectors", &q, e));
  PL_TRY(pl_alloc(n * n, sizeof *sum, "the matrix", &sum, e));
  pl_rng rng = pl_rng_at(seed, PL_STREAM_PROBLEM, 0, PL_DRAW_ROTATION);
  for (size_t i = 0; i < n * n; i++) q[i] = pl_rng_normal(&rng);
  for (size_t r = 0; r < n; r++) orthogonalise(n, r, q);
  compose(s, n, q, sum, out);
out:
  pl_free(q);
  pl_free(sum);
  return st;
}

pl_status pl_spectrum_matrix(const pl_spectrum *s, uint64_t seed, size_t n, pl_real *out, pl_err *e) {
  if (s->rotated) return rotated(s, seed, n, out, e);
  for (size_t i = 0; i < n * n; i++) out[i] = 0;
  for (size_t i = 0; i < n; i++) out[i * n + i] = (pl_real)pl_spectrum_value(s, i, n);
  return PL_OK;
}
