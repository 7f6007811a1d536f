/* What the device promises beyond accuracy: the same bits again, elements that do not see their position, NaN that
 * passes through, kernels that are chosen as told, and a paranoid device that catches wrong arguments. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/conform/device_bed.h"

/* An elementwise operation on n elements: `in` has INPUTS arrays, `out` OUTPUTS of them that are read and written. */
enum { INPUTS = 3, OUTPUTS = 3 };
typedef void elementwise(pl_device *d, size_t n, pl_real *const in[INPUTS], pl_real *const out[OUTPUTS]);

static void swiglu_forward(pl_device *d, size_t n, pl_real *const in[INPUTS], pl_real *const out[OUTPUTS]) {
  d->ops->swiglu_forward(d, n, in[0], in[1], out[0]);
}
static void swiglu_backward(pl_device *d, size_t n, pl_real *const in[INPUTS], pl_real *const out[OUTPUTS]) {
  d->ops->swiglu_backward(d, n, in[0], in[1], in[2], out[0], out[1]);
}
static void gelu_forward(pl_device *d, size_t n, pl_real *const in[INPUTS], pl_real *const out[OUTPUTS]) {
  d->ops->gelu_forward(d, n, in[0], out[0]);
}
static void gelu_backward(pl_device *d, size_t n, pl_real *const in[INPUTS], pl_real *const out[OUTPUTS]) {
  d->ops->gelu_backward(d, n, in[0], in[1], out[0]);
}
static void axpby(pl_device *d, size_t n, pl_real *const in[INPUTS], pl_real *const out[OUTPUTS]) {
  d->ops->axpby(d, n, 0.3, in[0], 0.7, out[0]);
}
static void shrink_subtract(pl_device *d, size_t n, pl_real *const in[INPUTS], pl_real *const out[OUTPUTS]) {
  d->ops->shrink_subtract(d, n, 0.99, in[0], in[1], out[0]);
}
static void adamw(pl_device *d, size_t n, pl_real *const in[INPUTS], pl_real *const out[OUTPUTS]) {
  d->ops->axpby(d, n, 1, in[2], 0, out[1]);
  d->ops->adamw(d, n, in[0], 0.9, 0.95, 0.3, 0.2, 1e-8, 0.1, out[0], out[1], out[2]);
}
static void momentum(pl_device *d, size_t n, pl_real *const in[INPUTS], pl_real *const out[OUTPUTS]) {
  d->ops->momentum(d, n, in[0], 0.9, 0.7, true, 0.6, 0.1, out[0], out[1]);
}
static void add_rows(pl_device *d, size_t n, pl_real *const in[INPUTS], pl_real *const out[OUTPUTS]) {
  d->ops->add_rows_forward(d, 1, n, 1, in[0], out[0]);
  d->ops->add_rows_backward(d, 1, n, 1, in[1], out[1]);
}
static void scale(pl_device *d, size_t n, pl_real *const in[INPUTS], pl_real *const out[OUTPUTS]) {
  d->ops->axpby(d, n, -2.5, in[0], 0, out[0]);
}

static elementwise *const elementwise_ops[] = {swiglu_forward,  swiglu_backward, gelu_forward, gelu_backward, axpby,
                                               shrink_subtract, adamw,           momentum,     add_rows,      scale};
enum { ELEMENTWISE = sizeof elementwise_ops / sizeof *elementwise_ops, WIDE = 100 };

typedef struct arrays {
  pl_real *in[INPUTS], *out[OUTPUTS];
} arrays;

/* Element i has the same numbers wherever the arrays start; the third input is not negative. */
static arrays arrays_from(bed *b, size_t first) {
  arrays a;
  double *x = numbers(INPUTS * WIDE, 1), *y = numbers(OUTPUTS * WIDE, 2);
  for (size_t i = 0; i < WIDE; i++) x[i] *= 20, x[2 * WIDE + i] = fabs(x[2 * WIDE + i]);
  for (size_t k = 0; k < INPUTS; k++) a.in[k] = put(b, WIDE, x + k * WIDE) + first;
  for (size_t k = 0; k < OUTPUTS; k++) a.out[k] = put(b, WIDE, y + k * WIDE) + first;
  free(x), free(y);
  return a;
}

