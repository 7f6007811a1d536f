/* Every case of tests/vectors/delay_traces.json, through the real trainer, optimizers and corrections. The model is the
 * vectors' noisy matrix quadratic; it records the weights that it is validated at, x_t after every update. */
#include "tests/conform/train_rig.h"

#ifdef PL_F64
static const double tolerance = 1e-12, identity_tolerance = 1e-14;
#else
static const double tolerance = 1e-5, identity_tolerance = 1e-5;
#endif

enum { ROWS = 2, COLS = 3, SIZE = ROWS * COLS, STEPS = 24 };

static const double A[ROWS] = {1, 0.3}, B[COLS] = {1, 0.5, 0.2};
static const double target[SIZE] = {0.2, 0.1, -0.3, -0.4, 0.6, 0}, start[SIZE] = {0.5, -1, 0.25, 1.5, 0.75, -0.5};
/* 0.1 times these is the noise; the optimizer vectors have them as "grads". */
static double noise[4][SIZE];

typedef struct trace {
  double x[STEPS + 1][SIZE];
  size_t count;
} trace;

static trace recorded;
static const trace *instead; /* gradients of delay 1 are taken at this run's points, whatever the weights are */

struct pl_model {
  pl_device *device;
  pl_layout layout;
};

static void shape(const void *config, pl_model_shape *out) {
  (void)config;
  *out = (pl_model_shape){.layers = 1, .context = 1};
}

static pl_status create(const void *config, const pl_model_env *env, pl_model **out, pl_err *e) {
  (void)config;
  const pl_segment s = {.name = "w", .kind = PL_SEGMENT_MATRIX, .rows = ROWS, .cols = COLS, .decay = true};
  pl_status st = pl_alloc(1, sizeof **out, "test", out, e);
  if (st != PL_OK) return st;
  (*out)->device = env->device;
  return pl_layout_add(&(*out)->layout, &s, e);
}

static void destroy(pl_model *m) {
  if (m) pl_layout_free(&m->layout);
  pl_free(m);
}

static const pl_layout *layout(const pl_model *m, size_t stage) {
  (void)stage;
  return &m->layout;
}

static size_t tape_bytes(const pl_model *m, size_t stage) {
  (void)m;
  (void)stage;
  return SIZE * sizeof(pl_real);
}

static size_t boundary_size(const pl_model *m) {
  (void)m;
  return 0;
}

static void forward(pl_model *m, size_t stage, const pl_real *w, const pl_batch *b, const pl_real *in, pl_real *out,
                    void *tape) {
  pl_real x[SIZE];
  (void)stage;
  (void)in;
  (void)out;
  m->device->ops->copy(m->device, tape, w, sizeof x);
  m->device->ops->download(m->device, x, w, sizeof x);
  if (b->step >= 0) return;
  assert_true(recorded.count <= STEPS);
  for (size_t i = 0; i < SIZE; i++) recorded.x[recorded.count][i] = (double)x[i];
  recorded.count++;
}

static double slope(const pl_real *x, size_t i) { return A[i / COLS] * ((double)x[i] - target[i]) * B[i % COLS]; }

static double loss(pl_model *m, const pl_batch *b, void *tape) {
  pl_real x[SIZE];
  double sum = 0;
  m->device->ops->download(m->device, x, tape, sizeof x);
  for (size_t i = 0; i < SIZE; i++) sum += 0.5 * ((double)x[i] - target[i]) * slope(x, i);
  return sum * (double)b->sequences;
}

static void backward(pl_model *m, size_t stage, const pl_real *w, const pl_batch *b, const pl_real *in, void *tape,
                     const pl_real *dout, pl_real *din, pl_real *grad) {
  pl_real x[SIZE], g[SIZE];
  (void)stage;
  (void)in;
  (void)tape;
  (void)dout;
  (void)din;
  m->device->ops->download(m->device, x, w, sizeof x);
  m->device->ops->download(m->device, g, grad, sizeof g);
  for (size_t i = 0; i < SIZE && instead; i++) x[i] = (pl_real)instead->x[b->step > 0 ? b->step - 1 : 0][i];
  for (size_t i = 0; i < SIZE; i++)
    g[i] += (pl_real)(b->scale * (double)b->sequences * (slope(x, i) + 0.1 * noise[b->step % 4][i]));
  m->device->ops->upload(m->device, grad, g, sizeof g);
}

