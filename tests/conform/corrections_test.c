/* Corrections against the delay traces and their identities; learning-rate schedules. */
#include "tests/conform/optim_rig.h"

enum { N = 6, MAX_K = 4, MAX_STEPS = 16 };

/* A correction at work. */
typedef struct fix {
  const pl_correction_type *type;
  _Alignas(16) unsigned char config[PL_SECTION_SIZE];
  pl_device *device;
  pl_real *v, *out, *state[MAX_K + 2]; /* device */
  int64_t k, calls;
} fix;

static void fix_open(fix *f, const pl_correction_type *type, const char *json, int64_t k) {
  pl_err e = {0};
  *f = (fix){.type = type, .k = k};
  rig_ok(pl_device_open("paranoid", PL_PRECISION_FP32, 1, &f->device, &e));
  rig_ok(rig_config(&type->base, json, f->config, &e));
  f->v = rig_array(f->device, N);
  f->out = rig_array(f->device, N);
  assert_true(type->state_arrays(f->config, k) <= MAX_K + 2);
  for (size_t i = 0; i < type->state_arrays(f->config, k); i++) {
    f->state[i] = rig_array(f->device, N);
    f->device->ops->zero(f->device, f->state[i], N * sizeof(pl_real));
  }
}

static void fix_close(fix *f) {
  f->device->ops->free(f->device, f->v);
  f->device->ops->free(f->device, f->out);
  for (size_t i = 0; i < f->type->state_arrays(f->config, f->k); i++) f->device->ops->free(f->device, f->state[i]);
  pl_device_close(f->device);
}

static pl_correction_call fix_call(const fix *f) {
  return (pl_correction_call){
      .device = f->device, .n = N, .k = f->k, .calls = f->calls, .state = (pl_real **)(uintptr_t)f->state, .v = f->v};
}

static void fix_displace(fix *f, const pl_real *u, pl_real *v) {
  pl_correction_call c = fix_call(f);
  f->device->ops->upload(f->device, f->v, u, N * sizeof *u);
  f->type->displace(f->config, &c);
  f->calls++;
  f->device->ops->download(f->device, v, f->v, N * sizeof *v);
}

static void fix_offset(const fix *f, pl_real *out) {
  pl_correction_call c = fix_call(f);
  f->type->offset(f->config, &c, f->out);
  f->device->ops->download(f->device, out, f->out, N * sizeof *out);
}

static pl_real made_up(size_t t, size_t i) { return (pl_real)(0.1 * sin((double)(t * t + 3 * t * i + i) + 0.5)); }

/* Learning rate of the trainer's convention: warm-up (t+1)/W, then the schedule's factor. */
static double learning_rate(const pl_lr_schedule_type *s, const void *config, double peak, int64_t t, int64_t warmup,
                            int64_t steps) {
  return peak * (t < warmup ? (double)(t + 1) / (double)warmup : s->factor(config, t, warmup, steps));
}

typedef struct trace_case {
  const char *name;
  const pl_optimizer_type *optimizer;
  const char *json;
  const pl_correction_type *correction; /* NULL: none */
  const char *correction_json;
  int64_t k;
  double lr;
  bool protocol;   /* weight decay 0.1, clip 0.5, cosine to 10% with 2 updates of warm-up */
  const char *key; /* of the weights in the trace */
} trace_case;

