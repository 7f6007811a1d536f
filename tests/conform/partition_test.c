/* The layers that stages get, against a search through all splits, and the FLOPs that decide it, against the products
 * of matrices that a model really asks its device for. */
#include "core/train/partition.h"
#include "models_rig.h"

enum { MOST_LAYERS = 9 };

/* The best of all splits by the stated order: largest stage, sum of squares, earliest cuts. */
typedef struct search {
  const double *costs;
  size_t layers, stages;
  size_t cuts[MOST_LAYERS + 1], best[MOST_LAYERS + 1];
  double largest, squares;
  bool found;
} search;

static double sum_of(const double *costs, size_t from, size_t to) {
  double sum = 0;
  for (size_t i = from; i < to; i++) sum += costs[i];
  return sum;
}

static double largest_of(const double *costs, const size_t *first, size_t stages) {
  double largest = 0;
  for (size_t p = 0; p < stages; p++) largest = fmax(largest, sum_of(costs, first[p], first[p + 1]));
  return largest;
}

/* Comes by in the order of the cuts, so that the first of equal ones is the earliest. */
static void judge(search *s) {
  double largest = largest_of(s->costs, s->cuts, s->stages), squares = 0;
  for (size_t p = 0; p < s->stages; p++) squares += pow(sum_of(s->costs, s->cuts[p], s->cuts[p + 1]), 2);
  if (s->found && (largest > s->largest || (largest == s->largest && squares >= s->squares))) return;
  s->found = true;
  s->largest = largest;
  s->squares = squares;
  memcpy(s->best, s->cuts, sizeof s->best);
}

static void try_all(search *s, size_t stage) {
  if (stage == s->stages) {
    s->cuts[stage] = s->layers;
    judge(s);
    return;
  }
  for (size_t i = s->cuts[stage - 1] + 1; i + (s->stages - stage) <= s->layers; i++) {
    s->cuts[stage] = i;
    try_all(s, stage + 1);
  }
}

static void compare(const double *costs, size_t layers, size_t stages) {
  search s = {.costs = costs, .layers = layers, .stages = stages};
  size_t first[MOST_LAYERS + 1];
  pl_err e = {0};
  try_all(&s, 1);
  rig_ok(pl_partition_split(costs, layers, stages, first, &e));
  for (size_t p = 0; p <= stages; p++) assert_int_equal(first[p], s.best[p]);
}

/* Whole numbers, so that sums are exact and ties are ties. */
static void fill(double *costs, size_t layers, size_t kind) {
  pl_rng rng = pl_rng_at(5, PL_STREAM_SYNTHETIC, kind, 0);
  for (size_t i = 0; i < layers; i++)
    costs[i] = kind == 0 ? 3 : kind % 3 == 1 ? (double)pl_rng_below(&rng, 3) : (double)pl_rng_below(&rng, 1000);
  if (kind % 4 == 3) costs[layers - 1] += 1500;
}

static void test_all_splits(void **state) {
  (void)state;
  double costs[MOST_LAYERS];
  for (size_t kind = 0; kind < 40; kind++)
    for (size_t layers = 1; layers <= MOST_LAYERS; layers++)
      for (size_t stages = 1; stages <= layers; stages++) {
        fill(costs, layers, kind);
        compare(costs, layers, stages);
      }
}

/* 0.1 adds up differently from different starts; equal layers are equal all the same. */
static void test_rounding(void **state) {
  (void)state;
  double tenth[40], one[40];
  size_t a[9], b[9];
  pl_err e = {0};
  for (size_t i = 0; i < 40; i++) {
    tenth[i] = 0.1;
    one[i] = 1;
  }
  for (size_t layers = 8; layers <= 40; layers++) {
    rig_ok(pl_partition_split(tenth, layers, 8, a, &e));
    rig_ok(pl_partition_split(one, layers, 8, b, &e));
    assert_memory_equal(a, b, sizeof a);
  }
}

