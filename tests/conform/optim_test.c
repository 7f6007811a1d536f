/* Optimizers: published vectors, known pitfalls, and what every registered one must keep. */
#include "tests/conform/optim_rig.h"

#include "optim/parts/muon_scale.h"
#include "optim/parts/newton_schulz.h"

typedef struct vector_case {
  const char *file;
  const pl_optimizer_type *type;
  const char *json, *state[2];
  bool l2; /* decay goes into the gradient */
} vector_case;

static const vector_case vector_cases[] = {
    {"adamw", &pl_optimizer_adamw, "{'beta1': 0.9, 'beta2': 0.95, 'eps': 1e-8}", {"exp_avg", "exp_avg_sq"}, false},
    {"sgd_momentum", &pl_optimizer_sgd, "{'momentum': 0.9}", {"momentum_buffer"}, true},
    {"sgd_momentum_dampening_wd", &pl_optimizer_sgd, "{'momentum': 0.9, 'dampening': 0.1}", {"momentum_buffer"}, true},
    {"sgd_nesterov", &pl_optimizer_sgd, "{'momentum': 0.9, 'nesterov': true}", {"momentum_buffer"}, true},
    {"muon_moonlight", &pl_optimizer_muon, "{'momentum': 0.95}", {"momentum_buffer"}, false},
    {"muon_keller", &pl_optimizer_muon, "{'scale': 'keller'}", {"momentum_buffer"}, false},
    {"muon_torch_original", &pl_optimizer_muon, "{'scale': 'torch'}", {"momentum_buffer"}, false},
    {"muon_torch_match_rms_adamw", &pl_optimizer_muon, "{'scale': 'torch_match_rms'}", {"momentum_buffer"}, false},
};

static const pl_segment matrix_2x3 = {.name = "w", .kind = PL_SEGMENT_MATRIX, .rows = 2, .cols = 3};

/* Runs a case with the gradients times `spoil`; the largest difference to the vector, in weights and state. */
static double run_vector(const vector_case *c, const char *device, double spoil) {
  pl_json *file = rig_vector(c->file);
  const pl_json *input = pl_json_get(file, "input"), *hyper = pl_json_get(file, "hyper");
  const pl_json *grads = pl_json_get(input, "grads"), *trace = pl_json_get(file, "trace");
  double lr = pl_json_get_number(hyper, "lr", 0), decay = pl_json_get_number(hyper, "weight_decay", 0), worst = 0;
  double x[6], grad[6], expected[6];
  assert_int_equal(rig_matrix(pl_json_get(input, "W0"), x), 6);
  assert_true(pl_json_size(trace) >= 3);
  rig r;
  rig_open(&r, device, c->type, c->json, &matrix_2x3, 1);
  for (size_t t = 0; t < pl_json_size(trace); t++) {
    pl_real g[RIG_SIZE] = {0}, u[RIG_SIZE], got[RIG_SIZE];
    rig_matrix(pl_json_at(grads, t), grad);
    for (size_t i = 0; i < 6; i++) g[i] = (pl_real)(spoil * grad[i] + (c->l2 ? decay * x[i] : 0));
    rig_step(&r, lr, g, u);
    for (size_t i = 0; i < 6; i++) {
      x[i] = (c->l2 ? 1 : 1 - lr * decay) * x[i] - (double)u[i];
      got[i] = (pl_real)x[i];
    }
    const pl_json *point = pl_json_at(trace, t);
    rig_matrix(pl_json_get(point, "param"), expected);
    worst = fmax(worst, rig_largest_difference(got, expected, 6));
    for (size_t s = 0; s < 2 && c->state[s]; s++) {
      assert_int_equal(rig_matrix(pl_json_get(pl_json_get(point, "state"), c->state[s]), expected), 6);
      rig_download(&r, r.state[s], got);
      worst = fmax(worst, rig_largest_difference(got, expected, 6));
    }
  }
  assert_false(r.touched);
  rig_close(&r);
  pl_json_release(file);
  return worst;
}

static void check_vectors(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof vector_cases / sizeof *vector_cases; i++)
    for (size_t d = 0; d < 2; d++) {
      const vector_case *c = &vector_cases[i];
      double worst = run_vector(c, rig_devices[d], 1);
      if (!(worst <= VECTOR_TOLERANCE)) fail_msg("%s on %s: %g", c->file, rig_devices[d], worst);
      assert_true(run_vector(c, rig_devices[d], 1.01) > 10 * VECTOR_TOLERANCE);
    }
}

