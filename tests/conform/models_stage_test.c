/* The number of stages changes no bit; the number of microbatches only rounding. */
#include "tests/conform/models_rig.h"

static const model_case cases[] = {
    {&pl_model_transformer, "{\"layers\": 4, \"d_model\": 24, \"heads\": 2, \"context\": 9}"},
    {&pl_model_transformer,
     "{\"layers\": 5, \"d_model\": 32, \"heads\": 4, \"kv_heads\": 2, \"tied\": true, \"context\": 7}"},
    {&pl_model_transformer, "{\"layers\": 4, \"d_model\": 20, \"heads\": 5, \"context\": 6, \"norm\": \"layernorm\","
                            " \"activation\": \"gelu\", \"positions\": \"learned\", \"bias\": true, \"tied\": true}"},
    {&pl_model_mlp, "{\"layers\": 4, \"hidden\": 18, \"embedding\": 5, \"window\": 3, \"context\": 8}"},
    {&pl_model_quadratic, "{\"dim\": 12, \"layers\": 4, \"rotated\": true, \"noise\": 0.5, \"optimum_std\": 1}"},
};
enum { CASES = sizeof cases / sizeof *cases };

static bool same_segments(const rig *one, const rig *many) {
  for (size_t i = 0; i < one->layouts[0]->count; i++) {
    const pl_segment *s = &one->layouts[0]->segments[i];
    size_t stage, bytes = s->rows * s->cols * sizeof(pl_real);
    const pl_segment *t = rig_find(many, s->name, &stage);
    if (t == NULL || t->rows != s->rows || t->cols != s->cols || t->kind != s->kind) return false;
    if (memcmp(one->x[0] + s->offset, many->x[stage] + t->offset, bytes) != 0) return false;
    if (memcmp(one->g[0] + s->offset, many->g[stage] + t->offset, bytes) != 0) return false;
  }
  return true;
}

static void same_tied(const rig *one, const rig *many) {
  pl_tie a, b;
  if (one->type->tie == NULL || !one->type->tie(one->model, &a)) return;
  assert_true(one->type->tie(many->model, &b));
  assert_int_equal(b.head_stage, many->stages - 1);
  assert_int_equal(a.count, b.count);
  assert_memory_equal(one->g[0] + a.head, many->g[b.head_stage] + b.head, a.count * sizeof(pl_real));
  if (many->stages == 1) return;
  const pl_layout *last = many->layouts[many->stages - 1];
  const pl_segment *copy = &last->segments[last->count - 1];
  assert_true(copy->tied_copy);
  assert_int_equal(copy->offset, b.head);
  assert_memory_equal(many->x[0] + b.embedding, many->x[b.head_stage] + b.head, b.count * sizeof(pl_real));
}

static void compare(const char *device, const model_case *c, size_t stages) {
  rig one, many;
  rig_open(&one, device, c->type, c->config, 1);
  rig_open(&many, device, c->type, c->config, stages);
  for (size_t k = 0; k < 2; k++) {
    pl_batch a = rig_batch(&one, k, 3 - k, k), b = rig_batch(&many, k, 3 - k, k);
    assert_true(rig_both(&one, &a) == rig_both(&many, &b));
    assert_true(same_segments(&one, &many));
    same_tied(&one, &many);
  }
  many.g[stages - 1][0] += (pl_real)1; /* the comparison can fail */
  assert_false(same_segments(&one, &many));
  rig_close(&one);
  rig_close(&many);
}

static void test_stages_keep_bits(void **state) {
  (void)state;
  for (size_t i = 0; i < CASES; i++) {
    compare("cpu", &cases[i], 2);
    compare("cpu", &cases[i], 3);
    compare("cpu", &cases[i], 4);
    compare("paranoid", &cases[i], 3);
  }
}

static void test_registered_models_keep_bits(void **state) {
  (void)state;
  for (size_t i = 0; i < pl_models.count; i++) {
    model_case c = rig_default(i);
    _Alignas(16) unsigned char config[RIG_CONFIG];
    pl_model_shape shape;
    rig_config(c.type, c.config, config);
    c.type->shape(config, &shape);
    compare("cpu", &c, shape.layers < 2 ? 1 : 2);
  }
}

/* Sum of the losses, and the gradient in r->g, of the rig's four sequences cut into microbatches. */
static double run_cut(rig *r, const size_t *cut, size_t count) {
  double loss = 0;
  size_t first = 0;
  rig_zero(r);
  for (size_t k = 0; k < count; k++) {
    pl_batch b = rig_batch(r, first, cut[k], k);
    b.scale = 1.0 / 36;
    loss += rig_both(r, &b);
    first += cut[k];
  }
  assert_int_equal(first, RIG_SEQUENCES);
  return loss;
}

static void test_microbatches_keep_gradients(void **state) {
  (void)state;
  static const size_t whole[] = {4}, singles[] = {1, 1, 1, 1}, ragged[] = {3, 1};
  for (size_t i = 0; i < CASES; i++) {
    if (!(cases[i].type == &pl_model_transformer || cases[i].type == &pl_model_mlp)) continue;
    rig a, b;
    rig_open(&a, "cpu", cases[i].type, cases[i].config, 1);
    rig_open(&b, "cpu", cases[i].type, cases[i].config, 1);
    double loss = run_cut(&a, whole, 1), norm = 0;
    size_t n = a.layouts[0]->grad_size;
    for (size_t j = 0; j < n; j++) norm += (double)a.g[0][j] * (double)a.g[0][j];
    for (int form = 0; form < 2; form++) {
      double other = form == 0 ? run_cut(&b, singles, 4) : run_cut(&b, ragged, 2);
      assert_true(fabs(loss - other) <= 20 * RIG_EPS * loss);
      for (size_t j = 0; j < n; j++) {
        assert_true(fabs((double)a.g[0][j] - (double)b.g[0][j]) <= 50 * RIG_EPS * sqrt(norm));
      }
    }
    rig_close(&a);
    rig_close(&b);
  }
}

/* Two microbatches in flight: all that backward needs is in the tape. */
static void test_tape_holds_everything(void **state) {
  (void)state;
  for (size_t i = 0; i < CASES; i++) {
    rig a, b;
    void *second = NULL;
    rig_open(&a, "cpu", cases[i].type, cases[i].config, 1);
    rig_open(&b, "cpu", cases[i].type, cases[i].config, 1);
    rig_alloc(&b, b.type->tape_bytes(b.model, 0), &second);
    void *tapes[] = {b.tape[0], second};
    for (size_t k = 0; k < 2; k++) {
      pl_batch m = rig_batch(&a, 2 * k, 2, k), n = rig_batch(&b, 2 * k, 2, k);
      rig_both(&a, &m);
      b.tape[0] = tapes[k];
      rig_forward(&b, &n);
    }
    for (size_t k = 0; k < 2; k++) {
      pl_batch n = rig_batch(&b, 2 * k, 2, k);
      b.tape[0] = tapes[k];
      rig_backward(&b, &n);
    }
    assert_memory_equal(a.g[0], b.g[0], a.layouts[0]->grad_size * sizeof(pl_real));
    b.device->ops->free(b.device, tapes[0]);
    rig_close(&a);
    rig_close(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_stages_keep_bits),
      cmocka_unit_test(test_registered_models_keep_bits),
      cmocka_unit_test(test_microbatches_keep_gradients),
      cmocka_unit_test(test_tape_holds_everything),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
