/* The two halves of a backward leave the bits of the whole, whatever passes between them. */
#include "tests/conform/models_rig.h"

static const model_case cases[] = {
    {&pl_model_transformer, "{\"layers\": 3, \"d_model\": 24, \"heads\": 2, \"context\": 9}"},
    {&pl_model_transformer,
     "{\"layers\": 3, \"d_model\": 32, \"heads\": 4, \"kv_heads\": 2, \"tied\": true, \"bias\": true, \"context\": 7}"},
    {&pl_model_transformer, "{\"layers\": 3, \"d_model\": 20, \"heads\": 5, \"context\": 6, \"norm\": \"layernorm\","
                            " \"activation\": \"gelu\", \"positions\": \"learned\", \"bias\": true, \"tied\": true}"},
    {&pl_model_transformer, "{\"layers\": 4, \"d_model\": 16, \"heads\": 2, \"context\": 5, \"activation\": \"gelu\"}"},
    {&pl_model_transformer, "{\"layers\": 3, \"d_model\": 16, \"heads\": 2, \"context\": 5, \"norm\": \"layernorm\","
                            " \"positions\": \"learned\"}"},
    {&pl_model_mlp, "{\"layers\": 4, \"hidden\": 18, \"embedding\": 5, \"window\": 3, \"context\": 8}"},
    {&pl_model_mlp, "{\"layers\": 3, \"hidden\": 9, \"embedding\": 4, \"window\": 6, \"context\": 4}"},
    {&pl_model_quadratic, "{\"dim\": 12, \"layers\": 4, \"rotated\": true, \"noise\": 0.5, \"optimum_std\": 1}"},
};
enum { CASES = sizeof cases / sizeof *cases, FLIGHTS = 3 };

/* A microbatch in flight: its sequences, and its own memory in every stage. */
typedef struct flight {
  pl_batch batch;
  pl_real *message[RIG_STAGES + 1], *back[RIG_STAGES + 1];
  void *tape[RIG_STAGES];
} flight;

static void take_off(rig *r, size_t k, flight *f) {
  static const size_t first[FLIGHTS] = {0, 1, 3}, count[FLIGHTS] = {1, 2, 1};
  size_t message = r->type->boundary_size(r->model) * sizeof(pl_real);
  *f = (flight){.batch = rig_batch(r, first[k], count[k], k)};
  f->batch.scale = 1.0 / 7;
  for (size_t p = 0; p < r->stages; p++) {
    rig_alloc(r, r->type->split_tape_bytes(r->model, p), &f->tape[p]);
    if (p == 0) continue;
    rig_alloc(r, message, &f->message[p]);
    rig_alloc(r, message, &f->back[p]);
  }
}

static void land(rig *r, flight *f) {
  for (size_t p = 0; p < r->stages; p++) {
    r->device->ops->free(r->device, f->tape[p]);
    if (p == 0) continue;
    r->device->ops->free(r->device, f->message[p]);
    r->device->ops->free(r->device, f->back[p]);
  }
}

/* Makes a message unreadable. */
static void spoil(rig *r, pl_real *message) {
  if (message) r->device->ops->axpby(r->device, r->type->boundary_size(r->model), 0, message, (double)NAN, message);
}

/* 'F' forward, 'B' backward, 'I' and 'W' its halves, in one stage. Gradients of messages are gone after their use. */
static void pass(rig *r, char what, size_t p, flight *f) {
  const pl_model_type *t = r->type;
  pl_real *out = f->message[p + 1], *dout = f->back[p + 1];
  switch (what) {
  case 'F':
    t->forward(r->model, p, r->weights[p], &f->batch, f->message[p], out, f->tape[p]);
    break;
  case 'B':
    t->backward(r->model, p, r->weights[p], &f->batch, f->message[p], f->tape[p], dout, f->back[p], r->grad[p]);
    spoil(r, dout);
    break;
  case 'I':
    t->backward_input(r->model, p, r->weights[p], &f->batch, f->message[p], f->tape[p], dout, f->back[p], r->grad[p]);
    spoil(r, dout);
    break;
  default:
    t->backward_weight(r->model, p, &f->batch, f->message[p], f->tape[p], r->grad[p]);
  }
}