/* Normalised as Keller's Muon, in the working precision; the result is copied to out. */
static void orthogonalise(const char *device, pl_precision precision, size_t rows, size_t cols, size_t steps,
                          const double *m, double *out) {
  pl_err e = {0};
  pl_device *d;
  size_t n = rows * cols;
  pl_real host[64];
  double norm = 0;
  assert_true(n <= 64);
  rig_ok(pl_device_open(device, precision, 1, &d, &e));
  for (size_t i = 0; i < n; i++) norm += m[i] * m[i];
  for (size_t i = 0; i < n; i++) host[i] = (pl_real)(m[i] / pl_muon_normaliser(PL_MUON_KELLER, sqrt(norm)));
  pl_real *x = rig_array(d, n), *scratch = rig_array(d, pl_newton_schulz_scratch(rows, cols));
  d->ops->upload(d, x, host, n * sizeof *x);
  d->ops->download(d, host, pl_newton_schulz(d, rows, cols, steps, x, scratch), n * sizeof *x);
  for (size_t i = 0; i < n; i++) out[i] = (double)host[i];
  d->ops->free(d, x);
  d->ops->free(d, scratch);
  pl_device_close(d);
}

static double ns_difference(const pl_json *file, pl_precision precision, const char *input, const char *output,
                            size_t rows, size_t steps) {
  double m[6], expected[6], got[6], worst = 0;
  rig_matrix(pl_json_get(file, input), m);
  assert_int_equal(rig_matrix(pl_json_get(file, output), expected), 6);
  for (size_t d = 0; d < 2; d++) {
    orthogonalise(rig_devices[d], precision, rows, 6 / rows, steps, m, got);
    for (size_t i = 0; i < 6; i++) worst = fmax(worst, fabs(got[i] - expected[i]));
  }
  return worst;
}

static void check_newton_schulz_vectors(void **state) {
  (void)state;
  pl_json *file = rig_vector("newton_schulz");
  assert_true(ns_difference(file, PL_PRECISION_FP32, "input_2x3", "ns5_2x3_float64", 2, 5) <= NS_TOLERANCE);
  assert_true(ns_difference(file, PL_PRECISION_FP32, "input_3x2", "ns5_3x2_float64", 3, 5) <= NS_TOLERANCE);
  assert_true(ns_difference(file, PL_PRECISION_FP32, "input_2x3", "ns_steps_1", 2, 1) <= NS_TOLERANCE);
  assert_true(ns_difference(file, PL_PRECISION_FP32, "input_2x3", "ns5_2x3_float64", 2, 4) > 1e-2);
  const pl_json *map = pl_json_get(file, "scalar_map_5_steps");
  for (void *it = pl_json_iter(map); it; it = pl_json_iter_next(map, it)) {
    /* diag(s, sqrt(1 - s^2)) has norm 1, so its singular values go in unscaled but for 1e-7. */
    double s;
    assert_true(pl_parse_real(pl_json_iter_key(it), &s));
    double m[4] = {s, 0, 0, sqrt(1 - s * s)}, got[4];
    orthogonalise("cpu", PL_PRECISION_FP32, 2, 2, 5, m, got);
    assert_true(fabs(got[0] - pl_json_number(pl_json_iter_value(it))) <= 1e-4);
    assert_true(fabs(got[1]) <= NS_TOLERANCE);
  }
  pl_json_release(file);
}

/* The published tolerance of the form in bf16; there is none for a tall matrix, which gets twice as much. */
static void check_newton_schulz_bf16(void **state) {
  (void)state;
  pl_device *d = NULL;
  pl_err e = {0};
  if (pl_device_open("cpu", PL_PRECISION_BF16, 1, &d, &e) != PL_OK) skip();
  pl_device_close(d);
  pl_json *file = rig_vector("newton_schulz");
  const double wide = ns_difference(file, PL_PRECISION_BF16, "input_2x3", "ns5_2x3_float64", 2, 5);
  const double tall = ns_difference(file, PL_PRECISION_BF16, "input_3x2", "ns5_3x2_float64", 3, 5);
  if (wide > 3e-2 || tall > 6e-2) fail_msg("off by %g (wide), %g (tall)", wide, tall);
  assert_true(wide > 1e-4); /* it is in bf16 */
  pl_json_release(file);
}

