/* A device of several threads: every operation gives what one thread gives, the same bits each time, also where there
 * are more threads than rows; a training too. */
#include <pthread.h>
#include <signal.h>

#include "core/device/cpu/team.h"
#include "tests/conform/device_bed.h"
#include "tests/conform/train_rig.h"

/* Sizes that are worth several threads, none of them a multiple of anything. */
enum {
  VECTOR = 100003,
  ROWS = 413,
  WIDTH = 257,
  SIDE = 231, /* of a product */
  COLUMNS = 173,
  INNER = 239,
  SEQUENCES = 5,
  TIME = 129,
  HEADS = 6,
  KV_HEADS = 3,
  DIM = 26,
  BYTES = 32 << 20 /* of the results of all operations */
};

/* What the operations of a device wrote, one after the other. */
typedef struct results {
  bed b;
  pl_device *d;
  pl_real *kept; /* [count] */
  size_t count;
} results;

static void keep(results *r, size_t n, const pl_real *p) {
  assert_true((r->count + n) * sizeof *p <= BYTES);
  r->d->ops->download(r->d, r->kept + r->count, p, n * sizeof *p);
  r->count += n;
}

static void keep_number(results *r, double x) { r->kept[r->count++] = (pl_real)x; }

/* Numbers on the device that follow from the seed. */
static pl_real *given(results *r, size_t n, double seed) {
  double *x = numbers(n, seed);
  pl_real *p = put(&r->b, n, x);
  free(x);
  return p;
}

static void products(results *r) {
  pl_device *d = r->d;
  const size_t n = SIDE, wide = SIDE + 1;
  for (unsigned form = 0; form < 16; form++) {
    const bool ta = form & 1, tb = form & 2, columns = form & 4; /* columns: c is wider than high */
    const size_t rows = columns ? COLUMNS : n, cols = columns ? n : COLUMNS;
    pl_real *a = given(r, wide * INNER, 1), *b = given(r, wide * INNER, 2), *c = given(r, rows * wide, 3);
    (form & 8 ? d->ops->gemm : d->ops->gemm_low)(d, ta, tb, rows, cols, INNER, (pl_real)0.7, a, ta ? wide : INNER, b,
                                                 tb ? INNER : wide, (pl_real)0.3, c, wide);
    keep(r, rows * wide, c);
    finish(&r->b);
  }
  for (unsigned form = 0; form < 4; form++) {
    const bool transpose = form & 1;
    pl_real *a = given(r, n * INNER, 1), *c = room(&r->b, n * wide);
    d->ops->zero(d, c, n * wide * sizeof *c);
    for (int i = 0; i < (form & 2 ? 2 : 1); i++)
      d->ops->syrk(d, transpose, n, INNER, (pl_real)0.7, a, transpose ? n : INNER, i > 0 ? (pl_real)0.3 : 0, c, wide);
    keep(r, n * wide, c);
    finish(&r->b);
  }
}

static void attention(results *r) {
  pl_device *d = r->d;
  const pl_attention s = {SEQUENCES, TIME, HEADS, KV_HEADS, DIM};
  const size_t n = (size_t)SEQUENCES * TIME * HEADS * DIM, kv = n / HEADS * KV_HEADS;
  pl_real *q = given(r, n, 1), *k = given(r, kv, 2), *v = given(r, kv, 3), *dout = given(r, n, 4),
          *out = room(&r->b, n);
  pl_real *dq = room(&r->b, n), *dk = room(&r->b, kv), *dv = room(&r->b, kv);
  pl_real *saved = room(&r->b, d->ops->attention_saved_size(&s));
  pl_real *scratch = room(&r->b, d->ops->attention_scratch_size(d, &s));
  d->ops->attention_forward(d, &s, q, k, v, out, saved, scratch);
  d->ops->attention_backward(d, &s, q, k, v, out, saved, dout, dq, dk, dv, scratch);
  keep(r, n, out), keep(r, n, dq), keep(r, kv, dk), keep(r, kv, dv);
  finish(&r->b);
}

static void rotations(results *r) {
  enum { ROPE_TIME = 37, ROPE_DIM = 90 };
  const size_t rows = (size_t)11 * ROPE_TIME, heads = 3, n = rows * heads * ROPE_DIM;
  pl_real *x = given(r, n, 1), *table = given(r, (size_t)ROPE_TIME * ROPE_DIM, 2);
  for (int inverse = 0; inverse < 2; inverse++) {
    r->d->ops->rope(r->d, rows - 5, ROPE_TIME, heads, ROPE_DIM, table, inverse, x);
    keep(r, n, x);
  }
  finish(&r->b);
}

