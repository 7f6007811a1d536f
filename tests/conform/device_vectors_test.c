/* The model operations in vectors/model_ops.json on every CPU device and instruction set. */
#include "core/base/json.h"
#include "tests/conform/device_bed.h"

static pl_json *vectors;

static const pl_json *member(const char *group, const char *key) {
  const pl_json *value = pl_json_get(pl_json_get(vectors, group), key);
  assert_non_null(value);
  return value;
}

static double *flatten(const pl_json *value, double *out) {
  if (pl_json_kind_of(value) != PL_JSON_ARRAY) {
    *out = pl_json_number(value);
    return out + 1;
  }
  for (size_t i = 0; i < pl_json_size(value); i++) out = flatten(pl_json_at(value, i), out);
  return out;
}

enum { LARGEST = 64 };

static size_t numbers_of(const char *group, const char *key, double out[LARGEST]) {
  return (size_t)(flatten(member(group, key), out) - out);
}

static pl_real *put_vector(bed *b, const char *group, const char *key) {
  double x[LARGEST];
  const size_t n = numbers_of(group, key, x);
  return put(b, n, x);
}

static void expect_vector(bed *b, const pl_real *p, const char *group, const char *key) {
  double x[LARGEST];
  const size_t n = numbers_of(group, key, x);
  expect(b, n, p, x);
}

static pl_real *put_zeros(bed *b, size_t n) {
  const double none[LARGEST] = {0};
  return put(b, n, none);
}

static void rmsnorm(pl_device *d) {
  bed b = {.d = d};
  const double eps = pl_json_number(member("rmsnorm", "eps"));
  pl_real *x = put_vector(&b, "rmsnorm", "x"), *w = put_vector(&b, "rmsnorm", "w"),
          *dy = put_vector(&b, "rmsnorm", "dy");
  pl_real *y = room(&b, 8), *rstd = room(&b, 2), *dx = put_zeros(&b, 8), *dw = put_zeros(&b, 4);
  d->ops->rmsnorm_forward(d, 2, 4, x, w, eps, y, rstd);
  d->ops->rmsnorm_backward(d, 2, 4, x, w, rstd, dy, dx, dw);
  expect_vector(&b, y, "rmsnorm", "y");
  expect_vector(&b, dx, "rmsnorm", "dx");
  expect_vector(&b, dw, "rmsnorm", "dw");
  assert_true(finish(&b) < TOLERANCE);
}

/* [time, head_dim]: cos then sin, theta 10000. */
static pl_real *put_angles(bed *b, size_t time, size_t dim) {
  double angles[LARGEST];
  for (size_t t = 0; t < time; t++)
    for (size_t i = 0; i < dim / 2; i++) {
      const double angle = (double)t * pow(10000, -2 * (double)i / (double)dim);
      angles[t * dim + i] = cos(angle);
      angles[t * dim + dim / 2 + i] = sin(angle);
    }
  return put(b, time * dim, angles);
}

static void rope(pl_device *d) {
  bed b = {.d = d};
  pl_real *angles = put_angles(&b, 3, 4), *x = put_vector(&b, "rope_half_split", "x");
  pl_real *dx = put_vector(&b, "rope_half_split", "dy");
  d->ops->rope(d, 3, 3, 1, 4, angles, false, x);
  d->ops->rope(d, 3, 3, 1, 4, angles, true, dx);
  expect_vector(&b, x, "rope_half_split", "y");
  expect_vector(&b, dx, "rope_half_split", "dx");
  assert_true(finish(&b) < TOLERANCE);
}

/* The file has [heads, time, dim], the device [time, heads * dim]. */
static void interleave(size_t heads, size_t time, size_t dim, const double *in, double *out) {
  for (size_t i = 0; i < heads * time * dim; i++)
    out[(i / dim % time * heads + i / dim / time) * dim + i % dim] = in[i];
}

static pl_real *put_heads(bed *b, size_t heads, const char *key) {
  double x[LARGEST], y[LARGEST];
  const size_t n = numbers_of("gqa_attention_rope", key, x);
  interleave(heads, 3, 4, x, y);
  return put(b, n, y);
}