static void download(rig *r) {
  for (size_t p = 0; p < r->stages; p++)
    r->device->ops->download(r->device, r->g[p], r->grad[p], r->layouts[p]->grad_size * sizeof(pl_real));
}

/* Runs e.g. "F0 F1 I0 I1 W0 W1", each word through all stages, and brings the gradients to the host. */
static void fly(rig *r, const char *order) {
  flight flights[FLIGHTS];
  for (size_t k = 0; k < FLIGHTS; k++) take_off(r, k, &flights[k]);
  rig_zero(r);
  for (const char *w = order; *w != '\0'; w += w[2] == ' ' ? 3 : 2) {
    for (size_t i = 0; i < r->stages; i++) pass(r, *w, *w == 'F' ? i : r->stages - 1 - i, &flights[w[1] - '0']);
  }
  download(r);
  for (size_t k = 0; k < FLIGHTS; k++) land(r, &flights[k]);
}

static bool same_gradients(const rig *a, const rig *b) {
  for (size_t p = 0; p < a->stages; p++) {
    if (memcmp(a->g[p], b->g[p], a->layouts[p]->grad_size * sizeof(pl_real)) != 0) return false;
  }
  return true;
}

static const char *const two[] = {"F0 I0 W0 F1 I1 W1", "F0 F1 I0 I1 W0 W1", "F0 I0 F1 W0 I1 W1", "F0 F1 B0 I1 W1",
                                  "F0 F1 I0 W0 B1"};
static const char *const three[] = {"F0 F1 F2 I0 I1 I2 W0 W1 W2", "F0 I0 F1 I1 W0 F2 W1 I2 W2",
                                    "F0 F1 I0 F2 I1 W0 I2 W1 W2"};

/* The reference runs whole backwards, with tapes that have no room for halves. */
static void whole(rig *r, size_t microbatches) {
  rig_zero(r);
  for (size_t k = 0; k < microbatches; k++) {
    flight f;
    take_off(r, k, &f);
    rig_both(r, &f.batch);
    land(r, &f);
  }
}

static void compare(const char *device, const model_case *c, size_t stages) {
  rig a, b;
  rig_open(&a, device, c->type, c->config, stages);
  rig_open(&b, device, c->type, c->config, stages);
  for (size_t p = 0; p < stages; p++) {
    assert_true(c->type->split_tape_bytes(a.model, p) >= c->type->tape_bytes(a.model, p));
  }
  whole(&a, 2);
  for (size_t i = 0; i < sizeof two / sizeof *two; i++) {
    fly(&b, two[i]);
    assert_true(same_gradients(&a, &b));
  }
  whole(&a, 3);
  assert_false(same_gradients(&a, &b));
  for (size_t i = 0; i < sizeof three / sizeof *three; i++) {
    fly(&b, three[i]);
    assert_true(same_gradients(&a, &b));
  }
  rig_close(&a);
  rig_close(&b);
}

static void test_halves_keep_bits(void **state) {
  (void)state;
  for (size_t i = 0; i < CASES; i++) {
    for (size_t stages = 1; stages <= 3; stages++) {
      compare("cpu", &cases[i], stages);
      compare("paranoid", &cases[i], stages);
    }
  }
}

static void test_registered_models_have_halves(void **state) {
  (void)state;
  for (size_t i = 0; i < pl_models.count; i++) {
    model_case c = rig_default(i);
    assert_true(c.type->split_tape_bytes != NULL && c.type->backward_input != NULL && c.type->backward_weight != NULL);
    compare("cpu", &c, 1);
  }
}