static const pl_param no_params[] = {{.type = PL_END}};
static const pl_model_type matrix = {
    .base = {.name = "matrix", .summary = "vectors' quadratic", .source = "gen_delay.py", .params = no_params},
    .shape = shape,
    .create = create,
    .destroy = destroy,
    .layout = layout,
    .tape_bytes = tape_bytes,
    .boundary_size = boundary_size,
    .forward = forward,
    .loss = loss,
    .backward = backward};
static const pl_component *const items[] = {&matrix.base};
static const pl_registry models = {.kind = "model", .items = items, .count = 1};

static void init(void *self, size_t stage, const pl_layout *l, pl_real *x) {
  (void)self;
  (void)stage;
  (void)l;
  for (size_t i = 0; i < SIZE; i++) x[i] = (pl_real)start[i];
}

static const char *optimizer_of(const char *name) {
  if (strncmp(name, "sgd_m0.9", 8) == 0) return "{'type': 'sgd', 'lr': 0.1, 'momentum': 0.9}";
  if (strncmp(name, "adamw", 5) == 0) return "{'type': 'adamw', 'lr': 0.05, 'beta1': 0.9, 'beta2': 0.95}";
  if (strncmp(name, "muon", 4) == 0)
    return "{'type': 'muon', 'lr': 0.05, 'scale': 'moonlight', 'momentum': 0.95, 'adamw.beta2': 0.95}";
  if (strncmp(name, "nag_lookahead", 13) == 0) return "{'type': 'sgd', 'lr': 1.0, 'momentum': 0}";
  return NULL;
}

static const char *correction_of(const char *name) {
  if (strstr(name, "lambda=0.5")) return "{'type': 'ef', 'form': 'hold', 'lambda': 0.5}";
  if (strstr(name, "init=zero")) return "{'type': 'ef', 'form': 'hold', 'init': 'zero'}";
  if (strstr(name, "ef_hold")) return "{'type': 'ef', 'form': 'hold'}";
  if (strstr(name, "ef_block")) return "{'type': 'ef', 'form': 'block'}";
  if (strstr(name, "nag_lookahead")) return "{'type': 'lookahead', 'gamma': 0.9, 'at_zero': true}";
  return "'none'";
}

/* Trains and leaves x_0 ... x_steps in `recorded`. */
static void train(const char *device, const char *optimizer, const char *correction, long k, int64_t steps,
                  bool with_decay) {
  char json[RIG_TEXT];
  rig r;
  snprintf(json, sizeof json,
           "{'model': 'matrix', 'data': 'none', 'optimizer': %s, 'correction': %s, 'delay': %ld, 'train': {'steps': "
           "%lld, 'batch_tokens': 1, 'val_every': 1, 'warmup': %d, 'clip': %g, 'weight_decay': %g, 'lr_schedule': "
           "'%s'}}",
           optimizer, correction, k, (long long)steps, with_decay ? 2 : 0, with_decay ? 0.5 : 0.0,
           with_decay ? 0.1 : 0.0, with_decay ? "cosine" : "constant");
  recorded = (trace){0};
  rig_open_on(&r, device, &models, json);
  r.args.init = init;
  rig_train(&r);
  assert_int_equal(r.outcome.steps, steps);
  /* One more where y is evaluated at the end. */
  assert_int_equal(recorded.count, steps + 1 + !isnan(r.outcome.val_loss_y));
  for (int64_t t = 1; t <= steps; t++) {
    double measured = r.points[t].values[PL_SERIES_delay];
    assert_true(measured == (double)(t - 1 < k ? t - 1 : k));
  }
  rig_close(&r);
}

static double error_of(const pl_json *matrix_json, const double *x) {
  double worst = 0;
  for (size_t i = 0; i < SIZE; i++)
    worst = fmax(worst, fabs(pl_json_number(pl_json_at(pl_json_at(matrix_json, i / COLS), i % COLS)) - x[i]));
  return worst;
}

static double run_case(const char *device, const char *name, const pl_json *steps) {
  const char *key = strncmp(name, "nag_lookahead", 13) == 0 ? "y_next(evaluation point)" : "x_next";
  long k = strtol(strstr(name, "|k=") + 3, NULL, 10);
  double worst = 0;
  train(device, optimizer_of(name), correction_of(name), k, (int64_t)pl_json_size(steps), strstr(name, "wd=0.1"));
  for (size_t t = 0; t < pl_json_size(steps); t++)
    worst = fmax(worst, error_of(pl_json_get(pl_json_at(steps, t), key), recorded.x[t + 1]));
  return worst;
}

