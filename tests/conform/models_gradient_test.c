/* Gradients of every model against finite differences of its loss, segment by segment. In double at rounding's limit;
 * in float coarsely, along the gradient itself. */
#include "tests/conform/models_rig.h"

static const model_case cases[] = {
    {&pl_model_transformer, "{\"layers\": 2, \"d_model\": 12, \"heads\": 3, \"ff\": 20, \"context\": 5}"},
    {&pl_model_transformer,
     "{\"layers\": 2, \"d_model\": 16, \"heads\": 4, \"kv_heads\": 1, \"ff\": 8, \"context\": 6}"},
    {&pl_model_transformer, "{\"layers\": 1, \"d_model\": 8, \"heads\": 4, \"kv_heads\": 2, \"tied\": true, "
                            "\"context\": 5, \"init\": \"normal\"}"},
    {&pl_model_transformer, "{\"layers\": 2, \"d_model\": 9, \"heads\": 3, \"context\": 5, \"norm\": \"layernorm\","
                            " \"activation\": \"gelu\", \"positions\": \"learned\", \"bias\": true, \"tied\": true}"},
    {&pl_model_transformer,
     "{\"layers\": 1, \"d_model\": 8, \"heads\": 2, \"context\": 70, \"bias\": true, \"vocab\": 13}"},
    {&pl_model_mlp, "{\"layers\": 2, \"hidden\": 10, \"embedding\": 4, \"window\": 3, \"context\": 7}"},
    {&pl_model_mlp, "{\"layers\": 1, \"hidden\": 6, \"embedding\": 3, \"window\": 5, \"context\": 3}"},
    {&pl_model_quadratic, "{\"dim\": 6}"},
    {&pl_model_quadratic,
     "{\"dim\": 12, \"layers\": 3, \"rotated\": true, \"optimum_std\": 1, \"spectrum\": \"linear\"}"},
};
enum { CASES = sizeof cases / sizeof *cases };

#ifdef PL_F64
static const double step = 1e-5, relative = 1e-6, absolute = 1e-7;
#else
static const double step = 5e-3, relative = 0.02, absolute = 3e-3;
#endif

/* (f(x + h v) - f(x - h v)) / 2h for a direction within one segment of the only stage. */
static double slope(rig *r, const pl_batch *b, const pl_segment *s, const double *v) {
  size_t n = s->rows * s->cols;
  double f[2];
  pl_real *x = r->x[0] + s->offset, *kept = NULL;
  rig_ok(pl_alloc(n, sizeof *kept, "kept", &kept, NULL));
  memcpy(kept, x, n * sizeof *x);
  for (int side = 0; side < 2; side++) {
    for (size_t i = 0; i < n; i++) x[i] = (pl_real)((double)kept[i] + (side == 0 ? step : -step) * v[i]);
    rig_upload(r);
    f[side] = rig_forward(r, b);
  }
  memcpy(x, kept, n * sizeof *x);
  rig_upload(r);
  pl_free(kept);
  return (f[0] - f[1]) / (2 * step);
}

static bool agrees(rig *r, const pl_batch *b, const pl_segment *s, const double *v) {
  double expected = 0, seen = slope(r, b, s, v);
  for (size_t i = 0; i < s->rows * s->cols; i++) expected += (double)r->g[0][s->offset + i] * v[i];
  return fabs(seen - expected) <= relative * fabs(expected) + absolute;
}

/* Along the gradient; in double also along a random direction and some single coordinates. */
static bool segment_agrees(rig *r, const pl_batch *b, const pl_segment *s) {
  size_t n = s->rows * s->cols;
  const pl_real *g = r->g[0] + s->offset;
  double norm = 0, *v = NULL;
  rig_ok(pl_alloc(n, sizeof *v, "direction", &v, NULL));
  for (size_t i = 0; i < n; i++) norm += (double)g[i] * (double)g[i];
  for (size_t i = 0; i < n; i++) v[i] = (double)g[i] / (sqrt(norm) + 1e-30);
  bool ok = agrees(r, b, s, v);
#ifdef PL_F64
  pl_rng rng = pl_rng_at(2, PL_STREAM_SYNTHETIC, s->offset, 0);
  for (size_t i = 0; i < n; i++) v[i] = pl_rng_normal(&rng) / sqrt((double)n);
  ok = ok && agrees(r, b, s, v);
  for (size_t k = 0; k < 4; k++) {
    memset(v, 0, n * sizeof *v);
    v[k * (n - 1) / 3] = 1;
    ok = ok && agrees(r, b, s, v);
  }
#endif
  pl_free(v);
  return ok;
}

