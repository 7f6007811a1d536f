/* The stability limits of tests/vectors/stability.json with the real sgd, ef and lookahead: on f(x) = x^2/2 from x = 1
 * the amplitude shrinks at 0.99 a_max and grows at 1.01 a_max. Judged by a factor of 10^3, or after 10^6 updates by
 * which way it went. The optimizer and the correction are driven by a ring of their own, not by the trainer, for speed.
 * In double only: in float the slowest cases end in rounding. */
#include "core/train/correction.h"
#include "core/train/optimizer.h"
#include "tests/conform/train_rig.h"

enum { WINDOW = 2048, UPDATES = 1000000, MAX_DELAY = 16, STATE = MAX_DELAY + 2 };

static const double far = 1e3;

/* A method at one delay: a chain of at most one correction. */
typedef struct method {
  const char *optimizer, *correction; /* JSON; correction NULL: none */
  int64_t k;
  double rate; /* of a = 1 */
} method;

typedef struct walk {
  rig r;
  pl_layout layout;
  pl_real *x[MAX_DELAY + 1], *u, *momentum, *state[STATE];
} walk;

static pl_real *array(walk *w) {
  pl_err e = {0};
  void *p = NULL;
  size_t bytes = w->layout.size * sizeof(pl_real);
  rig_must(w->r.device->ops->alloc(w->r.device, bytes, "test", &p, &e), &e);
  return p;
}

static void open_walk(walk *w, const method *m) {
  char json[RIG_TEXT];
  pl_err e = {0};
  const pl_segment point = {.name = "x", .kind = PL_SEGMENT_POINT, .rows = 1, .cols = 1};
  snprintf(json, sizeof json,
           "{'model': 'quadratic', 'data': 'none', 'train': {'steps': 1, 'batch_tokens': 1, 'warmup': 0}, 'optimizer': "
           "%s, 'correction': %s}",
           m->optimizer, m->correction ? m->correction : "'none'");
  *w = (walk){0};
  rig_open(&w->r, NULL, json);
  rig_must(pl_layout_add(&w->layout, &point, &e), &e);
  for (int64_t i = 0; i <= m->k; i++) w->x[i] = array(w);
  for (size_t i = 0; i < STATE; i++) w->state[i] = array(w);
  w->u = array(w);
  w->momentum = array(w);
}

static void close_walk(walk *w, const method *m) {
  for (int64_t i = 0; i <= m->k; i++) w->r.device->ops->free(w->r.device, w->x[i]);
  for (size_t i = 0; i < STATE; i++) w->r.device->ops->free(w->r.device, w->state[i]);
  w->r.device->ops->free(w->r.device, w->u);
  w->r.device->ops->free(w->r.device, w->momentum);
  pl_layout_free(&w->layout);
  rig_close(&w->r);
}

static void start_walk(walk *w, const method *m) {
  const pl_real one = 1;
  size_t bytes = w->layout.size * sizeof one;
  for (int64_t i = 0; i <= m->k; i++) w->r.device->ops->zero(w->r.device, w->x[i], bytes);
  for (size_t i = 0; i < STATE; i++) w->r.device->ops->zero(w->r.device, w->state[i], bytes);
  w->r.device->ops->zero(w->r.device, w->momentum, bytes);
  w->r.device->ops->upload(w->r.device, w->x[0], &one, sizeof one);
}

/* Update t at a; x_{t+1} is left in the ring. */
static void update(walk *w, const method *m, int64_t t, double a) {
  pl_device *d = w->r.device;
  const pl_run_config *c = &w->r.config;
  pl_real *const x = w->x[t % (m->k + 1)], *const next = w->x[(t + 1) % (m->k + 1)];
  const pl_real *const stale = w->x[(t > m->k ? t - m->k : 0) % (m->k + 1)];
  const pl_optimizer_call step = {.device = d,
                                  .layout = &w->layout,
                                  .t = t,
                                  .lr = a * m->rate,
                                  .x = x,
                                  .g = stale,
                                  .state = &w->momentum,
                                  .u = w->u};
  ((const pl_optimizer_type *)c->optimizer.type)->displace(c->optimizer.config, &step);
  if (c->correction_count > 0) {
    const pl_correction_call call = {
        .device = d, .n = w->layout.size, .k = m->k, .calls = t, .state = w->state, .v = w->u};
    ((const pl_correction_type *)c->corrections[0].type)->displace(c->corrections[0].config, &call);
  }
  d->ops->shrink_subtract(d, w->layout.size, 1, x, w->u, next);
}

/* 1: grows, -1: shrinks. The amplitude is the largest |x| of a window, which is longer than the slowest period. */
static int direction(walk *w, const method *m, double a) {
  double largest = 0, early = 0;
  start_walk(w, m);
  for (int64_t t = 0; t < UPDATES; t++) {
    pl_real x = 0;
    update(w, m, t, a);
    w->r.device->ops->download(w->r.device, &x, w->x[(t + 1) % (m->k + 1)], sizeof x);
    largest = fmax(largest, fabs((double)x));
    if (largest > far) return 1;
    if ((t + 1) % WINDOW != 0) continue;
    if (largest < 1 / far) return -1;
    if (t + 1 == 2 * WINDOW) early = largest;
    if (t + 1 + WINDOW > UPDATES) return largest > early ? 1 : -1;
    largest = 0;
  }
  return 0;
}