static void expect_bits(pl_device *d, size_t n, const pl_real *a, const pl_real *b, bool equal) {
  pl_real one[WIDE * 8], two[WIDE * 8];
  assert_true(n <= WIDE * 8);
  d->ops->download(d, one, a, n * sizeof *one);
  d->ops->download(d, two, b, n * sizeof *two);
  assert_int_equal(memcmp(one, two, n * sizeof *one) == 0, equal);
}

static void positions(pl_device *d) {
  for (size_t op = 0; op < ELEMENTWISE; op++)
    for (size_t first = 0; first < 19; first++)
      for (size_t n = 1; n + first <= WIDE; n += 1 + n / 4) {
        bed b = {.d = d};
        const arrays whole = arrays_from(&b, 0), part = arrays_from(&b, first);
        elementwise_ops[op](d, WIDE, whole.in, whole.out);
        elementwise_ops[op](d, n, part.in, part.out);
        for (size_t k = 0; k < OUTPUTS; k++) expect_bits(d, n, whole.out[k] + first, part.out[k], true);
        if (n == 1 && first == 0) expect_bits(d, WIDE, whole.out[0], part.out[0], false); /* the check can fail */
        finish(&b);
      }
}

/* Attention, norms, loss and reductions once; the results are appended to `out`, whose length is returned. */
enum { ROWS = 21, HEADS = 2, DIM = 6, DIMS = HEADS * DIM };

static size_t whole_pass(bed *b, pl_real **out) {
  pl_device *d = b->d;
  const size_t n = ROWS * DIMS;
  const pl_attention s = {1, ROWS, HEADS, HEADS, DIM};
  double *x = numbers(6 * n, 3);
  pl_real *q = put(b, n, x), *k = put(b, n, x + n), *v = put(b, n, x + 2 * n), *dy = put(b, n, x + 3 * n);
  pl_real *w = put(b, DIMS, x), *bias = put(b, DIMS, x + 9), *rstd = room(b, ROWS), *mean = room(b, ROWS);
  pl_real *saved = room(b, d->ops->attention_saved_size(&s)), *scratch = room(b, d->ops->attention_scratch_size(d, &s));
  pl_real *normed = room(b, n), *dx = put(b, n, x), *dw = put(b, DIMS, x), *dbias = put(b, DIMS, x);
  size_t count = 0;
  out[count++] = room(b, n);
  for (int i = 0; i < 3; i++) out[count++] = room(b, n);
  d->ops->attention_forward(d, &s, q, k, v, out[0], saved, scratch);
  d->ops->attention_backward(d, &s, q, k, v, out[0], saved, dy, out[1], out[2], out[3], scratch);
  d->ops->rmsnorm_forward(d, ROWS, DIMS, q, w, 1e-5, normed, rstd);
  d->ops->rmsnorm_backward(d, ROWS, DIMS, q, w, rstd, dy, dx, dw);
  d->ops->layernorm_forward(d, ROWS, DIMS, q, w, bias, 1e-5, out[count++] = room(b, n), mean, rstd);
  d->ops->layernorm_backward(d, ROWS, DIMS, q, w, mean, rstd, dy, dx, dw, dbias);
  out[count++] = dx;
  free(x);
  return count;
}

static void again(pl_device *d) {
  bed b = {.d = d};
  pl_real *one[8], *two[8];
  const size_t count = whole_pass(&b, one);
  assert_int_equal(whole_pass(&b, two), count);
  for (size_t i = 0; i < count; i++) expect_bits(d, ROWS * DIMS, one[i], two[i], true);
  finish(&b);
}

/* Host copies of one pass, to compare instruction sets. */
static bool results_of(const char *isa, pl_real *out) {
  pl_device *d = open_device("cpu", isa);
  if (!d) return false;
  bed b = {.d = d};
  pl_real *p[8];
  const size_t count = whole_pass(&b, p);
  for (size_t i = 0; i < count; i++) d->ops->download(d, out + i * ROWS * DIMS, p[i], ROWS * DIMS * sizeof *out);
  const arrays a = arrays_from(&b, 0);
  for (size_t op = 0; op < ELEMENTWISE; op++) elementwise_ops[op](d, WIDE, a.in, a.out);
  for (size_t k = 0; k < OUTPUTS; k++) d->ops->download(d, out + (8 + k) * ROWS * DIMS, a.out[k], WIDE * sizeof *out);
  finish(&b);
  pl_device_close(d);
  return true;
}