static void check_newton_schulz_transposes(void **state) {
  (void)state;
  enum { R = 7, C = 3 };
  double m[R * C], transposed[R * C], tall[R * C], wide[R * C], zero[R * C] = {0};
  for (size_t i = 0; i < R; i++)
    for (size_t j = 0; j < C; j++) {
      m[i * C + j] = sin((double)(3 * i + 5 * j * j) + 0.3);
      transposed[j * R + i] = m[i * C + j];
    }
  orthogonalise("paranoid", PL_PRECISION_FP32, R, C, 5, m, tall);
  orthogonalise("paranoid", PL_PRECISION_FP32, C, R, 5, transposed, wide);
  for (size_t i = 0; i < R; i++)
    for (size_t j = 0; j < C; j++) assert_true(fabs(tall[i * C + j] - wide[j * R + i]) <= NS_TOLERANCE);
  orthogonalise("paranoid", PL_PRECISION_FP32, R, C, 5, zero, tall);
  for (size_t i = 0; i < R * C; i++) assert_true(tall[i] == 0);
}

static void check_muon_scales(void **state) {
  (void)state;
  static const struct {
    size_t rows, cols;
    double keller, moonlight;
  } shapes[] = {{3072, 768, 2.000, 11.085}, {768, 3072, 1.000, 11.085}, {768, 768, 1.000, 5.543}};
  for (size_t i = 0; i < 3; i++) {
    size_t r = shapes[i].rows, c = shapes[i].cols;
    assert_true(fabs(pl_muon_scale(PL_MUON_KELLER, r, c) - shapes[i].keller) < 5e-4);
    assert_true(fabs(pl_muon_scale(PL_MUON_TORCH, r, c) - shapes[i].keller) < 5e-4);
    assert_true(fabs(pl_muon_scale(PL_MUON_MOONLIGHT, r, c) - shapes[i].moonlight) < 5e-4);
    assert_true(fabs(pl_muon_scale(PL_MUON_TORCH_MATCH_RMS, r, c) - shapes[i].moonlight) < 5e-4);
  }
}

/* u of step `steps` of a made-up gradient sequence of that size. */
static void run_u(const pl_optimizer_type *type, const char *json, const pl_segment *s, size_t count, size_t steps,
                  double size, pl_real *u) {
  rig r;
  rig_open(&r, "paranoid", type, json, s, count);
  for (size_t t = 0; t < steps; t++) {
    pl_real g[RIG_SIZE] = {0};
    for (size_t k = 0; k < count; k++) {
      const pl_segment *made = &r.layout.segments[k];
      for (size_t i = 0; i < made->rows * made->cols; i++)
        g[made->offset + i] = (pl_real)(size * sin((double)(i * i + 7 * i + 31 * t) + 10 * (double)s[k].init_mean));
    }
    rig_step(&r, 1, g, u);
  }
  rig_close(&r);
}

static double largest_between(const pl_real *a, const pl_real *b, size_t n) {
  double largest = 0;
  for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs((double)a[i] - (double)b[i]));
  return largest;
}

static void check_muon_buffers_and_normalisers(void **state) {
  (void)state;
  pl_real sum[RIG_SIZE], ema[RIG_SIZE], plain[RIG_SIZE], keller[RIG_SIZE], torch[RIG_SIZE];
  run_u(&pl_optimizer_muon, "{'scale': 'moonlight'}", &matrix_2x3, 1, 3, 1, sum);
  run_u(&pl_optimizer_muon, "{'scale': 'torch_match_rms'}", &matrix_2x3, 1, 3, 1, ema);
  run_u(&pl_optimizer_muon, "{'scale': 'torch_match_rms', 'nesterov': false}", &matrix_2x3, 1, 3, 1, plain);
  assert_true(largest_between(sum, ema, 6) < 1e-5);
  assert_true(largest_between(sum, plain, 6) > 1e-2);
  /* At norms far below 1e-7 the two normalisers differ by their eps alone: 1/(norm + 1e-7) against 1/1e-7. */
  run_u(&pl_optimizer_muon, "{'scale': 'keller'}", &matrix_2x3, 1, 1, 1e-6, keller);
  run_u(&pl_optimizer_muon, "{'scale': 'torch'}", &matrix_2x3, 1, 1, 1e-6, torch);
  assert_true(largest_between(keller, torch, 6) > 1e-2);
}

