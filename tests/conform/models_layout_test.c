/* Layouts, parameter counts, initialisation, checks and estimates of the models; the quadratic's closed forms. */
#include "models/parts/space.h"
#include "tests/conform/models_rig.h"

#define DEMO "{\"layers\": 2, \"d_model\": 32, \"heads\": 2, \"ff\": 88, \"context\": 64, \"vocab\": 256}"
#define SMOLLM2                                                                                                        \
  "{\"layers\": 30, \"d_model\": 576, \"heads\": 9, \"kv_heads\": 3, \"context\": 1, \"vocab\": 49152, \"tied\": "     \
  "true}"

typedef struct built {
  pl_device *device;
  pl_model *model;
  const pl_model_type *type;
  _Alignas(16) unsigned char config[RIG_CONFIG];
} built;

/* A model alone: no weights, no tape. */
static pl_status build(const pl_model_type *type, const char *json, size_t stages, size_t vocab, built *b, pl_err *e) {
  pl_model_shape shape;
  size_t first[RIG_STAGES + 1];
  *b = (built){.type = type};
  rig_config(type, json, b->config);
  type->shape(b->config, &shape);
  for (size_t p = 0; p <= stages; p++) first[p] = p * shape.layers / stages;
  rig_ok(pl_device_open("cpu", PL_PRECISION_FP32, 1, &b->device, e));
  pl_model_env env = {
      .device = b->device, .stages = stages, .first_layer = first, .vocab = vocab, .max_sequences = 1, .seed = 1};
  return type->create(b->config, &env, &b->model, e);
}

static void drop(built *b) {
  b->type->destroy(b->model);
  pl_device_close(b->device);
}

static size_t parameters(const pl_model_type *type, const char *json, size_t stages) {
  pl_err e = {0};
  built b;
  size_t sum = 0;
  rig_ok(build(type, json, stages, 0, &b, &e));
  for (size_t p = 0; p < stages; p++) sum += pl_layout_parameters(type->layout(b.model, p));
  drop(&b);
  return sum;
}

static void test_parameter_counts(void **state) {
  (void)state;
  for (size_t stages = 1; stages <= 2; stages++) {
    assert_int_equal(parameters(&pl_model_transformer, DEMO, stages), 41632);
    assert_int_equal(parameters(&pl_model_transformer, SMOLLM2, stages), 134515008);
  }
  /* GPT-2 small: 12 layers, d 768, context 1024, vocabulary 50257 */
  assert_int_equal(parameters(&pl_model_transformer,
                              "{\"layers\": 12, \"d_model\": 768, \"heads\": 12, \"context\": 1024, \"vocab\": 50257,"
                              " \"norm\": \"layernorm\", \"activation\": \"gelu\", \"positions\": \"learned\","
                              " \"bias\": true, \"tied\": true}",
                              1),
                   124439808);
  /* 50*8 + (3*8*20 + 20) + (20*20 + 20) + 20*50 */
  assert_int_equal(
      parameters(&pl_model_mlp, "{\"layers\": 2, \"hidden\": 20, \"embedding\": 8, \"window\": 3, \"vocab\": 50}", 2),
      400 + 500 + 420 + 1000);
  assert_int_equal(parameters(&pl_model_quadratic, "{\"dim\": 18, \"layers\": 3}", 3), 18);
}

static void expect_segment(const pl_segment *s, const char *name, pl_segment_kind kind, size_t rows, size_t cols) {
  assert_string_equal(s->name, name);
  assert_int_equal(s->kind, kind);
  assert_int_equal(s->rows, rows);
  assert_int_equal(s->cols, cols);
  assert_int_equal(s->offset * sizeof(pl_real) % PL_ALIGN, 0);
  assert_int_equal(s->decay, kind != PL_SEGMENT_NORM && kind != PL_SEGMENT_BIAS);
  assert_false(s->tied_copy);
}