static void expect_heads(bed *b, size_t heads, const pl_real *p, const char *key) {
  double x[LARGEST], y[LARGEST];
  const size_t n = numbers_of("gqa_attention_rope", key, x);
  interleave(heads, 3, 4, x, y);
  expect(b, n, p, y);
}

static void attention(pl_device *d) {
  bed b = {.d = d};
  const pl_attention s = {.batch = 1, .time = 3, .heads = 2, .kv_heads = 1, .head_dim = 4};
  pl_real *angles = put_angles(&b, 3, 4), *q = put_heads(&b, 2, "q"), *k = put_heads(&b, 1, "k");
  pl_real *v = put_heads(&b, 1, "v"), *dy = put_heads(&b, 2, "dy"), *y = room(&b, 24), *dq = room(&b, 24);
  pl_real *dk = room(&b, 12), *dv = room(&b, 12), *saved = room(&b, d->ops->attention_saved_size(&s));
  pl_real *scratch = room(&b, d->ops->attention_scratch_size(d, &s));
  d->ops->rope(d, 3, 3, 2, 4, angles, false, q);
  d->ops->rope(d, 3, 3, 1, 4, angles, false, k);
  d->ops->attention_forward(d, &s, q, k, v, y, saved, scratch);
  d->ops->attention_backward(d, &s, q, k, v, y, saved, dy, dq, dk, dv, scratch);
  d->ops->rope(d, 3, 3, 2, 4, angles, true, dq);
  d->ops->rope(d, 3, 3, 1, 4, angles, true, dk);
  expect_heads(&b, 2, y, "y");
  expect_heads(&b, 2, dq, "dq");
  expect_heads(&b, 1, dk, "dk");
  expect_heads(&b, 1, dv, "dv");
  assert_true(finish(&b) < TOLERANCE);
}

/* y = (silu(x Wg^T) * (x Wu^T)) Wd^T with 2 rows, width 3, hidden 4; weights are [out, in]. */
static void swiglu(pl_device *d) {
  bed b = {.d = d};
  const char *const s = "swiglu";
  pl_real *x = put_vector(&b, s, "x"), *wg = put_vector(&b, s, "Wg"), *wu = put_vector(&b, s, "Wu");
  pl_real *wd = put_vector(&b, s, "Wd"), *dy = put_vector(&b, s, "dy"), *g = room(&b, 8), *u = room(&b, 8);
  pl_real *h = room(&b, 8), *y = room(&b, 6), *dh = room(&b, 8), *dx = room(&b, 6), *dw = room(&b, 12);
  d->ops->gemm(d, false, true, 2, 4, 3, 1, x, 3, wg, 3, 0, g, 4);
  d->ops->gemm(d, false, true, 2, 4, 3, 1, x, 3, wu, 3, 0, u, 4);
  d->ops->swiglu_forward(d, 8, g, u, h);
  d->ops->gemm(d, false, true, 2, 3, 4, 1, h, 4, wd, 4, 0, y, 3);
  expect_vector(&b, y, s, "y");
  d->ops->gemm(d, true, false, 3, 4, 2, 1, dy, 3, h, 4, 0, dw, 4);
  expect_vector(&b, dw, s, "dWd");
  d->ops->gemm(d, false, false, 2, 4, 3, 1, dy, 3, wd, 4, 0, dh, 4);
  d->ops->swiglu_backward(d, 8, g, u, dh, g, u);
  d->ops->gemm(d, true, false, 4, 3, 2, 1, g, 4, x, 3, 0, dw, 3);
  expect_vector(&b, dw, s, "dWg");
  d->ops->gemm(d, true, false, 4, 3, 2, 1, u, 4, x, 3, 0, dw, 3);
  expect_vector(&b, dw, s, "dWu");
  d->ops->gemm(d, false, false, 2, 3, 4, 1, g, 4, wg, 3, 0, dx, 3);
  d->ops->gemm(d, false, false, 2, 3, 4, 1, u, 4, wu, 3, 1, dx, 3);
  expect_vector(&b, dx, s, "dx");
  assert_true(finish(&b) < TOLERANCE);
}