static void check_case(const char *device, const model_case *c) {
  rig r;
  rig_open(&r, device, c->type, c->config, 1);
  pl_batch b = rig_batch(&r, 0, 2, 0), validation = b;
  validation.step = -1;
  double loss = rig_both(&r, &b);
  assert_true(loss == rig_forward(&r, &validation));
  rig_sum_tied(&r);
  for (size_t i = 0; i < r.layouts[0]->count; i++) {
    const pl_segment *s = &r.layouts[0]->segments[i];
    bool ok = segment_agrees(&r, &validation, s);
    if (!ok) print_error("%s %s: segment %s\n", c->type->base.name, c->config, s->name);
    assert_true(ok);
  }
  rig_close(&r);
}

static void test_gradients(void **state) {
  (void)state;
  for (size_t i = 0; i < CASES; i++) check_case("cpu", &cases[i]);
}

static void test_gradients_of_registered_models(void **state) {
  (void)state;
  for (size_t i = 0; i < pl_models.count; i++) {
    model_case c = rig_default(i);
    check_case("cpu", &c);
  }
}

static void test_gradients_paranoid(void **state) {
  (void)state;
  for (size_t i = 0; i < CASES; i++) check_case("paranoid", &cases[i]);
}

/* The check can fail: one wrong element of a gradient, and a gradient that is too large by a twentieth. */
static void test_wrong_gradient_is_seen(void **state) {
  (void)state;
  rig r;
  rig_open(&r, "cpu", &pl_model_transformer, cases[0].config, 1);
  pl_batch b = rig_batch(&r, 0, 2, 0), validation = b;
  validation.step = -1;
  rig_both(&r, &b);
  for (size_t i = 0; i < r.layouts[0]->count; i++) {
    const pl_segment *s = &r.layouts[0]->segments[i];
    pl_real *g = r.g[0] + s->offset;
    double norm = 0;
    for (size_t j = 0; j < s->rows * s->cols; j++) norm += (double)g[j] * (double)g[j];
    pl_real kept = g[0];
    g[0] = (pl_real)((double)kept + 0.5 * sqrt(norm));
    assert_false(segment_agrees(&r, &validation, s));
    g[0] = kept;
    for (size_t j = 0; j < s->rows * s->cols; j++) g[j] *= (pl_real)1.05;
    assert_false(segment_agrees(&r, &validation, s));
  }
  rig_close(&r);
}

/* Gradients are added, and scaled by the batch's factor. */
static void test_gradients_accumulate(void **state) {
  (void)state;
  for (size_t i = 0; i < CASES; i++) {
    rig r;
    rig_open(&r, "cpu", cases[i].type, cases[i].config, 1);
    pl_batch b = rig_batch(&r, 0, 2, 0);
    rig_both(&r, &b);
    size_t n = r.layouts[0]->grad_size;
    pl_real *once = NULL;
    rig_ok(pl_alloc(n, sizeof *once, "gradient", &once, NULL));
    memcpy(once, r.g[0], n * sizeof *once);
    b.scale = 0.25;
    rig_both(&r, &b);
    double norm = 0;
    for (size_t j = 0; j < n; j++) norm += (double)once[j] * (double)once[j];
    for (size_t j = 0; j < n; j++) {
      assert_true(fabs((double)r.g[0][j] - 1.25 * (double)once[j]) <= 50 * RIG_EPS * sqrt(norm));
    }
    pl_free(once);
    rig_close(&r);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gradients),
      cmocka_unit_test(test_gradients_of_registered_models),
      cmocka_unit_test(test_gradients_paranoid),
      cmocka_unit_test(test_wrong_gradient_is_seen),
      cmocka_unit_test(test_gradients_accumulate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
