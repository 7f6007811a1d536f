/* The CUDA device's attention: against its definition in double, in full precision and in bf16, in whole arrays and
 * nothing but them, and the same bits whatever order threads run in. */
#include "tests/cuda/attention_reference.h"

enum { GUARD = 48, POISON = 0x7fc0beef };

/* An array on the device that begins `shift` elements after a multiple of 16 bytes, with guards around it; all of it is
 * poison at first, a NaN that nothing computes. */
typedef struct guarded {
  float *whole, *x;
  size_t n, shift;
} guarded;

static void fill(pl_device *d, const guarded *g, const double *x) {
  const size_t all = g->n + 2 * GUARD;
  const uint32_t poison = POISON;
  float *host = calloc(all, sizeof *host);
  assert_non_null(host);
  for (size_t i = 0; i < all; i++) memcpy(host + i, &poison, sizeof poison);
  for (size_t i = 0; x && i < g->n; i++) host[GUARD + g->shift + i] = (float)x[i];
  d->ops->upload(d, g->whole, host, all * sizeof *host);
  free(host);
}

static guarded guard(bed *b, size_t n, size_t shift, const double *x) {
  guarded g = {.whole = room(b, n + 2 * GUARD), .n = n, .shift = shift};
  g.x = g.whole + GUARD + shift;
  fill(b->d, &g, x);
  return g;
}

static bool poisoned(const float *x) {
  uint32_t bits;
  memcpy(&bits, x, sizeof bits);
  return bits == POISON;
}

/* The array's numbers, which the caller frees; *intact becomes false where a guard has changed. */
static float *take(pl_device *d, const guarded *g, bool *intact) {
  const size_t all = g->n + 2 * GUARD, first = GUARD + g->shift;
  float *host = calloc(all, sizeof *host), *x = calloc(g->n + 1, sizeof *x);
  assert_true(host && x);
  d->ops->download(d, host, g->whole, all * sizeof *host);
  for (size_t i = 0; i < all; i++)
    if ((i < first || i >= first + g->n) && !poisoned(host + i)) *intact = false;
  memcpy(x, host + first, g->n * sizeof *x);
  free(host);
  return x;
}

typedef struct outcome {
  float *x[RESULTS], *lse;
  bool intact;
} outcome;

/* Forward and backward on the reference's inputs. */
static outcome attempt(pl_device *d, const reference *r, size_t shift) {
  bed b = {.d = d};
  const pl_attention *s = &r->s;
  outcome o = {.intact = true};
  const guarded q = guard(&b, r->nq, shift, r->q), k = guard(&b, r->nkv, shift, r->k),
                v = guard(&b, r->nkv, shift, r->v);
  const guarded dout = guard(&b, r->nq, shift, r->dout), lse = guard(&b, d->ops->attention_saved_size(s), shift, NULL);
  const guarded scratch = guard(&b, d->ops->attention_scratch_size(d, s), shift, NULL);
  guarded g[RESULTS];
  for (int i = 0; i < RESULTS; i++) g[i] = guard(&b, r->results[i].n, shift, NULL);
  d->ops->attention_forward(d, s, q.x, k.x, v.x, g[OUT].x, lse.x, scratch.x);
  fill(d, &scratch, NULL); /* nothing lies there between the passes */
  d->ops->attention_backward(d, s, q.x, k.x, v.x, g[OUT].x, lse.x, dout.x, g[DQ].x, g[DK].x, g[DV].x, scratch.x);
  const guarded *const inputs[] = {&q, &k, &v, &dout, &scratch};
  const double *const same[] = {r->q, r->k, r->v, r->dout, NULL};
  for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
    float *x = take(d, inputs[i], &o.intact);
    for (size_t j = 0; same[i] && j < inputs[i]->n; j++) o.intact = o.intact && x[j] == (float)same[i][j];
    free(x);
  }
  for (int i = 0; i < RESULTS; i++) o.x[i] = take(d, &g[i], &o.intact);
  o.lse = take(d, &lse, &o.intact);
  finish(&b);
  return o;
}