static void expect_limit(const method *m, const char *name, double a_max) {
  walk w;
  open_walk(&w, m);
  int below = direction(&w, m, 0.99 * a_max), above = direction(&w, m, 1.01 * a_max);
  if (below != -1 || above != 1)
    fail_msg("%s %s %s, delay %d, a_max %g: %s at 0.99 and %s at 1.01", name, m->optimizer,
             m->correction ? m->correction : "", (int)m->k, a_max, below < 0 ? "shrinks" : "does not shrink",
             above > 0 ? "grows" : "does not grow");
  close_walk(&w, m);
}

static pl_json *vectors(void) {
  pl_json *file = NULL;
  pl_err e = {0};
  rig_must(pl_json_read(PL_TESTS "/vectors/stability.json", &file, &e), &e);
  return file;
}

/* All table rows of a method, by sgd with momentum beta, error feedback of a form (NULL: none), or a look-ahead with
 * gamma = beta around plain descent. */
static size_t run_rows(const char *wanted, bool nesterov, const char *form, bool look_ahead) {
  pl_json *file = vectors();
  const pl_json *table = pl_json_get(file, "table");
  size_t rows = 0;
  for (size_t i = 0; i < pl_json_size(table); i++) {
    const pl_json *row = pl_json_at(table, i);
    char first[128], second[128];
    double beta = pl_json_number(pl_json_get(row, "beta"));
    if (strcmp(pl_json_string(pl_json_get(row, "method")), wanted) != 0) continue;
    method m = {.k = pl_json_int(pl_json_get(row, "k")), .rate = 1, .optimizer = first};
    /* sgd has no Nesterov form without momentum; it is the plain one there. */
    snprintf(first, sizeof first, "{'type': 'sgd', 'momentum': %.17g, 'nesterov': %s}", look_ahead ? 0 : beta,
             nesterov && beta > 0 ? "true" : "false");
    if (look_ahead)
      snprintf(second, sizeof second, "{'type': 'lookahead', 'at_zero': true, 'gamma': %.17g}", beta);
    else
      snprintf(second, sizeof second, "{'type': 'ef', 'form': '%s'}", form ? form : "");
    /* At delay 0 no correction is called, but for a look-ahead with at_zero. */
    if (look_ahead || (form && m.k > 0)) m.correction = second;
    if (look_ahead) m.rate = 1 / (1 - beta);
    expect_limit(&m, wanted, pl_json_number(pl_json_get(row, "a_max")));
    rows++;
  }
  pl_json_release(file);
  return rows;
}

static void plain(void **state) {
  (void)state;
  assert_int_equal(run_rows("none", false, NULL, false), 24);
}

static void hold(void **state) {
  (void)state;
  assert_int_equal(run_rows("ef_hold", false, "hold", false), 24);
}

static void block(void **state) {
  (void)state;
  assert_int_equal(run_rows("ef_block", false, "block", false), 24);
}

static void nesterov_form(void **state) {
  (void)state;
  assert_int_equal(run_rows("nag", true, NULL, false), 24);
}

/* Look-ahead around plain descent has Nesterov's polynomial with a (1 - gamma) for a. */
static void look_ahead(void **state) {
  (void)state;
  assert_int_equal(run_rows("nag", false, NULL, true), 24);
}

static void lambdas(void **state) {
  (void)state;
  pl_json *file = vectors();
  const pl_json *scan = pl_json_get(file, "ef_hold_lambda_scan");
  size_t count = 0;
  for (size_t i = 0; i < pl_json_size(scan); i++) {
    const pl_json *row = pl_json_at(scan, i), *limits = pl_json_get(row, "a_max_by_lambda");
    for (void *it = pl_json_iter(limits); it; it = pl_json_iter_next(limits, it)) {
      char optimizer[128], correction[128];
      method m = {.k = pl_json_int(pl_json_get(row, "k")), .rate = 1, .optimizer = optimizer, .correction = correction};
      snprintf(optimizer, sizeof optimizer, "{'type': 'sgd', 'momentum': %.17g}",
               pl_json_number(pl_json_get(row, "beta")));
      snprintf(correction, sizeof correction, "{'type': 'ef', 'form': 'hold', 'lambda': %s}", pl_json_iter_key(it));
      expect_limit(&m, "lambda scan", pl_json_number(pl_json_iter_value(it)));
      count++;
    }
  }
  assert_int_equal(count, 72);
  pl_json_release(file);
}

/* Another method's limit, or a wrong delay, is seen. */
static void wrong_limits_are_seen(void **state) {
  (void)state;
  const method heavy_ball = {.optimizer = "{'type': 'sgd', 'momentum': 0.9}", .k = 1, .rate = 1};
  const method feedback = {
      .optimizer = "{'type': 'sgd', 'momentum': 0.9}", .correction = "{'type': 'ef'}", .k = 1, .rate = 1};
  walk w;
  open_walk(&w, &heavy_ball);
  assert_int_equal(direction(&w, &heavy_ball, 0.99 * 0.2701562118716423), 1);
  assert_int_equal(direction(&w, &heavy_ball, 1.01 * 0.051249219725039326), -1);
  close_walk(&w, &heavy_ball);
  open_walk(&w, &feedback);
  assert_int_equal(direction(&w, &feedback, 1.01 * 0.1), -1);
  close_walk(&w, &feedback);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plain),
      cmocka_unit_test(hold),
      cmocka_unit_test(block),
      cmocka_unit_test(nesterov_form),
      cmocka_unit_test(look_ahead),
      cmocka_unit_test(lambdas),
      cmocka_unit_test(wrong_limits_are_seen),
  };
  if (sizeof(pl_real) == sizeof(float)) {
    puts("skipped: stability limits are judged in double");
    return 0;
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}