static void test_segments(void **state) {
  (void)state;
  pl_err e = {0};
  built b;
  rig_ok(build(&pl_model_transformer,
               "{\"layers\": 2, \"d_model\": 12, \"heads\": 6, \"kv_heads\": 2, \"ff\": 20, \"bias\": true}", 2, 7, &b,
               &e));
  const pl_layout *first = b.type->layout(b.model, 0), *last = b.type->layout(b.model, 1);
  assert_int_equal(first->count, 1 + 16);
  expect_segment(&first->segments[0], "embedding", PL_SEGMENT_EMBEDDING, 7, 12);
  expect_segment(&first->segments[1], "layers.0.attention_norm", PL_SEGMENT_NORM, 1, 12);
  expect_segment(&first->segments[2], "layers.0.attention.q", PL_SEGMENT_MATRIX, 12, 12);
  expect_segment(&first->segments[3], "layers.0.attention.q.bias", PL_SEGMENT_BIAS, 1, 12);
  expect_segment(&first->segments[4], "layers.0.attention.k", PL_SEGMENT_MATRIX, 4, 12);
  expect_segment(&first->segments[15], "layers.0.mlp.down", PL_SEGMENT_MATRIX, 12, 20);
  assert_int_equal(last->count, 16 + 2);
  expect_segment(&last->segments[0], "layers.1.attention_norm", PL_SEGMENT_NORM, 1, 12);
  expect_segment(&last->segments[10], "layers.1.mlp.gate", PL_SEGMENT_MATRIX, 20, 12);
  expect_segment(&last->segments[16], "final_norm", PL_SEGMENT_NORM, 1, 12);
  expect_segment(&last->segments[17], "head", PL_SEGMENT_HEAD, 7, 12);
  assert_int_equal(last->grad_size, last->size);
  assert_false(b.type->tie(b.model, &(pl_tie){0}));
  drop(&b);
}

static void test_tied_head(void **state) {
  (void)state;
  pl_err e = {0};
  built b;
  pl_tie tie;
  const char *json = "{\"layers\": 2, \"d_model\": 6, \"heads\": 1, \"tied\": true}";
  rig_ok(build(&pl_model_transformer, json, 1, 7, &b, &e));
  const pl_layout *l = b.type->layout(b.model, 0);
  assert_true(b.type->tie(b.model, &tie));
  assert_string_equal(l->segments[l->count - 1].name, "final_norm");
  assert_int_equal(tie.embedding, l->segments[0].offset);
  assert_int_equal(tie.head, l->size);
  assert_int_equal(tie.count, 42);
  assert_true(l->grad_size >= l->size + 42);
  assert_int_equal(l->grad_size * sizeof(pl_real) % PL_ALIGN, 0);
  drop(&b);
  rig_ok(build(&pl_model_transformer, json, 2, 7, &b, &e));
  l = b.type->layout(b.model, 1);
  assert_true(b.type->tie(b.model, &tie));
  const pl_segment *copy = &l->segments[l->count - 1];
  assert_string_equal(copy->name, "embedding");
  assert_int_equal(copy->kind, PL_SEGMENT_HEAD);
  assert_true(copy->tied_copy && copy->decay);
  assert_int_equal(tie.head, copy->offset);
  assert_int_equal(tie.head_stage, 1);
  assert_int_equal(l->grad_size, l->size);
  drop(&b);
}

/* Sample standard deviation of a segment of a freshly initialised model, against what the table promises. */
static void expect_std(const pl_layout *l, const pl_real *x, const char *name, double mean, double std) {
  for (size_t i = 0; i < l->count; i++) {
    const pl_segment *s = &l->segments[i];
    size_t n = s->rows * s->cols;
    double sum = 0, squares = 0;
    if (strcmp(s->name, name) != 0) continue;
    for (size_t j = 0; j < n; j++) sum += (double)x[s->offset + j];
    for (size_t j = 0; j < n; j++) squares += pow((double)x[s->offset + j] - sum / (double)n, 2);
    double seen = sqrt(squares / (double)n);
    assert_true(fabs(sum / (double)n - mean) <= 5 * std / sqrt((double)n));
    assert_true(fabs(seen - std) <= 5 * std / sqrt(2 * (double)n));
    return;
  }
  fail_msg("no segment %s", name);
}