static void discard(outcome *o) {
  for (int i = 0; i < RESULTS; i++) free(o->x[i]);
  free(o->lse);
}

/* The largest error, in units of the magnitudes of an element's terms. */
static double worst_error(const reference *r, const outcome *o) {
  double worst = 0;
  for (int i = 0; i < RESULTS; i++)
    for (size_t j = 0; j < r->results[i].n; j++) {
      const double error = fabs((double)o->x[i][j] - r->results[i].x[j]) / r->results[i].mass[j];
      worst = isnan(error) ? HUGE_VAL : fmax(worst, error);
    }
  return worst;
}

/* The error of all elements of one result together, in the same units. */
static double mean_error(const reference *r, const outcome *o, int result) {
  double errors = 0, masses = 0;
  for (size_t j = 0; j < r->results[result].n; j++) {
    const double error = (double)o->x[result][j] - r->results[result].x[j], mass = r->results[result].mass[j];
    errors += error * error, masses += mass * mass;
  }
  return isnan(errors) ? HUGE_VAL : sqrt(errors / masses);
}

/* Whether the result was made of rounded numbers rather than exact ones. */
static bool is_rounded(const reference *exact, const reference *rounded, const outcome *o, int result) {
  return mean_error(exact, o, result) > 4 * mean_error(rounded, o, result);
}

static double worst_lse(const reference *r, const outcome *o) {
  double worst = 0;
  for (size_t i = 0; i < r->s.batch * r->s.heads * r->s.time; i++) {
    const double error = fabs((double)o->lse[i] - r->lse[i]);
    worst = isnan(error) ? HUGE_VAL : fmax(worst, error);
  }
  return worst;
}

/* Rounding errors of sums of n terms grow like sqrt(n) (Higham and Mary, doi 10.1137/18M1226312; their lambda is 4
 * here). An error of a score, at most `steepest` times its relative one, is one of its probability and of the sum that
 * divides it. */
static double tolerance_fp32(const reference *r) {
  const double unit = ldexp(1, -24), group = (double)(r->s.heads / r->s.kv_heads);
  const double score = sqrt((double)r->s.head_dim) * (1 + 2 * r->steepest);
  return 4 * unit * (score + sqrt((double)r->s.time * group) + 8);
}

/* Each term has at most four factors that are rounded, one of them a probability whose score is made of two. */
static double tolerance_bf16(const reference *r) { return ldexp(1, -9) * (4 + 4 * r->steepest) + tolerance_fp32(r); }

static pl_device *device(pl_precision precision) {
  pl_device *d = NULL;
  pl_err e = {0};
  assert_int_equal(pl_device_open("cuda", precision, 1, &d, &e), PL_OK);
  return d;
}

static void name_shape(const pl_attention *s, char *text, size_t size) {
  snprintf(text, size, "batch %zu, time %zu, heads %zu/%zu, head_dim %zu", s->batch, s->time, s->heads, s->kv_heads,
           s->head_dim);
}

static void check_fp32(pl_device *d, const pl_attention *s, size_t shift) {
  char name[128];
  name_shape(s, name, sizeof name);
  reference r = refer(s, false);
  outcome o = attempt(d, &r, shift);
  const double worst = worst_error(&r, &o), tolerance = tolerance_fp32(&r);
  if (!o.intact) fail_msg("%s: something other than the results has changed", name);
  if (!(worst <= tolerance)) fail_msg("%s: off by %.2e, allowed: %.2e", name, worst, tolerance);
  assert_true(worst_lse(&r, &o) <= tolerance * (1 + r.steepest));
  discard(&o);
  forget(&r);
}

/* Against exact numbers, and, much closer, against numbers that are rounded in the same places. What remains are
 * numbers that lie so close to the middle of two others that the last bit of a sum decides. */
