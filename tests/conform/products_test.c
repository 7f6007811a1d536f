/* Matrix products of the device: symmetric ones, and those in bf16 against the products of rounded numbers. */
#include "tests/conform/device_bed.h"

/* To the nearest bfloat16, ties to even; subnormal numbers become 0. */
static double rounded(double x) {
  float y = (float)x;
  uint32_t bits;
  if (fabsf(y) < 0x1p-126f) return 0;
  memcpy(&bits, &y, sizeof bits);
  bits += 0x7fff + (bits >> 16 & 1);
  bits &= 0xffff0000u;
  memcpy(&y, &bits, sizeof y);
  return (double)y;
}

static double same(double x) { return x; }

typedef struct product {
  size_t m, n, k;
  bool transpose_a, transpose_b;
  double alpha, beta;
} product;

/* The largest deviation, in units of the sum of the terms' sizes, from op(round(a)) op(round(b)). Rows are longer than
 * the matrices; what lies beyond must not be written, and is Infinity in what is read. */
static double check_product(pl_device *d, const product *p, double (*round)(double)) {
  bed b = {.d = d};
  const bool ta = p->transpose_a, tb = p->transpose_b;
  const size_t a_rows = ta ? p->k : p->m, a_cols = ta ? p->m : p->k, b_rows = tb ? p->n : p->k,
               b_cols = tb ? p->k : p->n;
  const size_t lda = a_cols + 2, ldb = b_cols + 1, ldc = p->n + 3;
  double *x = numbers(a_rows * lda, 1), *y = numbers(b_rows * ldb, 2), *z = numbers(p->m * ldc, 3), worst = 0;
  pl_real *got = calloc(p->m * ldc + 1, sizeof *got);
  assert_non_null(got);
  for (size_t i = 0; i < a_rows; i++) x[i * lda + a_cols] = x[i * lda + a_cols + 1] = HUGE_VAL;
  for (size_t i = 0; i < b_rows; i++) y[i * ldb + b_cols] = HUGE_VAL;
  for (size_t i = 0; p->beta == 0 && i < p->m * ldc; i++) z[i] = (double)NAN;
  pl_real *c = put(&b, p->m * ldc, z);
  d->ops->gemm_low(d, ta, tb, p->m, p->n, p->k, (pl_real)p->alpha, put(&b, a_rows * lda, x), lda,
                   put(&b, b_rows * ldb, y), ldb, (pl_real)p->beta, c, ldc);
  d->ops->download(d, got, c, p->m * ldc * sizeof *got);
  for (size_t i = 0; i < p->m; i++)
    for (size_t j = 0; j < ldc; j++) {
      const double before = z[i * ldc + j], after = (double)got[i * ldc + j];
      double sum = 0, size = 1;
      if (j >= p->n) {
        assert_true(after == before || (isnan(after) && isnan(before)));
        continue;
      }
      for (size_t l = 0; l < p->k; l++) {
        const double term = round(ta ? x[l * lda + i] : x[i * lda + l]) * round(tb ? y[j * ldb + l] : y[l * ldb + j]);
        sum += term;
        size += fabs(term);
      }
      const double want = p->alpha * sum + (p->beta != 0 ? p->beta * before : 0);
      worst = fmax(worst, isfinite(after) ? fabs(after - want) / size : HUGE_VAL);
    }
  free(x), free(y), free(z), free(got);
  finish(&b);
  return worst;
}

/* The edges of tiles, panels and blocks of all kernels, and odd depths. */
static const size_t shapes[][3] = {{1, 1, 1},     {1, 64, 3},   {7, 13, 5},    {14, 32, 384},
                                   {15, 33, 385}, {16, 16, 32}, {31, 17, 31},  {32, 32, 64},
                                   {33, 65, 66},  {64, 96, 33}, {211, 40, 70}, {40, 1030, 520}};

static double check_products(pl_device *d, double (*round)(double)) {
  static const double scales[][2] = {{1, 0}, {1, 1}, {0.75, 0}, {0.75, 0.5}};
  double worst = 0;
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (unsigned form = 0; form < 16; form++) {
      const product p = {.m = shapes[s][0],
                         .n = shapes[s][1],
                         .k = shapes[s][2],
                         .transpose_a = form & 1,
                         .transpose_b = form & 2,
                         .alpha = scales[form / 4][0],
                         .beta = scales[form / 4][1]};
      worst = fmax(worst, check_product(d, &p, round));
    }
  return worst;
}

/* Opens the device in bf16 with the kernels of one instruction set, NULL for the machine's best; NULL when there are
 * none. */
static pl_device *open_bf16(const char *name, const char *isa) {
  pl_device *d = NULL;
  pl_err e = {0};
  if (isa)
    setenv("PIPELAG_ISA", isa, 1);
  else
    unsetenv("PIPELAG_ISA");
  if (pl_device_open(name, PL_PRECISION_BF16, 1, &d, &e) != PL_OK) assert_non_null(strstr(e.text, "bf16"));
  unsetenv("PIPELAG_ISA");
  return d;
}

static const char *const isas[] = {NULL, "avx512"};

static void bf16_products_are_those_of_rounded_numbers(void **state) {
  (void)state;
  for (size_t i = 0; i < 2; i++) {
    pl_device *d = open_bf16("cpu", isas[i]);
    if (!d) continue;
    const double worst = check_products(d, rounded);
    if (worst > TOLERANCE) fail_msg("%s: off by %.2e", d->kernel, worst);
    assert_true(check_products(d, same) > 100 * TOLERANCE); /* it does round */
    pl_device_close(d);
  }
}