static double mean_loss(bed *b, size_t rows, const double *loss) {
  double host[8];
  b->d->ops->download(b->d, host, loss, rows * sizeof *host);
  double sum = 0;
  for (size_t r = 0; r < rows; r++) sum += host[r];
  return sum / (double)rows;
}

static void cross_entropy(pl_device *d) {
  bed b = {.d = d};
  const int32_t targets[] = {1, 4, 0};
  pl_real *logits = put_vector(&b, "cross_entropy_mean", "logits");
  double *loss = array(&b, 3 * sizeof *loss);
  d->ops->cross_entropy(d, 3, 5, put_ids(&b, 3, targets), true, 1.0 / 3, logits, loss);
  expect_vector(&b, logits, "cross_entropy_mean", "dlogits");
  const double want = pl_json_number(member("cross_entropy_mean", "loss"));
  assert_true(deviation(mean_loss(&b, 3, loss), want) < TOLERANCE);
  assert_true(finish(&b) < TOLERANCE);
}

/* h = E[tokens], logits = h E^T: E gets the head's gradient and the embedding's. */
static void tied_embedding(pl_device *d) {
  bed b = {.d = d};
  const int32_t token_ids[] = {2, 0, 3}, target_ids[] = {0, 3, 1};
  const int32_t *tokens = put_ids(&b, 3, token_ids), *targets = put_ids(&b, 3, target_ids);
  pl_real *table = put_vector(&b, "tied_embedding", "E"), *h = room(&b, 9), *logits = room(&b, 12), *dh = room(&b, 9);
  pl_real *dtable = room(&b, 12);
  double *loss = array(&b, 3 * sizeof *loss);
  d->ops->embedding_forward(d, 3, 3, tokens, table, h);
  d->ops->gemm(d, false, true, 3, 4, 3, 1, h, 3, table, 3, 0, logits, 4);
  d->ops->cross_entropy(d, 3, 4, targets, true, 1.0 / 3, logits, loss);
  d->ops->gemm(d, true, false, 4, 3, 3, 1, logits, 4, h, 3, 0, dtable, 3);
  d->ops->gemm(d, false, false, 3, 3, 4, 1, logits, 4, table, 3, 0, dh, 3);
  d->ops->embedding_backward(d, 3, 3, tokens, dh, dtable);
  expect_vector(&b, dtable, "tied_embedding", "dE");
  assert_true(deviation(mean_loss(&b, 3, loss), pl_json_number(member("tied_embedding", "loss"))) < TOLERANCE);
  assert_true(finish(&b) < TOLERANCE);
}

/* The same vector with the wrong input must not pass. */
static void wrong_input(pl_device *d) {
  bed b = {.d = d};
  pl_real *angles = put_angles(&b, 3, 4), *x = put_vector(&b, "rope_half_split", "x");
  d->ops->rope(d, 3, 3, 1, 4, angles, true, x);
  expect_vector(&b, x, "rope_half_split", "y");
  assert_true(finish(&b) > TOLERANCE);
}

static void test_rmsnorm(void **state) { (void)state, on_each_device(rmsnorm); }
static void test_rope(void **state) { (void)state, on_each_device(rope); }
static void test_attention(void **state) { (void)state, on_each_device(attention); }
static void test_swiglu(void **state) { (void)state, on_each_device(swiglu); }
static void test_cross_entropy(void **state) { (void)state, on_each_device(cross_entropy); }
static void test_tied_embedding(void **state) { (void)state, on_each_device(tied_embedding); }
static void test_wrong_input_is_seen(void **state) { (void)state, on_each_device(wrong_input); }

static int load(void **state) {
  (void)state;
  pl_err e = {0};
  if (pl_json_read(PL_TESTS "/vectors/model_ops.json", &vectors, &e) == PL_OK) return 0;
  print_error("%s\n", e.text);
  return -1;
}

static int unload(void **state) {
  (void)state;
  pl_json_release(vectors);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rmsnorm),
      cmocka_unit_test(test_rope),
      cmocka_unit_test(test_attention),
      cmocka_unit_test(test_swiglu),
      cmocka_unit_test(test_cross_entropy),
      cmocka_unit_test(test_tied_embedding),
      cmocka_unit_test(test_wrong_input_is_seen),
  };
  return cmocka_run_group_tests(tests, load, unload);
}