static void check_bf16(pl_device *d, const pl_attention *s, size_t shift) {
  char name[128];
  name_shape(s, name, sizeof name);
  reference exact = refer(s, false), rounded = refer(s, true);
  outcome o = attempt(d, &rounded, shift);
  const double worst = worst_error(&exact, &o), tolerance = tolerance_bf16(&exact);
  if (!o.intact) fail_msg("%s: something other than the results has changed", name);
  if (!(worst <= tolerance)) fail_msg("%s: off by %.2e, allowed: %.2e", name, worst, tolerance);
  for (int i = 0; i < RESULTS; i++) {
    const double error = mean_error(&rounded, &o, i);
    if (!(error <= ldexp(1, -13))) fail_msg("%s: result %d is off by %.2e from rounded numbers", name, i, error);
    if (s->time > 1) assert_true(is_rounded(&exact, &rounded, &o, i));
  }
  assert_true(worst_lse(&rounded, &o) <= tolerance_fp32(&rounded) * (1 + rounded.steepest));
  discard(&o);
  forget(&exact), forget(&rounded);
}

static bool same(const reference *r, const outcome *a, const outcome *b) {
  for (int i = 0; i < RESULTS; i++)
    if (memcmp(a->x[i], b->x[i], r->results[i].n * sizeof *a->x[i]) != 0) return false;
  return memcmp(a->lse, b->lse, r->s.batch * r->s.heads * r->s.time * sizeof *a->lse) == 0;
}

typedef void check(pl_device *d, const pl_attention *s, size_t shift);

/* Small heads of every width, wide ones at the edges of the tiles, groups of one, two and three. */
static void check_shapes(pl_device *d, check *run, size_t step, size_t widest) {
  static const size_t groups[][2] = {{2, 2}, {4, 2}, {3, 1}}, wide[] = {32, 64, 80, 96, 128, 256};
  static const size_t times[] = {1, 65, 31, 64, 130};
  enum { WIDE = sizeof wide / sizeof *wide, TIMES = sizeof times / sizeof *times };
  for (size_t dim = step; dim <= 20; dim += step) {
    const size_t *g = groups[dim % 3];
    const pl_attention s = {1 + dim % 2, dim % 4 == 0 ? 70 : 5 * dim, g[0], g[1], dim};
    run(d, &s, step == 1 ? dim % 5 : 0);
  }
  for (size_t i = 0; i < WIDE && wide[i] <= widest; i++)
    for (size_t j = wide[i] == 64 ? 0 : i % 2; j < TIMES; j += wide[i] == 64 ? 1 : 2) {
      const size_t *g = groups[(i + j) % 3];
      const pl_attention s = {1, times[j], g[0], g[1], wide[i]};
      run(d, &s, 0);
    }
}

static void follows_the_definition(void **state) {
  (void)state;
  pl_device *d = device(PL_PRECISION_FP32);
  check_shapes(d, check_fp32, 1, 256);
  pl_device_close(d);
}

static void follows_the_definition_in_bf16(void **state) {
  (void)state;
  pl_device *d = device(PL_PRECISION_BF16);
  check_shapes(d, check_bf16, 4, 128);
  pl_device_close(d);
}

/* Twice, and with the threads of a block in the opposite order. */
static void has_the_same_bits(void **state) {
  (void)state;
  static const pl_attention shapes[] = {{2, 70, 4, 2, 16}, {1, 130, 3, 1, 64}, {1, 67, 2, 2, 100}};
  pl_device *d[] = {device(PL_PRECISION_FP32), device(PL_PRECISION_BF16)};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (size_t j = 0; j < 2; j++) {
      reference r = refer(&shapes[i], false);
      outcome once = attempt(d[j], &r, 0), again = attempt(d[j], &r, 0);
      setenv("PL_GRID_ORDER", "backward", 1);
      outcome backward = attempt(d[j], &r, 0);
      unsetenv("PL_GRID_ORDER");
      assert_true(same(&r, &once, &again) && same(&r, &once, &backward));
      discard(&once), discard(&again), discard(&backward);
      forget(&r);
    }
  for (size_t j = 0; j < 2; j++) pl_device_close(d[j]);
}

/* The second device's arrays begin `shift` elements after 16 bytes. */
static void expect_same(pl_device *one, pl_device *two, const reference *r, size_t shift, bool yes) {
  outcome a = attempt(one, r, 0), b = attempt(two, r, shift);
  assert_int_equal(same(r, &a, &b), yes);
  discard(&a);
  discard(&b);
}