/* The comparison sees a weight half that is left out, and one out of turn. */
static void test_order_matters(void **state) {
  (void)state;
  for (size_t i = 0; i < CASES; i++) {
    if (cases[i].type == &pl_model_quadratic) continue; /* has no weight half */
    rig a, b;
    rig_open(&a, "cpu", cases[i].type, cases[i].config, 2);
    rig_open(&b, "cpu", cases[i].type, cases[i].config, 2);
    whole(&a, 3);
    fly(&b, "F0 F1 F2 I0 I1 I2 W0 W1");
    assert_false(same_gradients(&a, &b));
    fly(&b, "F0 F1 F2 I0 I1 I2 W2 W1 W0");
    assert_false(same_gradients(&a, &b));
    fly(&b, "F0 F1 F2 I2 I1 I0 W0 W1 W2");
    assert_false(same_gradients(&a, &b));
    rig_close(&a);
    rig_close(&b);
  }
}

/* Whether the weight half gives this segment's gradient: weights and biases of the linear maps. */
static bool is_late(const pl_segment *s) {
  bool linear_bias = s->kind == PL_SEGMENT_BIAS && strstr(s->name, "norm") == NULL;
  return s->kind == PL_SEGMENT_MATRIX || s->kind == PL_SEGMENT_HEAD || linear_bias;
}

static bool untouched(const rig *r, pl_real *const before[], size_t stage, size_t offset, size_t count) {
  return memcmp(r->g[stage] + offset, before[stage] + offset, count * sizeof(pl_real)) == 0;
}

/* Each gradient changes in one half and in that one only; `before` is what it was before this half. */
static void expect_changed(const rig *r, pl_real *const before[], bool late) {
  pl_tie tie;
  for (size_t p = 0; p < r->stages; p++) {
    for (size_t i = 0; i < r->layouts[p]->count; i++) {
      const pl_segment *s = &r->layouts[p]->segments[i];
      assert_int_equal(untouched(r, before, p, s->offset, s->rows * s->cols), is_late(s) != late);
    }
  }
  if (r->type->tie == NULL || !r->type->tie(r->model, &tie)) return;
  assert_int_equal(untouched(r, before, tie.head_stage, tie.head, tie.count), !late);
}

static void remember(rig *r, pl_real *const before[]) {
  for (size_t p = 0; p < r->stages; p++) memcpy(before[p], r->g[p], r->layouts[p]->grad_size * sizeof(pl_real));
}

static void run_halves(rig *r) {
  pl_err e = {0};
  flight f;
  pl_real *before[RIG_STAGES] = {NULL};
  for (size_t p = 0; p < r->stages; p++) {
    rig_ok(pl_alloc(r->layouts[p]->grad_size, sizeof(pl_real), "before", &before[p], &e));
  }
  take_off(r, 1, &f);
  for (size_t p = 0; p < r->stages; p++) pass(r, 'F', p, &f);
  rig_zero(r);
  for (size_t p = r->stages; p-- > 0;) pass(r, 'I', p, &f);
  download(r);
  expect_changed(r, before, false);
  remember(r, before);
  for (size_t p = 0; p < r->stages; p++) pass(r, 'W', p, &f);
  download(r);
  expect_changed(r, before, true);
  land(r, &f);
  for (size_t p = 0; p < r->stages; p++) pl_free(before[p]);
}

static void test_linear_maps_wait(void **state) {
  (void)state;
  for (size_t i = 0; i < CASES; i++) {
    for (size_t stages = 1; stages <= 3; stages += 2) {
      rig r;
      rig_open(&r, "cpu", cases[i].type, cases[i].config, stages);
      run_halves(&r);
      rig_close(&r);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_halves_keep_bits),
      cmocka_unit_test(test_registered_models_have_halves),
      cmocka_unit_test(test_order_matters),
      cmocka_unit_test(test_linear_maps_wait),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