static const char moonlight[] = "{'adamw.lr': null}", adam[] = "{}", sgd[] = "{'momentum': 0.9}";
static const trace_case traces[] = {
#define PL_TRACES(name, optimizer, json, lr)                                                                           \
  {name "|k=1|none", optimizer, json, NULL, "", 1, lr, false, "x_next"},                                               \
      {name "|k=4|none", optimizer, json, NULL, "", 4, lr, false, "x_next"},                                           \
      {name "|k=1|ef_hold", optimizer, json, &pl_correction_ef, "{}", 1, lr, false, "x_next"},                         \
      {name "|k=2|ef_hold", optimizer, json, &pl_correction_ef, "{}", 2, lr, false, "x_next"},                         \
      {name "|k=4|ef_hold", optimizer, json, &pl_correction_ef, "{}", 4, lr, false, "x_next"},                         \
      {name "|k=1|ef_block", optimizer, json, &pl_correction_ef, "{'form': 'block'}", 1, lr, false, "x_next"},         \
      {name "|k=2|ef_block", optimizer, json, &pl_correction_ef, "{'form': 'block'}", 2, lr, false, "x_next"},         \
      {name "|k=4|ef_block", optimizer, json, &pl_correction_ef, "{'form': 'block'}", 4, lr, false, "x_next"},         \
      {name "|k=1|ef_hold|lambda=0.5", optimizer, json, &pl_correction_ef, "{'lambda': 0.5}", 1, lr, false, "x_next"}, \
  {                                                                                                                    \
    name "|k=1|ef_hold|init=zero", optimizer, json, &pl_correction_ef, "{'init': 'zero'}", 1, lr, false, "x_next"      \
  }
    PL_TRACES("sgd_m0.9_lr0.1", &pl_optimizer_sgd, sgd, 0.1),
    PL_TRACES("adamw_b0.9_0.95_lr0.05", &pl_optimizer_adamw, adam, 0.05),
    PL_TRACES("muon_moonlight_0.95_lr0.05", &pl_optimizer_muon, moonlight, 0.05),
#undef PL_TRACES
    {"adamw_b0.9_0.95_lr0.05|k=1|ef_hold|wd=0.1|clip=0.5|cosine10", &pl_optimizer_adamw, adam, &pl_correction_ef, "{}",
     1, 0.05, true, "x_next"},
    {"muon_moonlight_0.95_lr0.05|k=1|ef_hold|wd=0.1|clip=0.5|cosine10", &pl_optimizer_muon, moonlight,
     &pl_correction_ef, "{}", 1, 0.05, true, "x_next"},
    {"nag_lookahead_gamma0.9_lr1.0|k=1", &pl_optimizer_sgd, "{'momentum': 0}", &pl_correction_lookahead, "{}", 1, 1,
     false, "y_next(evaluation point)"},
    {"nag_lookahead_gamma0.9_lr1.0|k=2", &pl_optimizer_sgd, "{'momentum': 0}", &pl_correction_lookahead, "{}", 2, 1,
     false, "y_next(evaluation point)"},
    {"nag_lookahead_gamma0.9_lr1.0|k=0", &pl_optimizer_sgd, "{'momentum': 0}", &pl_correction_lookahead, "{}", 0, 1,
     false, "y_next(evaluation point)"},
};

/* A (W - Wstar) B + 0.1 G[t mod 4]. */
static void problem_gradient(size_t t, const double *w, double *g) {
  static const double a[2] = {1, 0.3}, b[3] = {1, 0.5, 0.2}, target[N] = {0.2, 0.1, -0.3, -0.4, 0.6, 0};
  static const double noise[4][N] = {{0.1, -0.2, 0.3, -0.4, 0.5, 0.6},
                                     {-0.3, 0.1, 0.2, 0.4, -0.1, 0.05},
                                     {0.25, 0.15, -0.35, -0.05, 0.45, -0.2},
                                     {-0.15, 0.05, 0.4, 0.2, -0.3, 0.1}};
  for (size_t i = 0; i < N; i++) g[i] = a[i / 3] * (w[i] - target[i]) * b[i % 3] + 0.1 * noise[t % 4][i];
}

static double clip_factor(const double *g, double limit) {
  double squares = 0;
  for (size_t i = 0; i < N; i++) squares += g[i] * g[i];
  return fmin(1, limit / (sqrt(squares) + 1e-6));
}

/* The update of docs/delay.md as a plain loop; the largest difference to the trace's weights. */
static double run_trace(const trace_case *c, const pl_json *trace) {
  static const pl_segment w = {.name = "w", .kind = PL_SEGMENT_MATRIX, .rows = 2, .cols = 3};
  double x[MAX_STEPS + 1][N] = {{0.5, -1.0, 0.25, 1.5, 0.75, -0.5}}, worst = 0;
  _Alignas(16) unsigned char cosine[PL_SECTION_SIZE];
  pl_err e = {0};
  int64_t steps = (int64_t)pl_json_size(trace);
  rig r;
  fix f = {0};
  assert_true(steps >= 6 && steps < MAX_STEPS);
  rig_ok(rig_config(&pl_lr_schedule_cosine.base, "{}", cosine, &e));
  rig_open(&r, "cpu", c->optimizer, c->json, &w, 1);
  if (c->correction) fix_open(&f, c->correction, c->correction_json, c->k);
  for (int64_t t = 0; t < steps; t++) {
    pl_real host[RIG_SIZE] = {0}, u[RIG_SIZE], next[N];
    double g[N], expected[N];
    double lr = c->protocol ? learning_rate(&pl_lr_schedule_cosine, cosine, c->lr, t, 2, steps) : c->lr;
    problem_gradient((size_t)t, x[t > c->k ? t - c->k : 0], g);
    double clip = c->protocol ? clip_factor(g, 0.5) : 1;
    for (size_t i = 0; i < N; i++) host[i] = (pl_real)(clip * g[i]);
    rig_step(&r, lr, host, u);
    if (c->correction) fix_displace(&f, u, u);
    for (size_t i = 0; i < N; i++) {
      x[t + 1][i] = (1 - (c->protocol ? lr * 0.1 : 0)) * x[t][i] - (double)u[i];
      next[i] = (pl_real)x[t + 1][i];
    }
    assert_int_equal(rig_matrix(pl_json_get(pl_json_at(trace, (size_t)t), c->key), expected), N);
    worst = fmax(worst, rig_largest_difference(next, expected, N));
  }
  rig_close(&r);
  if (c->correction) fix_close(&f);
  return worst;
}

