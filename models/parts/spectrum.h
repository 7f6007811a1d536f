/* Symmetric matrices with a chosen spectrum, for the quadratic model. Host memory. */
#ifndef PL_MODELS_PARTS_SPECTRUM_H
#define PL_MODELS_PARTS_SPECTRUM_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/real.h"
#include "core/base/status.h"

typedef enum pl_spectrum_kind { PL_SPECTRUM_GEOMETRIC, PL_SPECTRUM_LINEAR, PL_SPECTRUM_CONSTANT } pl_spectrum_kind;

/* What PL_STREAM_PROBLEM draws: the low counter word. */
enum { PL_DRAW_ROTATION = 0, PL_DRAW_OPTIMUM = 1 };

typedef struct pl_spectrum {
  int kind; /* pl_spectrum_kind */
  bool rotated;
  double h_min, h_max;
} pl_spectrum;

/* Eigenvalue i of n, ascending from h_min to h_max; n = 1 and the constant spectrum have h_max. */
double pl_spectrum_value(const pl_spectrum *s, size_t i, size_t n);

/* out[n, n] = diag(h), or Q diag(h) Q^T exactly symmetric, Q by Gram-Schmidt from normal numbers. */
PL_MUST_CHECK pl_status pl_spectrum_matrix(const pl_spectrum *s, uint64_t seed, size_t n, pl_real *out, pl_err *e);

#endif