static void fp32_products_do_not_round(void **state) {
  (void)state;
  pl_device *d = open_device("cpu", "base");
  assert_non_null(d);
  assert_true(check_products(d, same) < TOLERANCE);
  assert_true(check_products(d, rounded) > 100 * TOLERANCE);
  pl_device_close(d);
}

/* A device of several threads has products of its own. */
static void packed_products_do_not_round(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof isa_names / sizeof *isa_names; i++) {
    pl_device *d = open_threads("cpu", isa_names[i], 2);
    if (!d) continue;
    const double worst = check_products(d, same);
    if (worst > TOLERANCE) fail_msg("%s: off by %.2e", d->kernel, worst);
    pl_device_close(d);
  }
}

/* Halfway cases, subnormal numbers, NaN and infinities, each times 1. */
static void bf16_rounds_to_nearest_even(void **state) {
  (void)state;
  const double special[] = {
      1 + 0x1p-8, 1 + 3 * 0x1p-8, 1 + 0x1p-8 + 0x1p-20, -1 - 0x1p-8, 0x1.fep127, 0x1p-130, -0x1p-127, 0x1p-126, 0.0};
  enum { N = sizeof special / sizeof *special };
  for (size_t i = 0; i < 2; i++) {
    pl_device *d = open_bf16("cpu", isas[i]);
    if (!d) continue;
    bed b = {.d = d};
    const double one = 1, wild[2] = {(double)NAN, HUGE_VAL};
    pl_real got[N + 2], *c = room(&b, N + 2);
    d->ops->gemm_low(d, false, false, N, 1, 1, 1, put(&b, N, special), 1, put(&b, 1, &one), 1, 0, c, 1);
    d->ops->gemm_low(d, false, false, 2, 1, 1, 1, put(&b, 2, wild), 1, put(&b, 1, &one), 1, 0, c + N, 1);
    d->ops->download(d, got, c, sizeof got);
    for (size_t j = 0; j < N; j++)
      if ((double)got[j] != rounded(special[j])) fail_msg("%s: %a became %a", d->kernel, special[j], (double)got[j]);
    assert_true(isnan(got[N]) && isinf(got[N + 1]));
    finish(&b);
    pl_device_close(d);
  }
}

static void both_devices_have_the_same_bits(void **state) {
  (void)state;
  pl_device *cpu = open_bf16("cpu", NULL), *paranoid = open_bf16("paranoid", NULL);
  assert_true(!cpu == !paranoid);
  if (cpu) assert_true(check_products(cpu, rounded) == check_products(paranoid, rounded));
  pl_device_close(cpu);
  pl_device_close(paranoid);
}

static void bf16_is_refused_where_there_is_none(void **state) {
  (void)state;
  pl_device *d = NULL;
  pl_err e = {0};
  setenv("PIPELAG_ISA", "base", 1);
  assert_int_equal(pl_device_open("cpu", PL_PRECISION_BF16, 1, &d, &e), PL_BAD);
  unsetenv("PIPELAG_ISA");
  assert_null(d);
  assert_non_null(strstr(e.text, "precision is \"bf16\""));
  assert_non_null(strstr(e.text, "allowed here: \"fp32\""));
}

static double at_of(const double *x, size_t stride, bool transpose, size_t row, size_t col) {
  return transpose ? x[col * stride + row] : x[row * stride + col];
}

static double syrk_case(pl_device *d, bool transpose, size_t n, size_t k, double beta) {
  bed b = {.d = d};
  const size_t rows = transpose ? k : n, cols = transpose ? n : k, lda = cols + 2, ldc = n + 1;
  double *a = numbers(rows * lda, 1), *c = numbers(n * ldc, 2), *want = zeros(n * ldc);
  pl_real *got = calloc(n * ldc + 1, sizeof *got);
  assert_non_null(got);
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < i; j++) c[i * ldc + j] = c[j * ldc + i];
  for (size_t i = 0; i < n * ldc; i++) want[i] = c[i];
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++) {
      double sum = 0;
      for (size_t l = 0; l < k; l++) sum += at_of(a, lda, transpose, i, l) * at_of(a, lda, transpose, j, l);
      want[i * ldc + j] = 0.75 * sum + (beta != 0 ? beta * c[i * ldc + j] : 0);
    }
  pl_real *dc = put(&b, n * ldc, c);
  d->ops->syrk(d, transpose, n, k, (pl_real)0.75, put(&b, rows * lda, a), lda, (pl_real)beta, dc, ldc);
  expect(&b, n * ldc, dc, want);
  d->ops->download(d, got, dc, n * ldc * sizeof *got);
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < i; j++) assert_true(got[i * ldc + j] == got[j * ldc + i]);
  free(a), free(c), free(want), free(got);
  return finish(&b);
}

static void check_syrk(pl_device *d) {
  static const size_t sizes[][2] = {{1, 1}, {7, 5}, {32, 33}, {33, 64}, {65, 3}, {100, 70}, {3, 0}};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (int form = 0; form < 4; form++)
      assert_true(syrk_case(d, form & 1, sizes[s][0], sizes[s][1], form / 2 * 0.5) < TOLERANCE);
}

static void symmetric_products_are_symmetric(void **state) {
  (void)state;
  on_each_device(check_syrk);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bf16_products_are_those_of_rounded_numbers),
      cmocka_unit_test(fp32_products_do_not_round),
      cmocka_unit_test(packed_products_do_not_round),
      cmocka_unit_test(bf16_rounds_to_nearest_even),
      cmocka_unit_test(both_devices_have_the_same_bits),
      cmocka_unit_test(bf16_is_refused_where_there_is_none),
      cmocka_unit_test(symmetric_products_are_symmetric),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