static void norms(results *r) {
  pl_device *d = r->d;
  const size_t n = (size_t)ROWS * WIDTH;
  pl_real *x = given(r, n, 1), *w = given(r, WIDTH, 2), *bias = given(r, WIDTH, 3), *dout = given(r, n, 4);
  pl_real *out = room(&r->b, n), *mean = room(&r->b, ROWS), *rstd = room(&r->b, ROWS);
  pl_real *dx = given(r, n, 5), *dw = given(r, WIDTH, 6), *dbias = given(r, WIDTH, 7);
  d->ops->rmsnorm_forward(d, ROWS, WIDTH, x, w, 1e-5, out, rstd);
  keep(r, n, out), keep(r, ROWS, rstd);
  d->ops->rmsnorm_backward(d, ROWS, WIDTH, x, w, rstd, dout, dx, dw);
  keep(r, n, dx), keep(r, WIDTH, dw);
  d->ops->layernorm_forward(d, ROWS, WIDTH, x, w, bias, 1e-5, out, mean, rstd);
  keep(r, n, out), keep(r, ROWS, mean), keep(r, ROWS, rstd);
  d->ops->layernorm_backward(d, ROWS, WIDTH, x, w, mean, rstd, dout, dx, dw, dbias);
  keep(r, n, dx), keep(r, WIDTH, dw), keep(r, WIDTH, dbias);
  finish(&r->b);
}

static void rows(results *r) {
  pl_device *d = r->d;
  const size_t n = (size_t)ROWS * WIDTH;
  static const size_t periods[] = {1, 59, 500}; /* 413 is 7 times 59 */
  int32_t host[ROWS];
  for (int32_t i = 0; i < ROWS; i++) host[i] = i * 7 % WIDTH;
  int32_t *ids = put_ids(&r->b, ROWS, host);
  pl_real *table = given(r, (size_t)500 * WIDTH, 1), *x = given(r, n, 2), *dtable = given(r, (size_t)500 * WIDTH, 3);
  double *loss = array(&r->b, ROWS * sizeof *loss), losses[ROWS];
  d->ops->embedding_forward(d, ROWS, WIDTH, ids, table, x);
  d->ops->embedding_backward(d, ROWS, WIDTH, ids, x, dtable);
  for (size_t i = 0; i < 3; i++) {
    d->ops->add_rows_forward(d, ROWS, WIDTH, periods[i], table, x);
    d->ops->add_rows_backward(d, ROWS, WIDTH, periods[i], x, dtable);
  }
  keep(r, n, x), keep(r, (size_t)500 * WIDTH, dtable);
  for (int gradient = 0; gradient < 2; gradient++) {
    d->ops->cross_entropy(d, ROWS, WIDTH, ids, gradient, 0.3, x, loss);
    d->ops->download(d, losses, loss, sizeof losses);
    for (size_t i = 0; i < ROWS; i++) keep_number(r, losses[i]);
    keep(r, n, x);
  }
  keep_number(r, d->ops->sum_double(d, ROWS, loss));
  finish(&r->b);
}

static void vectors(results *r) {
  pl_device *d = r->d;
  const size_t n = VECTOR;
  pl_real *x = given(r, n, 1), *y = given(r, n, 2), *z = given(r, n, 3), *one = given(r, n, 4), *two = given(r, n, 5);
  d->ops->swiglu_forward(d, n, x, y, one), keep(r, n, one);
  d->ops->swiglu_backward(d, n, x, y, z, one, two), keep(r, n, one), keep(r, n, two);
  d->ops->gelu_forward(d, n, x, one), keep(r, n, one);
  d->ops->gelu_backward(d, n, x, y, one), keep(r, n, one);
  d->ops->axpby(d, n, 0.3, x, 0.7, one), keep(r, n, one);
  d->ops->axpby(d, n, -2, x, 0, one), keep(r, n, one);
  d->ops->shrink_subtract(d, n, 0.99, x, y, one), keep(r, n, one);
  d->ops->axpby(d, n, 1, x, 0, one);
  d->ops->gelu_backward(d, n, x, one, one), keep(r, n, one); /* in place */
  d->ops->zero(d, one, n * sizeof *one);
  d->ops->zero(d, two, n * sizeof *two);
  for (int i = 0; i < 2; i++) d->ops->adamw(d, n, x, 0.9, 0.95, 0.3, 0.2, 1e-8, 0.1, one, two, z);
  keep(r, n, one), keep(r, n, two), keep(r, n, z);
  d->ops->momentum(d, n, x, 0.9, 0.7, true, 0.6, 0.1, one, z), keep(r, n, one), keep(r, n, z);
  d->ops->momentum(d, n, x, 0.9, 0.7, false, 0.6, 0.1, one, z), keep(r, n, one), keep(r, n, z);
  keep_number(r, d->ops->sum_squares(d, n, x));
  keep_number(r, d->ops->dot(d, n, x, y));
  finish(&r->b);
}