static void check_delay_traces(void **state) {
  (void)state;
  pl_json *file = rig_vector("delay_traces");
  for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
    trace_case c = traces[i];
    const pl_json *trace = pl_json_get(pl_json_get(file, "cases"), c.name);
    assert_non_null(trace);
    double worst = run_trace(&c, trace);
    if (!(worst <= VECTOR_TOLERANCE)) fail_msg("%s: %g", c.name, worst);
    c.k++; /* the trace of one more update of delay is another one */
    assert_true(run_trace(&c, trace) > 4 * VECTOR_TOLERANCE);
  }
  pl_json_release(file);
}

static const char *const forms[] = {"{}",
                                    "{'form': 'block'}",
                                    "{'init': 'zero'}",
                                    "{'form': 'block', 'init': 'zero'}",
                                    "{'lambda': 0.7}",
                                    "{'lambda': 0.7, 'form': 'block'}"};
enum { FORMS = sizeof forms / sizeof *forms };

/* Error feedback written out (docs/delay.md). */
static double ef_by_hand(const pl_real u[][N], int64_t t, size_t i, int64_t k, double lambda, bool block, bool zero) {
  int64_t old = t - (block ? k : 1);
  double last = old >= 0 ? (double)u[old][i] : zero ? 0 : (double)u[0][i];
  return (double)u[t][i] + lambda * (block ? 1 : (double)k) * ((double)u[t][i] - last);
}

static void check_ef_follows_its_formula(void **state) {
  (void)state;
  for (size_t form = 0; form < FORMS; form++)
    for (int64_t k = 1; k <= MAX_K; k++) {
      fix f;
      pl_real u[MAX_STEPS][N], v[N];
      double lambda = form >= 4 ? 0.7 : 1;
      bool block = form % 2 == 1, zero = form == 2 || form == 3;
      fix_open(&f, &pl_correction_ef, forms[form], k);
      for (int64_t t = 0; t < MAX_STEPS; t++) {
        for (size_t i = 0; i < N; i++) u[t][i] = made_up((size_t)t, i);
        fix_displace(&f, u[t], v);
        for (size_t i = 0; i < N; i++) {
          double expected = ef_by_hand((const pl_real(*)[N])u, t, i, k, lambda, block, zero);
          assert_true(fabs((double)v[i] - expected) <= 4 * REAL_EPS);
          if (t == 0 && !zero) assert_true(fabs((double)(v[i] - u[0][i])) <= REAL_EPS);
        }
      }
      fix_close(&f);
    }
}

/* y = x + offset follows y_{t+1} = y_t - u_t, so the corrected sum never drifts from the plain one. */
static void check_offset_telescopes(void **state) {
  (void)state;
  for (size_t form = 0; form < FORMS; form++)
    for (int64_t k = 1; k <= MAX_K; k++) {
      fix f;
      double x[N] = {0}, y[N] = {0}, largest = 0;
      fix_open(&f, &pl_correction_ef, forms[form], k);
      for (size_t t = 0; t < 12; t++) {
        pl_real u[N], v[N], offset[N];
        fix_offset(&f, offset);
        for (size_t i = 0; i < N && t == 0; i++) assert_true(offset[i] == 0);
        for (size_t i = 0; i < N; i++) u[i] = made_up(t, i);
        fix_displace(&f, u, v);
        fix_offset(&f, offset);
        for (size_t i = 0; i < N; i++) {
          x[i] -= (double)v[i];
          double before = y[i];
          y[i] = x[i] + (double)offset[i];
          if (t > 0) assert_true(fabs(y[i] - (before - (double)u[i])) <= 40 * REAL_EPS);
          largest = fmax(largest, fabs(x[i] - y[i]));
        }
      }
      assert_true(largest > 0.01); /* x itself is another point */
      fix_close(&f);
    }
}