static void check_adamw_eps_is_outside_the_correction(void **state) {
  (void)state;
  rig r;
  pl_real g[RIG_SIZE] = {(pl_real)1e-8}, u[RIG_SIZE];
  rig_open(&r, "cpu", &pl_optimizer_adamw, "{'beta2': 0.999, 'eps': 1e-8}", &matrix_2x3, 1);
  rig_step(&r, 1, g, u);
  /* Scaling eps by the correction gives 0.0307, eps inside the root 0.0001. */
  assert_true(fabs((double)u[0] - 0.5) < 1e-4);
  assert_true(u[1] == 0);
  rig_close(&r);
}

/* Grouped queries: 5 x 3 elements do not fill whole lines, so the segments have gaps between them. */
static const pl_segment projections[] = {
    {.name = "layers.0.attention.q", .kind = PL_SEGMENT_MATRIX, .rows = 5, .cols = 3, .init_mean = 1},
    {.name = "layers.0.attention.k", .kind = PL_SEGMENT_MATRIX, .rows = 2, .cols = 3, .init_mean = 2},
    {.name = "layers.0.attention.v", .kind = PL_SEGMENT_MATRIX, .rows = 2, .cols = 3, .init_mean = 3},
};

static void check_fused_projections_equal_the_stacked_matrix(void **state) {
  (void)state;
  const pl_segment stacked = {.name = "w", .kind = PL_SEGMENT_MATRIX, .rows = 9, .cols = 3};
  rig fused, one, apart;
  rig_open(&fused, "paranoid", &pl_optimizer_muon, "{'qkv': 'fused', 'scale': 'keller'}", projections, 3);
  rig_open(&apart, "paranoid", &pl_optimizer_muon, "{'scale': 'keller'}", projections, 3);
  rig_open(&one, "paranoid", &pl_optimizer_muon, "{'scale': 'keller'}", &stacked, 1);
  assert_true(fused.layout.segments[1].offset > 15);
  for (size_t t = 0; t < 3; t++) {
    pl_real g[RIG_SIZE] = {0}, whole[RIG_SIZE] = {0}, u[RIG_SIZE], v[RIG_SIZE], w[RIG_SIZE];
    size_t at = 0;
    for (size_t k = 0; k < 3; k++) {
      const pl_segment *s = &fused.layout.segments[k];
      for (size_t i = 0; i < s->rows * s->cols; i++, at++)
        whole[at] = g[s->offset + i] = (pl_real)((k == 0 ? 1 : 0.01) * sin((double)(at * at + 13 * t)));
    }
    rig_step(&fused, 0.1, g, u);
    rig_step(&one, 0.1, whole, v);
    rig_step(&apart, 0.1, g, w);
    double key = 0, apart_key = 0;
    at = 0;
    for (size_t k = 0; k < 3; k++) {
      const pl_segment *s = &fused.layout.segments[k];
      for (size_t i = 0; i < s->rows * s->cols; i++, at++) {
        assert_true(fabs((double)u[s->offset + i] - (double)v[at]) <= NS_TOLERANCE);
        if (k == 1) key = fmax(key, fabs((double)u[s->offset + i]));
        if (k == 1) apart_key = fmax(apart_key, fabs((double)w[s->offset + i]));
      }
    }
    /* Fused, the query projection with its larger gradient takes nearly the whole update. */
    assert_true(key < 0.2 * apart_key);
  }
  rig_close(&fused);
  rig_close(&one);
  rig_close(&apart);
}

static void check_only_projections_of_one_layer_fuse(void **state) {
  (void)state;
  pl_segment other[3];
  pl_real fused[RIG_SIZE] = {0}, apart[RIG_SIZE] = {0};
  memcpy(other, projections, sizeof other);
  strcpy(other[1].name, "layers.1.attention.k");
  run_u(&pl_optimizer_muon, "{'qkv': 'fused'}", other, 3, 2, 1, fused);
  run_u(&pl_optimizer_muon, "{'qkv': 'apart'}", other, 3, 2, 1, apart);
  assert_true(largest_between(fused, apart, RIG_SIZE) == 0);
  run_u(&pl_optimizer_muon, "{'qkv': 'fused'}", projections, 3, 2, 1, fused);
  assert_true(largest_between(fused, apart, RIG_SIZE) > 1e-3);
}