/* Empty sums, and fewer rows than threads although there is much to do. */
static void extremes(results *r) {
  enum { MANY = 70000 };
  pl_device *d = r->d;
  const pl_attention s = {1, 300, 8, 1, 24};
  const size_t n = (size_t)s.time * s.heads * s.head_dim, kv = n / s.heads;
  const double nothing[6] = {(double)NAN, 1, (double)NAN, 2, (double)NAN, 3};
  pl_real *c = put(&r->b, 6, nothing), *x = given(r, (size_t)3 * MANY, 1), *y = given(r, (size_t)3 * MANY, 2);
  d->ops->gemm(d, false, false, 3, 1, 0, 1, x, 1, y, 1, 0, c, 2);
  d->ops->gemm(d, false, false, 3, 1, 0, 1, x, 1, y, 1, (pl_real)0.5, c + 1, 2);
  keep(r, 6, c);
  d->ops->gemm(d, false, true, 3, 3, MANY, 1, x, MANY, y, MANY, 0, c = room(&r->b, 9), 3), keep(r, 9, c);
  d->ops->syrk(d, false, 3, MANY, 1, x, MANY, 0, c, 3), keep(r, 9, c);
  pl_real *out = room(&r->b, (size_t)2 * MANY), *rstd = room(&r->b, 2);
  d->ops->rmsnorm_forward(d, 2, MANY, x, y, 1e-5, out, rstd);
  keep(r, (size_t)2 * MANY, out), keep(r, 2, rstd);
  d->ops->gelu_forward(d, 0, x, out);
  pl_real *attended = room(&r->b, n), *saved = room(&r->b, d->ops->attention_saved_size(&s));
  d->ops->attention_forward(d, &s, given(r, n, 3), given(r, kv, 4), given(r, kv, 5), attended, saved,
                            room(&r->b, d->ops->attention_scratch_size(d, &s)));
  keep(r, n, attended);
  finish(&r->b);
}

/* All of the device's table; NULL when the machine lacks the instruction set. */
static results *results_of(const char *device, const char *isa, size_t threads) {
  results *r = calloc(1, sizeof *r);
  assert_non_null(r);
  r->d = r->b.d = open_threads(device, isa, threads);
  if (!r->d) {
    free(r);
    return NULL;
  }
  r->kept = malloc(BYTES);
  assert_non_null(r->kept);
  products(r), attention(r), rotations(r), norms(r), rows(r), vectors(r), extremes(r);
  return r;
}

static void release(results *r) {
  if (!r) return;
  pl_device_close(r->d);
  free(r->kept);
  free(r);
}

/* The largest deviation. Sums have up to 70,000 terms in any order, each of size up to 1. */
static double difference(const results *a, const results *b) {
  double worst = 0;
  assert_int_equal(a->count, b->count);
  for (size_t i = 0; i < a->count; i++) worst = fmax(worst, deviation((double)a->kept[i], (double)b->kept[i]));
  return worst;
}

static void threads_do_what_one_does(void **state) {
  (void)state;
  static const size_t threads[] = {2, 3, 7};
  for (size_t isa = 0; isa < 3; isa++) {
    results *one = results_of("cpu", isa_names[isa], 1);
    if (!one) continue;
    for (size_t i = 0; i < 3; i++) {
      results *several = results_of(i == 1 ? "paranoid" : "cpu", isa_names[isa], threads[i]);
      const double worst = difference(one, several);
      if (!(worst < 30 * TOLERANCE)) fail_msg("%s: off by %.2e", several->d->kernel, worst);
      several->kept[several->count / 2] += (pl_real)0.01; /* the check can fail */
      assert_true(difference(one, several) > 30 * TOLERANCE);
      release(several);
    }
    release(one);
  }
}

static bool same_bits(const results *a, const results *b) {
  return a->count == b->count && memcmp(a->kept, b->kept, a->count * sizeof *a->kept) == 0;
}

static void the_same_number_gives_the_same_bits(void **state) {
  (void)state;
  enum { TIMES = 20 };
  for (size_t threads = 2; threads < 4; threads++) {
    results *first = results_of("cpu", "", threads);
    for (int i = 1; i < TIMES; i++) {
      results *again = results_of("cpu", "", threads);
      assert_true(same_bits(first, again));
      again->kept[again->count - 1] = nextafterf((float)again->kept[again->count - 1], 100);
      assert_false(same_bits(first, again)); /* the check can fail */
      release(again);
    }
    release(first);
  }
}

