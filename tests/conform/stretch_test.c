/* A step that goes over its arrays by stretches makes the same weights, to the bit, as one that takes them whole. */
#include "tests/conform/train_rig.h"

/* Trains with stretches of that many elements, 0: whole arrays. */
static void train(size_t stretch, double clip, const char *rest, rig *r, pl_ops *ops) {
  char json[RIG_TEXT];
  snprintf(json, sizeof json,
           "{'model': {'type': 'transformer', 'layers': 2, 'd_model': 16, 'heads': 2, 'context': 8}, 'data': {'type': "
           "'synthetic', 'vocab': 16}, 'train': {'steps': 6, 'batch_tokens': 16, 'warmup': 0, 'clip': %g, %s",
           clip, rest);
  rig_open(r, NULL, json);
  *ops = *r->device->ops;
  ops->stretch = stretch;
  r->device->ops = ops;
  rig_train(r);
}

static const char *const runs[] = {
    "'weight_decay_form': 'decoupled'}, 'optimizer': 'adamw', 'delay': 2, 'correction': 'ef'}",
    "'weight_decay_form': 'l2'}, 'optimizer': 'sgd', 'delay': 1, 'correction': ['lookahead', 'ef']}",
    "'weight_decay': 0}, 'optimizer': 'adamw', 'delay': [1, 0], 'simulate_only': true, 'pipeline': {'stages': 2}, "
    "'correction': {'type': 'ef', 'form': 'block'}}",
    "'weight_decay': 0.1}, 'optimizer': 'muon', 'delay': 1, 'correction': 'ef'}"};

static void stretches_change_no_bit(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
    rig whole, parts;
    pl_ops whole_ops, parts_ops;
    train(0, 0, runs[i], &whole, &whole_ops);
    train(48, 0, runs[i], &parts, &parts_ops); /* less than a row of most, and no divisor of them */
    assert_int_equal(whole.count, parts.count);
    assert_memory_equal(whole.weights, parts.weights, whole.count * sizeof *whole.weights);
    assert_true(whole.point_count == parts.point_count && whole.point_count > 0);
    static const pl_series norms[] = {PL_SERIES_grad_norm, PL_SERIES_update_norm, PL_SERIES_displacement_ratio};
    for (size_t p = 0; p < 3 * whole.point_count; p++) {
      const double x = whole.points[p / 3].values[norms[p % 3]], y = parts.points[p / 3].values[norms[p % 3]];
      assert_true((isnan(x) && isnan(y)) || fabs(x - y) <= 1e-12 * x);
    }
    rig_close(&whole);
    rig_close(&parts);
  }
}

/* The gradient's norm is added by stretches, so a clip that bites may round otherwise. */
static void a_clip_rounds(void **state) {
  (void)state;
  rig whole, parts;
  pl_ops whole_ops, parts_ops;
  train(0, 0.1, runs[0], &whole, &whole_ops);
  train(48, 0.1, runs[0], &parts, &parts_ops);
  for (size_t i = 0; i < whole.count; i++)
    assert_true(fabs((double)whole.weights[i] - (double)parts.weights[i]) < 1e-5);
  rig_close(&whole);
  rig_close(&parts);
}

/* The comparison sees one element that differs. */
static void a_difference_is_seen(void **state) {
  (void)state;
  rig a, b;
  pl_ops a_ops, b_ops;
  train(48, 0, runs[0], &a, &a_ops);
  train(48, 0, runs[1], &b, &b_ops);
  assert_memory_not_equal(a.weights, b.weights, a.count * sizeof *a.weights);
  rig_close(&a);
  rig_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stretches_change_no_bit),
      cmocka_unit_test(a_clip_rounds),
      cmocka_unit_test(a_difference_is_seen),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