static void check_lambda_zero_is_the_identity(void **state) {
  (void)state;
  for (size_t block = 0; block < 2; block++) {
    fix f;
    pl_real u[N], v[N];
    fix_open(&f, &pl_correction_ef, block ? "{'lambda': 0, 'form': 'block'}" : "{'lambda': 0}", 3);
    for (size_t t = 0; t < 8; t++) {
      for (size_t i = 0; i < N; i++) u[i] = i == 0 ? -(pl_real)0 : made_up(t, i);
      fix_displace(&f, u, v);
      assert_memory_equal(u, v, sizeof u);
    }
    fix_close(&f);
  }
  fix f;
  pl_real u[N], v[N];
  fix_open(&f, &pl_correction_lookahead, "{'gamma': 0}", 3);
  for (size_t t = 0; t < 4; t++) {
    for (size_t i = 0; i < N; i++) u[i] = made_up(t, i);
    fix_displace(&f, u, v);
    assert_memory_equal(u, v, sizeof u);
  }
  fix_close(&f);
}

/* A constant displacement is its own prediction: ef leaves it, look-ahead comes to it. */
static void check_constant_displacements_stay(void **state) {
  (void)state;
  static const struct {
    const pl_correction_type *type;
    const char *json;
  } cases[] = {{&pl_correction_ef, "{}"}, {&pl_correction_ef, "{'form': 'block'}"}, {&pl_correction_lookahead, "{}"}};
  for (size_t c = 0; c < 3; c++) {
    fix f;
    pl_real u[N] = {1, -2, 3, (pl_real)0.5, 0, 7}, v[N];
    fix_open(&f, cases[c].type, cases[c].json, 2);
    for (size_t t = 0; t < 400; t++) fix_displace(&f, u, v); /* 0.9^400 is 5e-19 */
    for (size_t i = 0; i < N; i++) assert_true(fabs((double)(v[i] - u[i])) <= 60 * REAL_EPS * fabs((double)u[i]));
    fix_close(&f);
  }
}

/* Heavy ball with ef(lambda = beta, zero init) is Nesterov's momentum at delay 1. */
static void check_ef_on_heavy_ball_is_nesterov(void **state) {
  (void)state;
  static const pl_segment w = {.name = "w", .kind = PL_SEGMENT_MATRIX, .rows = 2, .cols = 3};
  rig ball, nesterov;
  fix f;
  rig_open(&ball, "cpu", &pl_optimizer_sgd, "{'momentum': 0.9}", &w, 1);
  rig_open(&nesterov, "cpu", &pl_optimizer_sgd, "{'momentum': 0.9, 'nesterov': true}", &w, 1);
  fix_open(&f, &pl_correction_ef, "{'lambda': 0.9, 'init': 'zero'}", 1);
  for (size_t t = 0; t < 8; t++) {
    pl_real g[RIG_SIZE] = {0}, u[RIG_SIZE], v[RIG_SIZE];
    for (size_t i = 0; i < N; i++) g[i] = made_up(t, i);
    rig_step(&ball, 0.1, g, u);
    rig_step(&nesterov, 0.1, g, v);
    fix_displace(&f, u, u);
    for (size_t i = 0; i < N; i++) assert_true(fabs((double)(u[i] - v[i])) <= REAL_EPS);
  }
  rig_close(&ball);
  rig_close(&nesterov);
  fix_close(&f);
}

