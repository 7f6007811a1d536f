/* Every operation of every CPU device and instruction set against plain double-precision code and the vectors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/device/device.h"

#ifdef PL_F64
#define TOLERANCE 1e-12
#else
#define TOLERANCE 1e-5
#endif

/* A device and the arrays of one check. Checks return the largest deviation from the expected numbers. */
typedef struct bed {
  pl_device *d;
  void *arrays[64];
  size_t count;
  double worst;
} bed;

static void *array(bed *b, size_t bytes) {
  pl_err e = {0};
  void *p = NULL;
  assert_true(b->count < 64);
  assert_int_equal(b->d->ops->alloc(b->d, bytes, "a test array", &p, &e), PL_OK);
  return b->arrays[b->count++] = p;
}

static pl_real *put(bed *b, size_t n, const double *x) {
  pl_real *host = calloc(n + 1, sizeof *host), *p = array(b, n * sizeof *p);
  assert_non_null(host);
  for (size_t i = 0; i < n; i++) host[i] = (pl_real)x[i];
  b->d->ops->upload(b->d, p, host, n * sizeof *p);
  free(host);
  return p;
}

static int32_t *put_ids(bed *b, size_t n, const int32_t *ids) {
  int32_t *p = array(b, n * sizeof *p);
  b->d->ops->upload(b->d, p, ids, n * sizeof *p);
  return p;
}

static pl_real *room(bed *b, size_t n) { return array(b, n * sizeof(pl_real)); }

/* Host numbers that are exact in the working precision and differ in every element. */
static double *numbers(size_t n, double seed) {
  double *x = calloc(n + 1, sizeof *x);
  assert_non_null(x);
  for (size_t i = 0; i < n; i++) x[i] = (double)(pl_real)sin(0.7 * (double)(i + 1) + seed);
  return x;
}

static double *zeros(size_t n) {
  double *x = calloc(n + 1, sizeof *x);
  assert_non_null(x);
  return x;
}

static double deviation(double got, double want) {
  const double error = fabs(got - want) / fmax(1, fabs(want));
  return isnan(error) ? INFINITY : error;
}

static void expect(bed *b, size_t n, const pl_real *p, const double *want) {
  pl_real *got = calloc(n + 1, sizeof *got);
  assert_non_null(got);
  b->d->ops->download(b->d, got, p, n * sizeof *got);
  for (size_t i = 0; i < n; i++) b->worst = fmax(b->worst, deviation((double)got[i], want[i]));
  free(got);
}

typedef double check(pl_device *d);

static double finish(bed *b) {
  while (b->count > 0) b->d->ops->free(b->d, b->arrays[--b->count]);
  return b->worst;
}

/* ---- plain references ---- */

static double at(const double *x, size_t stride, bool transpose, size_t row, size_t col) {
  return transpose ? x[col * stride + row] : x[row * stride + col];
}

static double gemm_case(pl_device *d, bool ta, bool tb, size_t m, size_t n, size_t k, double beta) {
  bed b = {.d = d};
  const size_t lda = (ta ? m : k) + 2, ldb = (tb ? k : n) + 1, ldc = n + 3;
  const size_t na = (ta ? k : m) * lda, nb = (tb ? n : k) * ldb, nc = m * ldc;
  double *a = numbers(na, 1), *x = numbers(nb, 2), *c = numbers(nc, 3), *want = zeros(nc);
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; beta == 0 && j < n; j++) c[i * ldc + j] = NAN;
  for (size_t i = 0; i < nc; i++) want[i] = c[i];
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < n; j++) {
      double sum = 0;
      for (size_t l = 0; l < k; l++) sum += at(a, lda, ta, i, l) * at(x, ldb, tb, l, j);
      want[i * ldc + j] = 0.75 * sum + (beta == 0 ? 0 : beta * c[i * ldc + j]);
    }
  pl_real *dc = put(&b, nc, c);
  d->ops->gemm(d, ta, tb, m, n, k, (pl_real)0.75, put(&b, na, a), lda, put(&b, nb, x), ldb, (pl_real)beta, dc, ldc);
  expect(&b, nc, dc, want);
  free(a), free(x), free(c), free(want);
  return finish(&b);
}

static double check_gemm(pl_device *d) {
  static const size_t shapes[][3] = {{1, 1, 1}, {7, 13, 5}, {33, 1, 65}, {1, 64, 3}, {65, 66, 67}, {3, 4, 0}, {0, 3, 2}};
  double worst = 0;
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int form = 0; form < 12; form++)
      worst = fmax(worst, gemm_case(d, form & 1, form & 2, shapes[s][0], shapes[s][1], shapes[s][2], form / 4 * 0.5));
  return worst;
}

static const size_t row_shapes[][2] = {{1, 1}, {1, 7}, {7, 13}, {65, 32}, {3, 16}, {5, 301}, {0, 3}};
enum { ROW_SHAPES = sizeof row_shapes / sizeof *row_shapes };