/* Corrections that do not exist yet. */
static bool for_later(const char *name) {
  static const char *const later[] = {"spectrain_beta0.9_lr0.05|k=1", "spectrain_beta0.9_lr0.05|k=2",
                                      "dcasgd_lambda0.04_lr0.1|k=1", "dcasgd_a_lambda2_m0.95_lr0.1|k=1",
                                      "pipemare_lr0.2_K4_D0.135|k=2"};
  for (size_t i = 0; i < sizeof later / sizeof *later; i++)
    if (strcmp(name, later[i]) == 0) return true;
  return false;
}

static pl_json *vectors(void) {
  pl_json *file = NULL;
  pl_err e = {0};
  rig_must(pl_json_read(PL_TESTS "/vectors/delay_traces.json", &file, &e), &e);
  return file;
}

static void run_cases(const char *device) {
  pl_json *file = vectors();
  const pl_json *cases = pl_json_get(file, "cases");
  size_t run = 0, skipped = 0;
  for (void *it = pl_json_iter(cases); it; it = pl_json_iter_next(cases, it)) {
    const char *name = pl_json_iter_key(it);
    if (for_later(name)) {
      skipped++;
      continue;
    }
    assert_non_null(optimizer_of(name));
    double worst = run_case(device, name, pl_json_iter_value(it));
    if (!(worst <= tolerance)) fail_msg("%s on %s: error %g", name, device, worst);
    run++;
  }
  assert_int_equal(run, 41);
  assert_int_equal(skipped, 5);
  pl_json_release(file);
}

static void cases_on_cpu(void **state) {
  (void)state;
  run_cases("cpu");
}

static void cases_on_paranoid(void **state) {
  (void)state;
  run_cases("paranoid");
}

static void wrong_delay_is_seen(void **state) {
  (void)state;
  pl_json *file = vectors();
  const pl_json *steps = pl_json_get(pl_json_get(file, "cases"), "sgd_m0.9_lr0.1|k=2|none");
  assert_true(run_case("cpu", "sgd_m0.9_lr0.1|k=1|none", steps) > 1e-3);
  pl_json_release(file);
}

static void cosine_rates(void **state) {
  (void)state;
  pl_json *file = vectors();
  const pl_json *rates = pl_json_get(file, "cosine10_lrs");
  rig r;
  rig_open(&r, &models,
           "{'model': 'matrix', 'data': 'none', 'optimizer': {'type': 'sgd', 'lr': 0.05}, 'train': {'steps': 10, "
           "'batch_tokens': 1, 'warmup': 0.2, 'lr_schedule': 'cosine'}}");
  rig_train(&r);
  for (size_t t = 0; t < 10; t++) {
    double lr = r.points[t + 1].values[PL_SERIES_lr];
    assert_true(fabs(lr - pl_json_number(pl_json_at(rates, t))) < 1e-15);
  }
  rig_close(&r);
  pl_json_release(file);
}

static const char *const optimizers[] = {"sgd_m0.9", "adamw", "muon"};

static double distance(const trace *a, const trace *b, size_t shift, size_t count) {
  double worst = 0;
  for (size_t t = 0; t < count; t++)
    for (size_t i = 0; i < SIZE; i++) worst = fmax(worst, fabs(a->x[t][i] - b->x[t + shift][i]));
  return worst;
}

static void hold_is_block_at_delay_1(void **state) {
  (void)state;
  train("cpu", optimizer_of("sgd_m0.9"), "{'type': 'ef', 'form': 'hold'}", 1, 12, false);
  trace hold = recorded;
  train("cpu", optimizer_of("sgd_m0.9"), "{'type': 'ef', 'form': 'block'}", 1, 12, false);
  assert_true(distance(&hold, &recorded, 0, 13) <= identity_tolerance);
  train("cpu", optimizer_of("sgd_m0.9"), "{'type': 'ef', 'form': 'hold', 'lambda': 0.9}", 1, 12, false);
  assert_true(distance(&hold, &recorded, 0, 13) > 1e-3);
}

static void feedback_is_nesterov(void **state) {
  (void)state;
  train("cpu", optimizer_of("sgd_m0.9"), "{'type': 'ef', 'lambda': 0.9, 'init': 'zero'}", 1, 12, false);
  trace feedback = recorded;
  train("cpu", "{'type': 'sgd', 'lr': 0.1, 'momentum': 0.9, 'nesterov': true}", "'none'", 1, 12, false);
  assert_true(distance(&feedback, &recorded, 0, 13) <= identity_tolerance);
}