static void check_muon_assigns_by_kind(void **state) {
  (void)state;
  pl_err e = {0};
  _Alignas(16) unsigned char config[PL_SECTION_SIZE];
  const pl_optimizer_type *m = &pl_optimizer_muon;
  rig_ok(rig_config(&m->base, "{'lr': 0.02, 'adamw.lr': 0.005}", config, &e));
  for (int kind = PL_SEGMENT_MATRIX; kind <= PL_SEGMENT_POINT; kind++)
    for (size_t rows = 256; rows <= 50304; rows += 50304 - 256) {
      pl_segment s = {.kind = (pl_segment_kind)kind, .rows = rows, .cols = 64};
      bool matrix = kind == PL_SEGMENT_MATRIX;
      assert_string_equal(m->rule(config, &s), matrix ? "muon" : "adamw");
      assert_true(fabs(m->lr_scale(config, &s) - (matrix ? 1 : 0.25)) < 1e-15);
    }
  pl_segment head = {.name = "head", .kind = PL_SEGMENT_HEAD, .rows = 4, .cols = 3};
  pl_real plain[RIG_SIZE], scaled[RIG_SIZE], adamw[RIG_SIZE];
  run_u(m, "{'lr': 1}", &head, 1, 3, 1, plain);
  run_u(m, "{'lr': 1, 'adamw.lr': 0.25}", &head, 1, 3, 1, scaled);
  run_u(&pl_optimizer_adamw, "{}", &head, 1, 3, 1, adamw);
  for (size_t i = 0; i < 12; i++) {
    assert_true(plain[i] == adamw[i]);
    assert_true(fabs((double)scaled[i] - 0.25 * (double)plain[i]) <= 4 * REAL_EPS);
  }
  assert_int_equal(rig_config(&m->base, "{'lr': 0, 'adamw.lr': 0.1}", config, &e), PL_BAD);
  assert_non_null(strstr(e.text, "adamw.lr"));
}

static void check_sgd_options(void **state) {
  (void)state;
  pl_err e = {0};
  _Alignas(16) unsigned char config[PL_SECTION_SIZE];
  rig_ok(rig_config(&pl_optimizer_sgd.base, "{'momentum': 0}", config, &e));
  assert_int_equal(rig_config(&pl_optimizer_sgd.base, "{'momentum': 0, 'nesterov': true}", config, &e), PL_BAD);
  assert_non_null(strstr(e.text, "momentum"));
  e = (pl_err){0};
  assert_int_equal(rig_config(&pl_optimizer_sgd.base, "{'dampening': 0.5, 'nesterov': true}", config, &e), PL_BAD);
  assert_non_null(strstr(e.text, "dampening"));
  rig r;
  pl_real g[RIG_SIZE] = {(pl_real)0.5, -2, 3}, u[RIG_SIZE];
  rig_open(&r, "cpu", &pl_optimizer_sgd, "{'momentum': 0}", &matrix_2x3, 1);
  for (size_t t = 0; t < 3; t++) {
    rig_step(&r, 0.25, g, u);
    for (size_t i = 0; i < 6; i++) assert_true(u[i] == (pl_real)0.25 * g[i]);
  }
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(check_vectors),
      cmocka_unit_test(check_newton_schulz_vectors),
      cmocka_unit_test(check_newton_schulz_bf16),
      cmocka_unit_test(check_newton_schulz_transposes),
      cmocka_unit_test(check_muon_scales),
      cmocka_unit_test(check_muon_buffers_and_normalisers),
      cmocka_unit_test(check_adamw_eps_is_outside_the_correction),
      cmocka_unit_test(check_fused_projections_equal_the_stacked_matrix),
      cmocka_unit_test(check_only_projections_of_one_layer_fuse),
      cmocka_unit_test(check_muon_assigns_by_kind),
      cmocka_unit_test(check_sgd_options),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