static double embedding_case(pl_device *d, size_t rows, size_t width) {
  bed b = {.d = d};
  enum { TABLE = 5 };
  double *table = numbers(TABLE * width, 1), *dout = numbers(rows * width, 2), *out = zeros(rows * width);
  double *dtable = numbers(TABLE * width, 3), *x = numbers(rows * width, 4), *dadd = numbers(TABLE * width, 5);
  int32_t ids[128] = {0};
  for (size_t r = 0; r < rows; r++) ids[r] = (int32_t)(r * r % TABLE);
  int32_t *dids = put_ids(&b, rows, ids);
  pl_real *ptable = put(&b, TABLE * width, table), *pout = room(&b, rows * width), *pdout = put(&b, rows * width, dout);
  pl_real *pdtable = put(&b, TABLE * width, dtable), *px = put(&b, rows * width, x);
  pl_real *pdadd = put(&b, TABLE * width, dadd);
  for (size_t r = 0; r < rows; r++)
    for (size_t j = 0; j < width; j++) {
      out[r * width + j] = table[(size_t)ids[r] * width + j];
      dtable[(size_t)ids[r] * width + j] += dout[r * width + j];
      x[r * width + j] += table[r % 3 * width + j];
      dadd[r % 3 * width + j] += dout[r * width + j];
    }
  d->ops->embedding_forward(d, rows, width, dids, ptable, pout);
  d->ops->embedding_backward(d, rows, width, dids, pdout, pdtable);
  d->ops->add_rows_forward(d, rows, width, 3, ptable, px);
  d->ops->add_rows_backward(d, rows, width, 3, pdout, pdadd);
  expect(&b, rows * width, pout, out);
  expect(&b, TABLE * width, pdtable, dtable);
  expect(&b, rows * width, px, x);
  expect(&b, TABLE * width, pdadd, dadd);
  free(table), free(dout), free(out), free(dtable), free(x), free(dadd);
  return finish(&b);
}

static double check_embedding(pl_device *d) {
  double worst = 0;
  for (size_t s = 0; s < ROW_SHAPES; s++) worst = fmax(worst, embedding_case(d, row_shapes[s][0], row_shapes[s][1]));
  return worst;
}

typedef struct norm {
  size_t rows, width;
  bool centre;
  double eps;
  double *x, *weight, *bias, *dout, *out, *mean, *rstd, *dx, *dweight, *dbias;
} norm;

static norm norm_data(size_t rows, size_t width, bool centre) {
  const size_t n = rows * width;
  return (norm){rows,      width,           centre,          1e-5,       numbers(n, 1), numbers(width, 2), numbers(width, 3),
                numbers(n, 4), zeros(n), zeros(rows), zeros(rows), numbers(n, 5), numbers(width, 6), numbers(width, 7)};
}

static void norm_free(norm *k) {
  free(k->x), free(k->weight), free(k->bias), free(k->dout), free(k->out), free(k->mean), free(k->rstd), free(k->dx);
  free(k->dweight), free(k->dbias);
}

/* RMSNorm is LayerNorm with mean 0, level 0 and no bias. */
static void norm_reference(norm *k) {
  const double width = (double)k->width;
  for (size_t r = 0; r < k->rows; r++) {
    const double *x = k->x + r * k->width, *dout = k->dout + r * k->width;
    double mean = 0, variance = 0, level = 0, along = 0;
    for (size_t j = 0; k->centre && j < k->width; j++) mean += x[j] / width;
    for (size_t j = 0; j < k->width; j++) variance += (x[j] - mean) * (x[j] - mean) / width;
    const double rstd = 1 / sqrt(variance + k->eps);
    for (size_t j = 0; j < k->width; j++) {
      const double h = (x[j] - mean) * rstd, g = dout[j] * k->weight[j];
      k->out[r * k->width + j] = h * k->weight[j] + (k->centre ? k->bias[j] : 0);
      if (k->centre) level += g / width;
      along += g * h / width;
      k->dweight[j] += dout[j] * h;
      k->dbias[j] += dout[j];
    }
    for (size_t j = 0; j < k->width; j++)
      k->dx[r * k->width + j] += rstd * (dout[j] * k->weight[j] - level - (x[j] - mean) * rstd * along);
    k->mean[r] = mean, k->rstd[r] = rstd;
  }
}

static double norm_run(pl_device *d, norm *k, bool reference) {
  bed b = {.d = d};
  const size_t n = k->rows * k->width;
  pl_real *x = put(&b, n, k->x), *weight = put(&b, k->width, k->weight), *bias = put(&b, k->width, k->bias);
  pl_real *dout = put(&b, n, k->dout), *out = room(&b, n), *mean = room(&b, k->rows), *rstd = room(&b, k->rows);
  pl_real *dx = put(&b, n, k->dx), *dweight = put(&b, k->width, k->dweight), *dbias = put(&b, k->width, k->dbias);
  if (reference) norm_reference(k);
  if (k->centre) {
    d->ops->layernorm_forward(d, k->rows, k->width, x, weight, bias, k->eps, out, mean, rstd);
    d->ops->layernorm_backward(d, k->rows, k->width, x, weight, mean, rstd, dout, dx, dweight, dbias);
    expect(&b, k->rows, mean, k->mean);
    expect(&b, k->width, dbias, k->dbias);
  } else {
    d->ops->rmsnorm_forward(d, k->rows, k->width, x, weight, k->eps, out, rstd);
    d->ops->rmsnorm_backward(d, k->rows, k->width, x, weight, rstd, dout, dx, dweight);
  }
  expect(&b, n, out, k->out);
  expect(&b, n, dx, k->dx);
  expect(&b, k->width, dweight, k->dweight);
  return finish(&b);
}

static double check_norms(pl_device *d) {
  double worst = 0;
  for (size_t s = 0; s < ROW_SHAPES; s++)
    for (int centre = 0; centre < 2; centre++) {
      if (centre && row_shapes[s][1] == 1) continue; /* x - mean is 0: nothing but rounding to compare */
      norm k = norm_data(row_shapes[s][0], row_shapes[s][1], centre);
      worst = fmax(worst, norm_run(d, &k, true));
      norm_free(&k);
    }
  return worst;
}