static void test_initialisation(void **state) {
  (void)state;
  pl_err e = {0};
  const double gain = 0.6 / sqrt(32), residual = 1 / sqrt(4);
  for (int normal = 0; normal < 2; normal++) {
    built b;
    pl_real *x = NULL;
    rig_ok(build(&pl_model_transformer,
                 normal ? "{\"d_model\": 32, \"vocab\": 256, \"init\": \"normal\", \"positions\": \"learned\"}"
                        : "{\"d_model\": 32, \"vocab\": 256}",
                 1, 0, &b, &e));
    const pl_layout *l = b.type->layout(b.model, 0);
    rig_ok(pl_alloc(l->size, sizeof *x, "x", &x, &e));
    pl_layout_init(l, 4, x);
    expect_std(l, x, "embedding", 0, normal ? 0.02 : 0.05);
    expect_std(l, x, "layers.0.attention.q", 0, normal ? 0.02 : gain);
    expect_std(l, x, "layers.1.attention.o", 0, residual * (normal ? 0.02 : gain));
    expect_std(l, x, "layers.1.mlp.up", 0, normal ? 0.02 : gain);
    expect_std(l, x, "layers.0.mlp.down", 0, residual * (normal ? 0.02 : 0.6 / sqrt(88)));
    expect_std(l, x, "head", 0, normal ? 0.02 : gain);
    expect_std(l, x, "final_norm", 1, 0);
    if (normal) expect_std(l, x, "positions", 0, 0.02);
    pl_free(x);
    drop(&b);
  }
}

/* An untrained language model knows nothing: ln(vocabulary) nats per token. */
static void test_initial_loss(void **state) {
  (void)state;
  static const pl_model_type *const types[] = {&pl_model_transformer, &pl_model_mlp};
  for (size_t i = 0; i < 2; i++) {
    static rig r;
    rig_open(&r, "cpu", types[i], "{\"vocab\": 256}", 1);
    pl_layout_init(r.layouts[0], 4, r.x[0]);
    rig_upload(&r);
    pl_batch b = rig_batch(&r, 0, RIG_SEQUENCES, 0);
    double excess = rig_forward(&r, &b) / (4.0 * 64) - log(256);
    assert_true(fabs(excess) < 0.4);
    rig_close(&r);
  }
}

static void expect_refused(const pl_model_type *type, const char *json, const char *message) {
  _Alignas(16) unsigned char config[RIG_CONFIG];
  pl_err e = {0};
  rig_config(type, json, config);
  assert_int_equal(type->base.check(config, &e), PL_BAD);
  assert_string_equal(e.text, message);
}

static void test_checks(void **state) {
  (void)state;
  expect_refused(&pl_model_transformer, "{\"d_model\": 33}",
                 "d_model: 33 is not a multiple of heads 2; allowed: a multiple of 2");
  expect_refused(&pl_model_transformer, "{\"heads\": 4, \"kv_heads\": 3}",
                 "kv_heads: 3 does not divide heads 4; allowed: 0 (= heads) or a divisor of 4");
  expect_refused(&pl_model_transformer, "{\"d_model\": 6}",
                 "d_model: 6 with heads 2 gives heads of odd width 3, which cannot be rotated; allowed with positions "
                 "rope: a multiple of 4");
  expect_refused(&pl_model_quadratic, "{\"dim\": 16, \"layers\": 3}",
                 "dim: 16 is not a multiple of layers 3; allowed: a multiple of 3");
  expect_refused(&pl_model_quadratic, "{\"h_min\": 2}", "h_min: 2 is above h_max 1; allowed: at most h_max");
  expect_refused(&pl_model_quadratic, "{\"h_min\": 0}", "h_min: 0; allowed with spectrum geometric: above 0");
}

static void test_vocabulary(void **state) {
  (void)state;
  static const pl_model_type *const types[] = {&pl_model_transformer, &pl_model_mlp};
  for (size_t i = 0; i < 2; i++) {
    pl_err none = {0}, small = {0};
    built b;
    assert_int_equal(build(types[i], "{}", 1, 0, &b, &none), PL_BAD);
    assert_non_null(strstr(none.text, "the dataset has no tokens"));
    assert_null(b.model);
    drop(&b);
    assert_int_equal(build(types[i], "{\"vocab\": 100}", 1, 256, &b, &small), PL_BAD);
    assert_non_null(strstr(small.text, "model.vocab: 100 is below the dataset's 256"));
    drop(&b);
  }
}

/* Sizes that no machine has stay at the largest number, which an allocation refuses, instead of wrapping around. */
static void test_absurd_sizes(void **state) {
  (void)state;
  pl_space s = {0};
  assert_int_equal(pl_space_take(&s, 3, 5, 1), 0);
  assert_int_equal(pl_space_take(&s, 1, 1, 8), PL_ALIGN);
  assert_int_equal(s.bytes, 2 * PL_ALIGN);
  pl_space_reals(&s, SIZE_MAX / 2, 3);
  assert_true(s.bytes == SIZE_MAX);
  pl_space_reals(&s, 1, 1);
  assert_true(s.bytes == SIZE_MAX);
  assert_true(pl_times(SIZE_MAX / 2, 3) == SIZE_MAX);
}