/* 30 layers of SmolLM2-135M's size and a head of nearly five: the head's stage keeps one layer, the others share the
 * rest, where an even split gives the last stage as many layers and a head. */
static void test_heavy_head(void **state) {
  (void)state;
  double costs[30];
  size_t first[9], even[9];
  const size_t expected[] = {0, 4, 8, 12, 16, 20, 24, 29, 30};
  pl_err e = {0};
  for (size_t i = 0; i < 30; i++) costs[i] = i < 29 ? 1 : 5.8;
  rig_ok(pl_partition_split(costs, 30, 8, first, &e));
  assert_memory_equal(first, expected, sizeof first);
  rig_ok(pl_partition_even(30, 8, even, &e));
  assert_true(largest_of(costs, even, 8) > 1.4 * largest_of(costs, first, 8));
}

static void config_of(const model_case *model, pl_run_config *out) {
  *out = (pl_run_config){.pipeline = {.partition = {.word = PL_PARTITION_FLOPS}}};
  out->model.type = &model->type->base;
  rig_config(model->type, model->config, out->model.config);
}

static void list(pl_run_config *c, size_t count, const int64_t *values) {
  c->pipeline.partition = (pl_int_list){.count = count, .word = -1, .is_list = true};
  memcpy(c->pipeline.partition.values, values, count * sizeof *values);
}

static void test_by_the_key(void **state) {
  (void)state;
  const model_case model = {&pl_model_transformer, "{\"layers\": 7, \"d_model\": 8, \"heads\": 2}"};
  const size_t even[] = {0, 1, 3, 5, 7}, flops[] = {0, 2, 4, 6, 7}, given[] = {0, 3, 4, 5, 7};
  pl_run_config c;
  size_t first[5], layers = 0;
  double *costs = NULL;
  pl_err e = {0};
  config_of(&model, &c);
  rig_ok(pl_partition_make(&c, 500, 4, first, &e));
  assert_memory_equal(first, flops, sizeof first);
  rig_ok(pl_partition_costs(&c, 500, &costs, &layers, &e));
  assert_int_equal(layers, 7);
  compare(costs, 7, 4);
  pl_free(costs);
  c.pipeline.partition.word = PL_PARTITION_EVEN;
  rig_ok(pl_partition_make(&c, 500, 4, first, &e));
  assert_memory_equal(first, even, sizeof first);
  list(&c, 4, (int64_t[]){3, 1, 1, 2});
  rig_ok(pl_partition_make(&c, 500, 4, first, &e));
  assert_memory_equal(first, given, sizeof first);
}

static void refused(const pl_run_config *c, size_t stages, const char *text) {
  size_t first[16];
  pl_err e = {0};
  assert_int_equal(pl_partition_make(c, 500, stages, first, &e), PL_BAD);
  assert_string_equal(e.text, text);
}

static void test_refusals(void **state) {
  (void)state;
  const model_case model = {&pl_model_mlp, "{\"layers\": 4}"};
  pl_run_config c;
  config_of(&model, &c);
  refused(&c, 5, "partition: 5 stages for 4 layers; allowed: 1 to 4");
  refused(&c, 0, "partition: 0 stages for 4 layers; allowed: 1 to 4");
  list(&c, 2, (int64_t[]){2, 2});
  refused(&c, 3, "pipeline.partition: the list has 2 values; allowed: one for each of the 3 stages");
}

/* A device that counts. Attention is counted as the cost model does and not by what it asks for inside. */
typedef struct counting {
  pl_ops ops;
  const pl_ops *real;
  double flops;
  bool inside;
} counting;

static counting *counter(void) {
  static counting c;
  return &c;
}