/* EF at delay 1 is plain delayed descent of y, y_{t+1} = y_t - u_t, with gradients taken at the extrapolation
 * x_t = y_t + (y_t - y_{t-1}). The plain run here gets its gradients at the EF run's points and starts at x_0, so its
 * y lacks the u_0 of init copy. */
static void feedback_is_extrapolation(void **state) {
  (void)state;
  for (size_t o = 0; o < 3; o++) {
    train("cpu", optimizer_of(optimizers[o]), "{'type': 'ef'}", 1, 12, false);
    const trace feedback = recorded;
    instead = &feedback;
    train("cpu", optimizer_of(optimizers[o]), "'none'", 1, 12, false);
    instead = NULL;
    for (size_t t = 1; t <= 12; t++)
      for (size_t i = 0; i < SIZE; i++) {
        const double u0 = recorded.x[0][i] - recorded.x[1][i], y = recorded.x[t][i] + u0;
        const double before = recorded.x[t - 1][i] + u0;
        assert_true(fabs(feedback.x[t][i] - (y + (y - before))) <= identity_tolerance);
      }
  }
}

/* Written out: batch t is evaluated at y_t, its displacement is applied k updates later. */
static void queue(size_t k, size_t updates, double y[STEPS + 1][SIZE]) {
  double buffer[SIZE] = {0};
  memcpy(y[0], start, sizeof start);
  for (size_t t = 0; t < updates + k; t++)
    for (size_t i = 0; i < SIZE; i++) {
      pl_real seen[SIZE] = {0};
      y[t + 1][i] = y[t][i];
      if (t < k) continue;
      seen[i] = (pl_real)y[t - k][i];
      buffer[i] = 0.9 * buffer[i] + slope(seen, i) + 0.1 * noise[(t - k) % 4][i];
      y[t + 1][i] -= 0.1 * buffer[i];
    }
}

static void queue_form_is_the_same(void **state) {
  (void)state;
  trace written = {0};
  train("cpu", optimizer_of("sgd_m0.9"), "'none'", 2, 8, false);
  queue(2, 8, written.x);
  assert_true(distance(&recorded, &written, 2, 9) <= identity_tolerance);
  queue(1, 8, written.x);
  assert_true(distance(&recorded, &written, 1, 9) > 1e-3);
}

/* y = x + lambda k u_last at the end of an EF run. */
static void y_is_beside_x(void **state) {
  (void)state;
  const long k[] = {1, 3};
  for (size_t i = 0; i < 2; i++) {
    train("cpu", optimizer_of("sgd_m0.9"), "{'type': 'ef', 'lambda': 0.5}", k[i], 2, false);
    /* v_0 = u_0 and v_1 = u_1 + lambda k (u_1 - u_0). */
    const double w = 0.5 * (double)k[i];
    double largest = 0;
    for (size_t j = 0; j < SIZE; j++) {
      const double u0 = recorded.x[0][j] - recorded.x[1][j], v1 = recorded.x[1][j] - recorded.x[2][j];
      const double u1 = (v1 + w * u0) / (1 + w);
      assert_true(fabs(recorded.x[3][j] - (recorded.x[2][j] + w * u1)) <= identity_tolerance);
      largest = fmax(largest, fabs(recorded.x[3][j] - recorded.x[2][j]));
    }
    assert_true(largest > 1e-2);
  }
}

static int read_noise(void **state) {
  pl_json *file = NULL;
  pl_err e = {0};
  (void)state;
  rig_must(pl_json_read(PL_TESTS "/vectors/sgd_momentum.json", &file, &e), &e);
  const pl_json *grads = pl_json_get(pl_json_get(file, "input"), "grads");
  assert_int_equal(pl_json_size(grads), 4);
  for (size_t t = 0; t < 4; t++)
    for (size_t i = 0; i < SIZE; i++)
      noise[t][i] = pl_json_number(pl_json_at(pl_json_at(pl_json_at(grads, t), i / COLS), i % COLS));
  pl_json_release(file);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cases_on_cpu),
      cmocka_unit_test(cases_on_paranoid),
      cmocka_unit_test(wrong_delay_is_seen),
      cmocka_unit_test(cosine_rates),
      cmocka_unit_test(hold_is_block_at_delay_1),
      cmocka_unit_test(feedback_is_nesterov),
      cmocka_unit_test(feedback_is_extrapolation),
      cmocka_unit_test(queue_form_is_the_same),
      cmocka_unit_test(y_is_beside_x),
  };
  return cmocka_run_group_tests(tests, read_noise, NULL);
}