/* In full precision arrays may begin anywhere. In bf16 the tensor cores are left alone by heads that are too wide or no
 * multiple of 4, and by such arrays. */
static void chooses_the_tensor_cores(void **state) {
  (void)state;
  static const pl_attention fit = {1, 20, 2, 1, 128}, misfits[] = {{1, 20, 2, 1, 132}, {1, 20, 2, 1, 18}};
  pl_device *full = device(PL_PRECISION_FP32), *low = device(PL_PRECISION_BF16);
  reference r = refer(&fit, false);
  expect_same(full, full, &r, 1, true);
  expect_same(full, low, &r, 0, false);
  expect_same(full, low, &r, 1, true);
  forget(&r);
  for (size_t i = 0; i < sizeof misfits / sizeof *misfits; i++) {
    r = refer(&misfits[i], false);
    expect_same(full, low, &r, 0, true);
    forget(&r);
  }
  pl_device_close(full), pl_device_close(low);
}

/* The checks see a last row that is left out, a row that is off by a thousandth, a stray write, rounded numbers where
 * there should be none, and exact ones where they should be rounded. */
static const pl_ops *whole;

static void short_forward(pl_device *d, const pl_attention *s, const float *q, const float *k, const float *v,
                          float *out, float *saved, float *scratch) {
  pl_attention less = *s;
  less.time--;
  whole->attention_forward(d, &less, q, k, v, out, saved, scratch);
}

static void poor_backward(pl_device *d, const pl_attention *s, const float *q, const float *k, const float *v,
                          const float *out, const float *saved, const float *dout, float *dq, float *dk, float *dv,
                          float *scratch) {
  whole->attention_backward(d, s, q, k, v, out, saved, dout, dq, dk, dv, scratch);
  for (size_t i = 0; i < s->head_dim; i++) dk[i] *= 0.999f;
}

static void stray_backward(pl_device *d, const pl_attention *s, const float *q, const float *k, const float *v,
                           const float *out, const float *saved, const float *dout, float *dq, float *dk, float *dv,
                           float *scratch) {
  whole->attention_backward(d, s, q, k, v, out, saved, dout, dq, dk, dv, scratch);
  dv[s->time * s->kv_heads * s->head_dim] = 0;
}

static void broken_kernels_are_seen(void **state) {
  (void)state;
  const pl_attention s = {1, 40, 4, 2, 16};
  pl_device *d = device(PL_PRECISION_FP32), *low = device(PL_PRECISION_BF16);
  whole = d->ops;
  pl_ops ops = *whole;
  pl_device broken = *d;
  broken.ops = &ops;
  reference r = refer(&s, false), rounded = refer(&s, true);
  ops.attention_forward = short_forward;
  outcome o = attempt(&broken, &r, 0);
  assert_true(worst_error(&r, &o) > tolerance_fp32(&r));
  discard(&o);
  ops.attention_forward = whole->attention_forward;
  ops.attention_backward = poor_backward;
  o = attempt(&broken, &r, 0);
  assert_true(worst_error(&r, &o) > tolerance_fp32(&r));
  discard(&o);
  ops.attention_backward = stray_backward;
  o = attempt(&broken, &r, 0);
  assert_false(o.intact);
  discard(&o);
  o = attempt(low, &r, 0);
  assert_true(worst_error(&r, &o) > tolerance_fp32(&r));
  discard(&o);
  o = attempt(d, &rounded, 0);
  for (int i = 0; i < RESULTS; i++) assert_false(is_rounded(&r, &rounded, &o, i));
  discard(&o);
  forget(&r), forget(&rounded);
  pl_device_close(d), pl_device_close(low);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(follows_the_definition),  cmocka_unit_test(follows_the_definition_in_bf16),
      cmocka_unit_test(has_the_same_bits),       cmocka_unit_test(chooses_the_tensor_cores),
      cmocka_unit_test(broken_kernels_are_seen),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