static void count_gemm(pl_device *d, bool ta, bool tb, size_t m, size_t n, size_t k, pl_real alpha, const pl_real *a,
                       size_t lda, const pl_real *b, size_t ldb, pl_real beta, pl_real *c, size_t ldc) {
  counting *w = counter();
  if (!w->inside) w->flops += 2 * (double)m * (double)n * (double)k;
  w->real->gemm(d, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

static void count_attention(pl_device *d, const pl_attention *s, const pl_real *q, const pl_real *k, const pl_real *v,
                            pl_real *out, pl_real *saved, pl_real *scratch) {
  counting *w = counter();
  w->flops += 4 * (double)(s->batch * s->time) * (double)(s->time * s->heads * s->head_dim);
  w->inside = true;
  w->real->attention_forward(d, s, q, k, v, out, saved, scratch);
  w->inside = false;
}

/* Four layers in four stages: what each stage's forward really does, per token. */
static void check_counted(const model_case *model) {
  static rig r;
  double layers[4], first = 0, last = 0;
  rig_open(&r, "cpu", model->type, model->config, 4);
  model->type->layer_flops(r.config, RIG_VOCAB, layers, &first, &last);
  counting *w = counter();
  *w = (counting){.ops = *r.device->ops, .real = r.device->ops};
  w->ops.gemm = w->ops.gemm_low = count_gemm;
  w->ops.attention_forward = count_attention;
  r.device->ops = &w->ops;
  pl_batch b = rig_batch(&r, 0, RIG_SEQUENCES, 0);
  for (size_t p = 0; p < 4; p++) {
    double expected = layers[p] + (p == 0 ? first : 0) + (p == 3 ? last : 0);
    w->flops = 0;
    r.type->forward(r.model, p, r.weights[p], &b, r.message[p], p < 3 ? r.message[p + 1] : NULL, r.tape[p]);
    assert_true(expected > 0 && w->flops == expected * (double)(RIG_SEQUENCES * r.shape.context));
  }
  r.device->ops = w->real;
  rig_close(&r);
}

static const model_case counted[] = {
    {&pl_model_transformer, "{\"layers\": 4, \"d_model\": 24, \"heads\": 4, \"kv_heads\": 2, \"context\": 10}"},
    {&pl_model_transformer, "{\"layers\": 4, \"d_model\": 16, \"heads\": 2, \"context\": 7, \"norm\": \"layernorm\", "
                            "\"activation\": \"gelu\", \"positions\": \"learned\", \"bias\": true, \"tied\": true}"},
    {&pl_model_transformer,
     "{\"layers\": 4, \"d_model\": 16, \"heads\": 2, \"context\": 5, \"ff\": 40, \"vocab\": 19}"},
    {&pl_model_mlp, "{\"layers\": 4, \"hidden\": 20, \"embedding\": 6, \"window\": 1, \"context\": 9}"}};

static void test_counted_flops(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) check_counted(&counted[i]);
}

/* Forward is a third of forward and backward; of a quadratic, whose backward reuses the product, it is all. */
static void check_total(const model_case *model) {
  _Alignas(16) unsigned char config[RIG_CONFIG];
  double layers[1024], first = 0, last = 0;
  pl_model_shape shape;
  rig_config(model->type, model->config, config);
  model->type->shape(config, &shape);
  model->type->layer_flops(config, RIG_VOCAB, layers, &first, &last);
  double forward = sum_of(layers, 0, shape.layers) + first + last;
  double whole = model->type->flops_per_token(config, RIG_VOCAB);
  assert_true(fabs(whole - (model->type == &pl_model_quadratic ? 1 : 3) * forward) <= 1e-12 * whole);
}

static void test_totals(void **state) {
  (void)state;
  const model_case quadratic = {&pl_model_quadratic, "{\"dim\": 12, \"layers\": 4}"};
  for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) check_total(&counted[i]);
  for (size_t i = 0; i < pl_models.count; i++) {
    model_case model = rig_default(i);
    assert_non_null(model.type->layer_flops);
    check_total(&model);
  }
  check_total(&quadratic);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_splits), cmocka_unit_test(test_rounding),
                                     cmocka_unit_test(test_heavy_head), cmocka_unit_test(test_by_the_key),
                                     cmocka_unit_test(test_refusals),   cmocka_unit_test(test_counted_flops),
                                     cmocka_unit_test(test_totals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