static void test_flops(void **state) {
  (void)state;
  _Alignas(16) unsigned char config[RIG_CONFIG];
  rig_config(&pl_model_transformer, DEMO, config);
  /* 6 * (2 * (4*32*32 + 3*32*88) + 32*256) + 12 * 2 * 64 * 32 */
  assert_true(pl_model_transformer.flops_per_token(config, 0) == 6.0 * (2 * (4096 + 8448) + 8192) + 49152);
  rig_config(&pl_model_mlp, "{}", config);
  assert_true(pl_model_mlp.flops_per_token(config, 256) == 6.0 * 128 * (128 + 128 + 256));
}

static void test_quadratic_closed_form(void **state) {
  (void)state;
  static rig r;
  rig_open(&r, "cpu", &pl_model_quadratic, "{\"dim\": 5, \"spectrum\": \"linear\", \"h_min\": 1, \"h_max\": 5}", 1);
  for (size_t i = 0; i < 5; i++) r.x[0][i] = (pl_real)(1 + (double)i);
  rig_upload(&r);
  pl_batch b = rig_batch(&r, 0, 3, 0);
  b.scale = 0.5;
  /* h = x = 1..5: f = 1/2 sum i^3 = 112.5 */
  assert_true(rig_both(&r, &b) == 3 * 112.5);
  for (size_t i = 0; i < 5; i++) assert_true((double)r.g[0][i] == 1.5 * (double)((i + 1) * (i + 1)));
  rig_close(&r);
}

static void test_quadratic_start(void **state) {
  (void)state;
  static rig r;
  rig_open(&r, "cpu", &pl_model_quadratic,
           "{\"dim\": 8, \"init_value\": 1, \"rotated\": true, \"spectrum\": \"constant\"}", 1);
  pl_layout_init(r.layouts[0], 1, r.x[0]);
  for (size_t i = 0; i < 8; i++) assert_true((double)r.x[0][i] == 1);
  rig_upload(&r);
  pl_batch b = rig_batch(&r, 0, 1, 0);
  /* Q Q^T = 1 */
  assert_true(fabs(rig_both(&r, &b) - 4) <= 40 * RIG_EPS);
  rig_close(&r);
}

/* Noise is named by seed, step and microbatch; its deviation falls with the samples; the loss is exact. */
static void test_quadratic_noise(void **state) {
  (void)state;
  enum { N = 1024 };
  static rig r;
  static pl_real first[N];
  rig_open(&r, "cpu", &pl_model_quadratic, "{\"dim\": 1024, \"noise\": 2, \"init_value\": 0}", 1);
  pl_layout_init(r.layouts[0], 1, r.x[0]);
  rig_upload(&r);
  pl_batch b = rig_batch(&r, 0, 4, 0);
  b.scale = 0.25;
  assert_true(rig_both(&r, &b) == 0);
  memcpy(first, r.g[0], sizeof first);
  double sum = 0, squares = 0;
  for (size_t i = 0; i < N; i++) sum += (double)first[i];
  for (size_t i = 0; i < N; i++) squares += (double)first[i] * (double)first[i];
  assert_true(fabs(sum / N) <= 5.0 / sqrt(N)); /* N(0, (2/sqrt(4))^2) */
  assert_true(fabs(sqrt(squares / N) - 1) <= 5 / sqrt(2.0 * N));
  rig_zero(&r);
  rig_both(&r, &b);
  assert_memory_equal(first, r.g[0], sizeof first);
  for (int other = 0; other < 3; other++) {
    pl_batch c = b;
    c.microbatch += other == 0;
    c.step += other == 1;
    c.data_seed += other == 2;
    rig_zero(&r);
    rig_both(&r, &c);
    size_t same = 0;
    for (size_t i = 0; i < N; i++) same += first[i] == r.g[0][i];
    assert_true(same < 10);
  }
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_parameter_counts),
      cmocka_unit_test(test_segments),
      cmocka_unit_test(test_tied_head),
      cmocka_unit_test(test_initialisation),
      cmocka_unit_test(test_initial_loss),
      cmocka_unit_test(test_checks),
      cmocka_unit_test(test_vocabulary),
      cmocka_unit_test(test_absurd_sizes),
      cmocka_unit_test(test_flops),
      cmocka_unit_test(test_quadratic_closed_form),
      cmocka_unit_test(test_quadratic_start),
      cmocka_unit_test(test_quadratic_noise),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