static void test_avx2_equals_avx512(void **state) {
  (void)state;
  static pl_real one[12 * ROWS * DIMS], two[12 * ROWS * DIMS];
  if (!results_of("avx2", one) || !results_of("avx512", two)) skip();
  assert_memory_equal(one, two, sizeof one);
}

static void shows_nan(pl_device *d, size_t n, const pl_real *p, bool all) {
  pl_real host[WIDE];
  size_t count = 0;
  assert_true(n <= WIDE);
  d->ops->download(d, host, p, n * sizeof *host);
  for (size_t i = 0; i < n; i++) count += isnan(host[i]) ? 1 : 0;
  assert_true(all ? count == n : count > 0);
}

/* One NaN with sign and payload among good inputs, at every lane of a vector and in the tail. */
static void nan_passes(pl_device *d) {
  const double strange = copysign(nan("12345"), -1);
  for (size_t where = 0; where < 37; where++) {
    bed b = {.d = d};
    enum { N = 37 };
    double *x = numbers(N, 1), *ones = zeros(N);
    for (size_t i = 0; i < N; i++) ones[i] = 1;
    x[where] = strange;
    const int32_t target[] = {3};
    pl_real *px = put(&b, N, x), *w = put(&b, N, ones), *out = put(&b, N, ones), *two = put(&b, N, ones);
    pl_real *three = put(&b, N, ones), *rstd = room(&b, 1), *mean = room(&b, 1);
    double *loss = array(&b, sizeof *loss), got = 0;
    d->ops->swiglu_forward(d, N, px, w, out), shows_nan(d, 1, out + where, true);
    d->ops->swiglu_forward(d, N, w, px, out), shows_nan(d, 1, out + where, true);
    d->ops->gelu_forward(d, N, px, out), shows_nan(d, 1, out + where, true);
    d->ops->rmsnorm_forward(d, 1, N, px, w, 1e-5, out, rstd), shows_nan(d, N, out, true);
    d->ops->layernorm_forward(d, 1, N, px, w, w, 1e-5, out, mean, rstd), shows_nan(d, N, out, true);
    d->ops->adamw(d, N, px, 0.9, 0.9, 0.1, 0.1, 1e-8, 1, two, three, out), shows_nan(d, 1, out + where, true);
    assert_true(isnan(d->ops->sum_squares(d, N, px)));
    d->ops->cross_entropy(d, 1, N, put_ids(&b, 1, target), true, 1, px, loss);
    shows_nan(d, N, px, true);
    d->ops->download(d, &got, loss, sizeof got);
    assert_true(isnan(got));
    free(x), free(ones);
    finish(&b);
  }
}

static void attention_nan_passes(pl_device *d) {
  const pl_attention s = {1, 37, 1, 1, 2};
  for (size_t where = 0; where < 3; where++) {
    bed b = {.d = d};
    double *x = numbers(74, 1), *bad = numbers(74, 2);
    bad[73] = (double)NAN;
    pl_real *in[3];
    for (size_t i = 0; i < 3; i++) in[i] = put(&b, 74, i == where ? bad : x);
    pl_real *out = room(&b, 74), *saved = room(&b, d->ops->attention_saved_size(&s));
    d->ops->attention_forward(d, &s, in[0], in[1], in[2], out, saved, room(&b, d->ops->attention_scratch_size(d, &s)));
    shows_nan(d, 1, out + 73, true);
    free(x), free(bad);
    finish(&b);
  }
}

/* Scores that are far apart stay finite, and minus infinity is a plain zero. */
static void extremes_stay_finite(pl_device *d) {
  bed b = {.d = d};
  const double x[] = {-1e4, 1e4, 0, 88, -88, 100, -100, -HUGE_VAL};
  const int32_t target[] = {1};
  double gate[8], got = 0;
  for (size_t i = 0; i < 8; i++) gate[i] = i == 7 ? 3e4 : x[i];
  pl_real *logits = put(&b, 8, x), *g = put(&b, 8, gate), *out = room(&b, 8), host[8];
  double *loss = array(&b, sizeof *loss);
  d->ops->cross_entropy(d, 1, 8, put_ids(&b, 1, target), true, 1, logits, loss);
  d->ops->download(d, &got, loss, sizeof got);
  assert_true(got == 0);
  d->ops->swiglu_forward(d, 8, g, g, out);
  for (int i = 0; i < 2; i++) {
    d->ops->download(d, host, i == 0 ? logits : out, sizeof host);
    for (size_t j = 0; j < 8; j++) assert_true(isfinite(host[j]));
  }
  finish(&b);
}