/* A model with enough work for threads. */
static const char wide_run[] =
    "{'model': {'type': 'transformer', 'layers': 2, 'd_model': 64, 'heads': 4, 'kv_heads': 2, 'context': 64}, 'data': "
    "{'type': 'synthetic', 'vocab': 64}, 'train': {'steps': 4, 'batch_tokens': 1024, 'val_tokens': 1024, 'warmup': 0}, "
    "'optimizer': {'type': '%s', 'lr': 0.01}, 'delay': 1, 'correction': 'ef'}";

static void train(rig *r, const char *optimizer, const char *device, pl_precision precision, size_t threads) {
  char json[RIG_TEXT];
  pl_err e = {0};
  snprintf(json, sizeof json, wide_run, optimizer);
  rig_open_on(r, device, NULL, json);
  pl_device_close(r->device);
  rig_must(pl_device_open(device, precision, threads, &r->device, &e), &e);
  r->args.device = r->device;
  rig_train(r);
}

static bool has_bf16(void) {
  pl_device *d = NULL;
  pl_err e = {0};
  const bool has = pl_device_open("cpu", PL_PRECISION_BF16, 2, &d, &e) == PL_OK;
  pl_device_close(d);
  return has;
}

static double last_loss(const rig *r) { return r->points[r->point_count - 1].values[PL_SERIES_train_loss]; }

static void trainings_have_the_same_bits(void **state) {
  (void)state;
  static const char *const optimizers[] = {"adamw", "muon"};
  for (int precision = 0; precision < (has_bf16() ? 2 : 1); precision++)
    for (size_t i = 0; i < 2; i++) {
      rig one, two, again, other;
      train(&one, optimizers[i], "cpu", (pl_precision)precision, 1);
      train(&two, optimizers[i], "cpu", (pl_precision)precision, 2);
      train(&again, optimizers[i], "paranoid", (pl_precision)precision, 2);
      train(&other, optimizers[1 - i], "cpu", (pl_precision)precision, 2);
      assert_true(rig_same_weights(&two, &again));
      assert_false(rig_same_weights(&two, &other)); /* the check can fail */
      assert_true(fabs(last_loss(&one) - last_loss(&two)) < 1e-3);
      rig_close(&one), rig_close(&two), rig_close(&again), rig_close(&other);
    }
}

/* A region: who was there, and that the threads are none that signals may end. */
typedef struct visit {
  size_t *count;
  pthread_t caller;
  bool *caller_is_first, *deaf;
} visit;

static void look(void *arg, size_t thread) {
  const visit *v = arg;
  sigset_t mask;
  v->count[thread]++;
  if ((thread == 0) != (pthread_equal(pthread_self(), v->caller) != 0)) *v->caller_is_first = false;
  pthread_sigmask(SIG_BLOCK, NULL, &mask);
  v->deaf[thread] = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGUSR1) == 1;
}

static void each_thread_comes_once_to_each_region(void **state) {
  (void)state;
  enum { MOST = 9, REGIONS = 300 };
  for (size_t threads = 1; threads <= MOST; threads += 2) {
    size_t count[MOST] = {0};
    bool caller_is_first = true, deaf[MOST] = {0};
    visit v = {count, pthread_self(), &caller_is_first, deaf};
    pl_team *t = NULL;
    pl_err e = {0};
    rig_must(pl_team_new(threads, &t, &e), &e);
    for (size_t i = 1; i <= REGIONS; i++) {
      pl_team_run(t, look, &v);
      for (size_t j = 0; j < MOST; j++) assert_int_equal(count[j], j < threads ? i : 0);
    }
    assert_true(caller_is_first);
    for (size_t j = 0; j < threads; j++) assert_int_equal(deaf[j], j > 0);
    pl_team_free(t);
  }
  pl_team_free(NULL);
}

static void the_name_says_it(void **state) {
  (void)state;
  pl_device *one = open_threads("cpu", "base", 1), *two = open_threads("paranoid", "base", 2);
  assert_null(strstr(one->kernel, "threads"));
  assert_string_equal(two->kernel, "base kernels, 2 threads, packed products");
  assert_int_equal(two->threads, 2);
  pl_device_close(one);
  pl_device_close(two);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_thread_comes_once_to_each_region),
      cmocka_unit_test(the_name_says_it),
      cmocka_unit_test(threads_do_what_one_does),
      cmocka_unit_test(the_same_number_gives_the_same_bits),
      cmocka_unit_test(trainings_have_the_same_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