static void check_every_correction(void **state) {
  (void)state;
  assert_true(pl_corrections.count >= 2);
  for (size_t c = 0; c < pl_corrections.count; c++) {
    const pl_correction_type *type = (const pl_correction_type *)pl_corrections.items[c];
    pl_real first[8][N];
    for (size_t round = 0; round < 2; round++) {
      fix f;
      fix_open(&f, type, "{}", 3);
      assert_false(type->at_zero && type->at_zero(f.config));
      for (size_t t = 0; t < 8; t++) {
        pl_real u[N], v[N];
        for (size_t i = 0; i < N; i++) u[i] = made_up(t, i);
        fix_displace(&f, u, v);
        if (round == 0) memcpy(first[t], v, sizeof v);
        assert_memory_equal(first[t], v, sizeof v);
        for (size_t i = 0; i < N; i++) assert_true(isfinite(v[i]));
      }
      fix_close(&f);
    }
    fix zero;
    pl_real u[N] = {0}, v[N];
    fix_open(&zero, type, "{}", 3);
    for (size_t t = 0; t < 5; t++) {
      fix_displace(&zero, u, v);
      for (size_t i = 0; i < N; i++) assert_true(v[i] == 0);
    }
    fix_close(&zero);
  }
}

static double factor(const pl_lr_schedule_type *s, const char *json, int64_t t, int64_t warmup, int64_t steps) {
  _Alignas(16) unsigned char config[PL_SECTION_SIZE];
  pl_err e = {0};
  rig_ok(rig_config(&s->base, json, config, &e));
  return s->factor(config, t, warmup, steps);
}

static void assert_near(double got, double expected) { assert_true(fabs(got - expected) <= 1e-14); }

static void check_lr_schedules(void **state) {
  (void)state;
  pl_json *file = rig_vector("delay_traces");
  const pl_json *lrs = pl_json_get(file, "cosine10_lrs");
  _Alignas(16) unsigned char config[PL_SECTION_SIZE];
  pl_err e = {0};
  rig_ok(rig_config(&pl_lr_schedule_cosine.base, "{}", config, &e));
  assert_int_equal(pl_json_size(lrs), 10);
  for (int64_t t = 0; t < 10; t++)
    assert_near(learning_rate(&pl_lr_schedule_cosine, config, 0.05, t, 2, 10),
                pl_json_number(pl_json_at(lrs, (size_t)t)));
  pl_json_release(file);
  assert_near(factor(&pl_lr_schedule_cosine, "{'min': 0.2}", 50, 0, 100), 0.6);
  assert_near(factor(&pl_lr_schedule_constant, "{}", 99, 10, 100), 1);
  assert_near(factor(&pl_lr_schedule_linear, "{}", 20, 20, 100), 1);
  assert_near(factor(&pl_lr_schedule_linear, "{}", 60, 20, 100), 0.5);
  assert_near(factor(&pl_lr_schedule_linear, "{'min': 0.1}", 99, 0, 100), 0.109);
  assert_near(factor(&pl_lr_schedule_wsd, "{}", 10, 10, 100), 1);
  assert_near(factor(&pl_lr_schedule_wsd, "{}", 80, 10, 100), 1);
  assert_near(factor(&pl_lr_schedule_wsd, "{}", 90, 10, 100), 0.5);
  assert_near(factor(&pl_lr_schedule_wsd, "{'min': 0.2, 'decay': 0.4}", 80, 10, 100), 0.6);
  assert_near(factor(&pl_lr_schedule_wsd, "{'decay': 0}", 99, 10, 100), 1);
  assert_near(factor(&pl_lr_schedule_wsd, "{'decay': 1}", 50, 50, 100), 1); /* never above the warm-up's end */
}

/* Between warm-up and end every schedule starts at 1 and never rises. */
static void check_every_lr_schedule(void **state) {
  (void)state;
  assert_true(pl_lr_schedules.count >= 4);
  for (size_t i = 0; i < pl_lr_schedules.count; i++) {
    const pl_lr_schedule_type *s = (const pl_lr_schedule_type *)pl_lr_schedules.items[i];
    double last = factor(s, "{}", 7, 7, 50);
    assert_near(last, 1);
    for (int64_t t = 8; t < 50; t++) {
      double now = factor(s, "{}", t, 7, 50);
      assert_true(now > 0 && now <= last);
      last = now;
    }
    assert_near(factor(s, "{}", 0, 0, 1), 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(check_delay_traces),
      cmocka_unit_test(check_ef_follows_its_formula),
      cmocka_unit_test(check_offset_telescopes),
      cmocka_unit_test(check_lambda_zero_is_the_identity),
      cmocka_unit_test(check_constant_displacements_stay),
      cmocka_unit_test(check_ef_on_heavy_ball_is_nesterov),
      cmocka_unit_test(check_every_correction),
      cmocka_unit_test(check_lr_schedules),
      cmocka_unit_test(check_every_lr_schedule),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