static void test_positions(void **state) { (void)state, on_each_device(positions); }
static void test_same_bits_again(void **state) { (void)state, on_each_device(again); }
static void test_nan_passes(void **state) { (void)state, on_each_device(nan_passes); }
static void test_attention_nan(void **state) { (void)state, on_each_device(attention_nan_passes); }
static void test_extremes(void **state) { (void)state, on_each_device(extremes_stay_finite); }

static void test_opening(void **state) {
  (void)state;
  pl_device *d = NULL;
  pl_err e = {0};
  assert_int_equal(pl_device_open("gpu", PL_PRECISION_FP32, 1, &d, &e), PL_BAD);
  assert_non_null(strstr(e.text, "device is \"gpu\"; allowed: cpu, paranoid"));
  assert_null(d);
  for (size_t i = 0; i < 2; i++) {
    e = (pl_err){0};
    setenv("PIPELAG_ISA", "avx1024", 1);
    assert_int_equal(pl_device_open(device_names[i], PL_PRECISION_FP32, 1, &d, &e), PL_BAD);
    assert_non_null(strstr(e.text, "PIPELAG_ISA is \"avx1024\"; this build on this machine has"));
    assert_non_null(strstr(e.text, "base"));
    unsetenv("PIPELAG_ISA");
    assert_int_equal(pl_device_open(device_names[i], PL_PRECISION_FP32, 1, &d, &e), PL_OK);
    assert_string_equal(d->ops->name, device_names[i]);
    assert_non_null(strstr(d->kernel, " kernels, "));
    pl_device_close(d);
  }
  pl_device_close(NULL);
}

/* Wrong calls, each in a child process that must be ended by abort. */
static void past_the_end(pl_device *d, bed *b) { d->ops->sum_squares(d, 9, room(b, 8)); }
static void host_memory(pl_device *d, bed *b) {
  pl_real host[4] = {0};
  d->ops->axpby(d, 4, 1, host, 1, room(b, 4));
}
static void freed(pl_device *d, bed *b) {
  void *p = array(b, 64);
  d->ops->free(d, p);
  b->count--;
  d->ops->zero(d, p, 8);
}
static void twice_freed(pl_device *d, bed *b) {
  void *p = array(b, 64);
  d->ops->free(d, p);
  d->ops->free(d, p);
}
static void negative_id(pl_device *d, bed *b) { /* fresh memory is -1 as an id */
  d->ops->embedding_forward(d, 1, 2, array(b, 4), room(b, 8), room(b, 2));
}
static void target_beyond(pl_device *d, bed *b) {
  const int32_t target[] = {4};
  d->ops->cross_entropy(d, 1, 4, put_ids(b, 1, target), true, 1, room(b, 4), array(b, 8));
}
static void narrow_stride(pl_device *d, bed *b) {
  d->ops->gemm(d, false, false, 2, 2, 4, 1, room(b, 8), 3, room(b, 8), 2, 0, room(b, 4), 2);
}
static void fine(pl_device *d, bed *b) { d->ops->sum_squares(d, 8, room(b, 8)); }

static int ending_of(void (*call)(pl_device *d, bed *b)) {
  int status = 0;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    pl_err e = {0};
    bed b = {0};
    signal(SIGABRT, SIG_DFL);
    if (!freopen("/dev/null", "w", stderr) || pl_device_open("paranoid", PL_PRECISION_FP32, 1, &b.d, &e) != PL_OK)
      _exit(1);
    call(b.d, &b);
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

static void test_paranoid_catches(void **state) {
  (void)state;
  void (*const wrong[])(pl_device *, bed *) = {past_the_end, host_memory,   freed,        twice_freed,
                                               negative_id,  target_beyond, narrow_stride};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_int_equal(ending_of(wrong[i]), SIGABRT);
  assert_int_equal(ending_of(fine), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_positions),  cmocka_unit_test(test_same_bits_again),
      cmocka_unit_test(test_nan_passes), cmocka_unit_test(test_attention_nan),
      cmocka_unit_test(test_extremes),   cmocka_unit_test(test_avx2_equals_avx512),
      cmocka_unit_test(test_opening),    cmocka_unit_test(test_paranoid_catches),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
