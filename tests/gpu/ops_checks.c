#include "tests/gpu/fresh.h"

#define main device_test_main
#include "tests/conform/device_test.c"
#undef main

#define CHECK(name)                                                                                                    \
  { #name, false, false, check_##name }
const fresh_check fresh_small[] = {
    CHECK(gemm),
    {"gemm_low", true, false, fresh_products},
    {"syrk", false, false, fresh_symmetric},
    CHECK(embedding),
    CHECK(norms),
    CHECK(rope),
    {"attention", true, true, check_attention},
    CHECK(activations),
    CHECK(cross_entropy),
    CHECK(vectors),
    CHECK(adamw),
    CHECK(momentum),
};
#undef CHECK
const size_t fresh_small_count = sizeof fresh_small / sizeof *fresh_small;

static double large_gemm(pl_device *d) {
  double worst = 0;
  for (int form = 0; form < 4; form++) worst = fmax(worst, gemm_case(d, form & 1, form & 2, 130, 3072, 768, 0.5));
  return worst;
}

static double large_embedding(pl_device *d) { return embedding_case(d, 128, 4100); }

static double large_norms(pl_device *d) {
  static const size_t shapes[][2] = {{2050, 768}, {66, 8193}};
  double worst = 0;
  for (size_t form = 0; form < 4; form++) {
    norm k = norm_data(shapes[form / 2][0], shapes[form / 2][1], form % 2);
    worst = fmax(worst, norm_run(d, &k, true));
    norm_free(&k);
  }
  return worst;
}

static double large_attention(pl_device *d) {
  return fmax(attention_case(d, (pl_attention){2, 300, 6, 3, 64}),
              attention_case(d, (pl_attention){1, 700, 4, 4, 128}));
}

static double large_cross_entropy(pl_device *d) {
  return fmax(cross_entropy_case(d, 128, 50257, false), cross_entropy_case(d, 128, 50257, true));
}

/* Sums in double must be right to 12 digits, whatever the working precision. */
static void exact(double got, double want, double *worst) {
  if (deviation(got, want) > 1e-12) *worst = HUGE_VAL;
}

static double large_sums(pl_device *d) {
  enum { N = (1 << 22) + 13, PARTS = 4 };
  static const size_t offset[PARTS] = {0, 7, 64, N - 5}, size[PARTS] = {7, 0, N - 100, 5};
  bed b = {.d = d};
  double *x = numbers(N, 1), *y = numbers(N, 2), squares = 0, product = 0, parts[PARTS], worst = 0;
  pl_real *px = put(&b, N, x), *py = put(&b, N, y);
  for (size_t i = 0; i < N; i++) squares += x[i] * x[i], product += x[i] * y[i];
  exact(d->ops->sum_squares(d, N, px), squares, &worst);
  exact(d->ops->dot(d, N, px, py), product, &worst);
  if (d->ops->sum_squares_parts) d->ops->sum_squares_parts(d, PARTS, offset, size, px, parts);
  for (size_t p = 0; d->ops->sum_squares_parts && p < PARTS; p++) {
    double want = 0;
    for (size_t i = 0; i < size[p]; i++) want += x[offset[p] + i] * x[offset[p] + i];
    exact(parts[p], want, &worst);
  }
  d->ops->axpby(d, N, 0.3, px, -1.7, py);
  for (size_t i = 0; i < N; i++) y[i] = 0.3 * x[i] - 1.7 * y[i];
  expect(&b, N, py, y);
  free(x), free(y);
  return fmax(worst, finish(&b));
}

const fresh_check fresh_large[] = {
    {"large gemm", false, false, large_gemm},
    {"large embedding", false, false, large_embedding},
    {"large norms", false, false, large_norms},
    {"large attention", true, true, large_attention},
    {"large cross_entropy", false, false, large_cross_entropy},
    {"large sums", false, false, large_sums},
};
const size_t fresh_large_count = sizeof fresh_large / sizeof *fresh_large;
