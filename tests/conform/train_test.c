/* The trainer's rules: clipping, microbatches, stages, non-finite updates, divergence, the log. */
#include "tests/conform/train_script.h"

#ifdef PL_F64
static const double near = 1e-12;
#else
static const double near = 1e-6;
#endif

static double one(int64_t step, size_t microbatch, size_t sequences) {
  (void)step;
  (void)microbatch;
  return (double)sequences;
}

static double flat(int64_t step, size_t stage) {
  (void)step;
  (void)stage;
  return 0.5;
}

static void script_open(rig *r, const char *train, const char *rest) {
  char json[RIG_TEXT];
  snprintf(json, sizeof json,
           "{'model': 'script', 'data': 'none', 'optimizer': {'type': 'sgd', 'lr': 1, 'momentum': 0}, 'train': "
           "{'lr_schedule': 'constant', 'warmup': 0, 'weight_decay': 0, %s}%s}",
           train, rest);
  rig_open(r, &script_models, json);
}

static double weight(const rig *r, size_t stage) { return (double)r->weights[stage * (r->count / 4)]; }

/* Users' finding O10: two stages with gradient norms 3 and 4, clip 1. */
static double three_and_four(int64_t step, size_t stage) {
  (void)step;
  return stage == 0 ? 3 : 4;
}

static void clip_scopes(void **state) {
  (void)state;
  rig r;
  the_script = (script){.loss = one, .gradient = three_and_four};
  script_open(&r, "'steps': 1, 'batch_tokens': 1, 'clip': 1, 'clip_scope': 'global'", ", 'pipeline': {'stages': 2}");
  rig_train(&r);
  const double global = 1 / (5 + 1e-6);
  assert_true(fabs((double)r.weights[0] - (1 - 3 * global)) < near);
  assert_true(fabs((double)r.weights[r.count / 2] - (1 - 4 * global)) < near);
  assert_true(fabs(r.points[1].values[PL_SERIES_grad_norm] - 5) < near);
  assert_true(fabs(r.points[1].values[PL_SERIES_clip_scale] - 0.2) < 1e-6);
  rig_close(&r);
  script_open(&r, "'steps': 1, 'batch_tokens': 1, 'clip': 1, 'clip_scope': 'stage'", ", 'pipeline': {'stages': 2}");
  rig_train(&r);
  assert_true(fabs((double)r.weights[0] - (1 - 3 / (3 + 1e-6))) < near);
  assert_true(fabs((double)r.weights[r.count / 2] - (1 - 4 / (4 + 1e-6))) < near);
  assert_true(fabs(r.points[1].values[PL_SERIES_clip_scale] - 0.25) < 1e-6);
  rig_close(&r);
  script_open(&r, "'steps': 1, 'batch_tokens': 1, 'clip': 0", ", 'pipeline': {'stages': 2}");
  rig_train(&r);
  assert_true(fabs((double)r.weights[0] + 2) < near && fabs((double)r.weights[r.count / 2] + 3) < near);
  assert_true(fabs(r.points[1].values[PL_SERIES_update_norm] - 5) < near);
  rig_close(&r);
}

/* Users' finding O20: sums of 3 over two tokens and 2 over one are 5/3 per token, not the mean of means 1.75. */
static double ragged(int64_t step, size_t microbatch, size_t sequences) {
  if (step < 0) return (double)sequences;
  assert_int_equal(sequences, microbatch == 0 ? 2 : 1);
  return microbatch == 0 ? 3 : 2;
}

static void ragged_microbatches(void **state) {
  (void)state;
  rig r;
  the_script = (script){.loss = ragged, .gradient = flat};
  script_open(&r, "'steps': 1, 'batch_tokens': 3, 'clip': 0", ", 'pipeline': {'microbatches': 2}");
  rig_train(&r);
  assert_true(fabs(r.points[1].values[PL_SERIES_train_loss] - 5.0 / 3) < 1e-15);
  assert_true(fabs((double)r.weights[0] - 0.5) < near);
  assert_int_equal(r.outcome.tokens, 3);
  rig_close(&r);
}

/* One batch cut into 1, 3 and 5 microbatches is the same update up to rounding, and not otherwise. */
static void microbatches_do_not_change_the_update(void **state) {
  (void)state;
  const char *const cuts[] = {"1", "3", "5"};
  rig first, other;
  char json[RIG_TEXT];
  for (size_t i = 0; i < 3; i++) {
    snprintf(
        json, sizeof json,
        "{'model': {'type': 'mlp', 'layers': 2, 'hidden': 12, 'context': 8}, 'data': {'type': 'synthetic', 'vocab': "
        "16}, 'optimizer': {'type': 'sgd', 'lr': 0.1}, 'train': {'steps': 3, 'batch_tokens': 40, 'val_tokens': "
        "72}, 'pipeline': {'microbatches': %s}}",
        cuts[i]);
    rig *r = i == 0 ? &first : &other;
    rig_open(r, NULL, json);
    rig_train(r);
    if (i == 0) continue;
    assert_false(rig_same_weights(&first, &other));
    double worst = 0;
    for (size_t j = 0; j < first.count; j++) worst = fmax(worst, fabs((double)(first.weights[j] - other.weights[j])));
    assert_true(worst < 10 * near);
    assert_true(fabs(first.outcome.final_val_loss - other.outcome.final_val_loss) < 10 * near);
    rig_close(&other);
  }
  rig_close(&first);
}

static void splitting_into_stages(const char *tied, const char *delay) {
  static const char *const stages[] = {"1", "2", "4"};
  rig first, other;
  char json[RIG_TEXT];
  for (size_t i = 0; i < 3; i++) {
    snprintf(
        json, sizeof json,
        "{'model': {'type': 'transformer', 'layers': 4, 'd_model': 16, 'heads': 2, 'context': 8, 'tied': %s}, 'data': "
        "{'type': 'synthetic', 'vocab': 16}, 'optimizer': {'type': 'adamw', 'lr': 0.01}, %s, 'train': {'steps': 6, "
        "'batch_tokens': 40, 'val_tokens': 72, 'val_every': 2, 'clip': 0.5}, 'pipeline': {'stages': %s, "
        "'microbatches': 2}}",
        tied, delay, stages[i]);
    rig *r = i == 0 ? &first : &other;
    rig_open(r, NULL, json);
    rig_train(r);
    if (i == 0) continue;
    assert_int_equal(first.point_count, other.point_count);
    for (size_t j = 0; j < first.point_count; j++)
      assert_true(rig_same(first.points[j].values, other.points[j].values, PL_SERIES_seconds * sizeof(double)));
    if (strcmp(tied, "false") == 0) assert_true(rig_same_weights(&first, &other));
    rig_close(&other);
  }
  rig_close(&first);
}

static void stages_do_not_change_a_bit(void **state) {
  (void)state;
  splitting_into_stages("false", "'delay': 0");
  splitting_into_stages("false", "'delay': 1, 'correction': 'ef'");
  splitting_into_stages("false", "'delay': 3");
  splitting_into_stages("true", "'delay': 0");
  splitting_into_stages("true", "'delay': 2, 'correction': 'lookahead'");
}

static void train_quadratic(rig *r, const char *device, const char *rest) {
  char json[RIG_TEXT];
  snprintf(
      json, sizeof json,
      "{'model': {'type': 'quadratic', 'dim': 24, 'layers': 4, 'noise': 0.1}, 'data': 'none', 'optimizer': {'type': "
      "'adamw', 'lr': 0.05}, 'train': {'steps': 12, 'batch_tokens': 4, 'clip_scope': 'stage'}, %s}",
      rest);
  rig_open_on(r, device, NULL, json);
  rig_train(r);
}

/* At delay 0 every correction is the identity, on each stage of a profile by itself. */
static void corrections_are_identity_at_delay_0(void **state) {
  (void)state;
  rig plain, other;
  static const char *const others[] = {"'delay': 0, 'correction': 'ef'",
                                       "'delay': 0, 'correction': 'lookahead'",
                                       "'delay': 0, 'correction': ['ef', 'lookahead']",
                                       "'delay': 5, 'delay_start': 12",
                                       "'delay': 5, 'delay_start': 12, 'correction': 'ef'",
                                       "'delay': [0]"};
  train_quadratic(&plain, "cpu", "'delay': 0");
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    train_quadratic(&other, "cpu", others[i]);
    assert_true(rig_same_weights(&plain, &other));
    rig_close(&other);
  }
  train_quadratic(&other, "cpu", "'delay': 0, 'correction': {'type': 'lookahead', 'at_zero': true}");
  assert_false(rig_same_weights(&plain, &other));
  rig_close(&other);
  rig_close(&plain);
}

static void paranoid_device_gives_the_same_bits(void **state) {
  (void)state;
  rig plain, other;
  static const char rest[] = "'delay': 'pipedream', 'correction': 'ef', 'pipeline': {'stages': 4, 'microbatches': 2}";
  train_quadratic(&plain, "cpu", rest);
  train_quadratic(&other, "paranoid", rest);
  assert_true(rig_same_weights(&plain, &other));
  rig_close(&other);
  rig_close(&plain);
}

static void profile_is_measured(void **state) {
  (void)state;
  rig r;
  train_quadratic(&r, "cpu", "'delay': 'pipedream', 'pipeline': {'stages': 4}");
  static const double mean[] = {0, 0.75, 1.25, 1.5, 1.5}; /* of min(t, 3), min(t, 2), min(t, 1), 0 */
  for (int64_t t = 0; t < 12; t++) {
    const pl_point *p = &r.points[t + 1];
    assert_int_equal(p->step, t + 1);
    assert_int_equal(p->tokens, 4 * (t + 1));
    assert_true(p->values[PL_SERIES_delay] == (double)(t < 3 ? t : 3));
    assert_true(p->values[PL_SERIES_delay_mean] == mean[t < 4 ? t : 4]);
  }
  rig_close(&r);
}

/* What each stage reads, by its own weight: with gradient -1 and rate 1 the weight after t updates is 1 + t. */
static double minus_one(int64_t step, size_t stage) {
  (void)step;
  (void)stage;
  return -1;
}

static const int64_t profile[SCRIPT_STAGES] = {3, 0, 2, 1};
static int64_t delay_start;

static void reads_right_version(int64_t step, size_t stage, double w) {
  int64_t version = step < delay_start ? step : step - profile[stage];
  if (step >= delay_start && version < delay_start) version = delay_start;
  assert_true(w == (double)(1 + version));
}

static void stages_read_their_versions(void **state) {
  (void)state;
  rig r;
  for (delay_start = 0; delay_start <= 4; delay_start += 2) {
    char rest[256];
    snprintf(rest, sizeof rest,
             ", 'delay': [3, 0, 2, 1], 'delay_start': %d, 'pipeline': {'stages': 4, 'microbatches': 2}",
             (int)delay_start);
    the_script = (script){.loss = one, .gradient = minus_one, .seen = reads_right_version};
    script_open(&r, "'steps': 10, 'batch_tokens': 2, 'clip': 0", rest);
    rig_train(&r);
    for (size_t p = 0; p < 4; p++) assert_true(weight(&r, p) == 11);
    rig_close(&r);
  }
}

static double bad_at_3(int64_t step, size_t stage) { return step == 3 && stage == 1 ? (double)NAN : -1; }
static double bad_loss_at_3(int64_t step, size_t microbatch, size_t sequences) {
  return step == 3 && microbatch == 1 ? (double)INFINITY : (double)sequences;
}
static double bad_from_0(int64_t step, size_t stage) {
  (void)step;
  (void)stage;
  return (double)INFINITY;
}
static double bad_for_20(int64_t step, size_t stage) {
  (void)stage;
  return step >= 5 && step < 25 ? (double)NAN : -1;
}
static double bad_for_19(int64_t step, size_t stage) {
  (void)stage;
  return step >= 5 && step < 24 ? (double)NAN : -1;
}

static void nonfinite_stops(void **state) {
  (void)state;
  rig r;
  const script scripts[] = {{.loss = one, .gradient = bad_at_3}, {.loss = bad_loss_at_3, .gradient = minus_one}};
  for (size_t i = 0; i < 2; i++) {
    the_script = scripts[i];
    script_open(&r, "'steps': 10, 'batch_tokens': 2, 'clip': 0",
                ", 'delay': 1, 'pipeline': {'stages': 2, 'microbatches': 2}");
    rig_train(&r);
    assert_int_equal(r.outcome.end, PL_END_DIVERGED);
    assert_int_equal(r.outcome.first_bad_step, 3);
    assert_int_equal(r.outcome.steps, 3);
    assert_int_equal(r.outcome.tokens, 6);
    assert_true((double)r.weights[0] == 4);
    assert_int_equal(r.point_count, 4);
    assert_true(isnan(r.outcome.final_val_loss));
    assert_non_null(strstr(r.outcome.reason, "update 3"));
    rig_close(&r);
  }
  the_script = (script){.loss = one, .gradient = bad_from_0};
  script_open(&r, "'steps': 10, 'batch_tokens': 1", "");
  rig_train(&r);
  assert_int_equal(r.outcome.end, PL_END_DIVERGED);
  assert_int_equal(r.outcome.first_bad_step, 0);
  assert_int_equal(r.outcome.steps, 0);
  rig_close(&r);
}

/* A skipped update leaves weights, momentum and EF's memory alone while version, data and rate go on. */
static void nonfinite_is_skipped(void **state) {
  (void)state;
  rig r;
  the_script = (script){.loss = one, .gradient = bad_at_3};
  script_open(&r, "'steps': 6, 'batch_tokens': 1, 'clip': 0, 'nonfinite': 'skip'",
              ", 'delay': 1, 'correction': 'ef', 'pipeline': {'stages': 2}");
  rig_train(&r);
  assert_int_equal(r.outcome.end, PL_END_DONE);
  assert_int_equal(r.outcome.skipped, 1);
  assert_int_equal(r.outcome.first_bad_step, 3);
  assert_int_equal(r.outcome.steps, 6);
  assert_true((double)r.weights[0] == 6 && (double)r.weights[r.count / 2] == 6);
  assert_true(r.points[4].values[PL_SERIES_update_norm] == 0);
  assert_int_equal(r.said, 1);
  rig_close(&r);
}

static void twenty_skips_in_a_row_diverge(void **state) {
  (void)state;
  rig r;
  the_script = (script){.loss = one, .gradient = bad_for_20};
  script_open(&r, "'steps': 40, 'batch_tokens': 1, 'clip': 0, 'nonfinite': 'skip'", "");
  rig_train(&r);
  assert_int_equal(r.outcome.end, PL_END_DIVERGED);
  assert_int_equal(r.outcome.steps, 25);
  assert_int_equal(r.outcome.skipped, 20);
  assert_int_equal(r.outcome.first_bad_step, 5);
  rig_close(&r);
  the_script = (script){.loss = one, .gradient = bad_for_19};
  script_open(&r, "'steps': 40, 'batch_tokens': 1, 'clip': 0, 'nonfinite': 'skip'", "");
  rig_train(&r);
  assert_int_equal(r.outcome.end, PL_END_DONE);
  assert_int_equal(r.outcome.skipped, 19);
  rig_close(&r);
}

/* Validation losses from val_loss[]; train loss 1, but `high` for a number of updates. */
static double high;
static int64_t high_updates;

static double with_peaks(int64_t step, size_t microbatch, size_t sequences) {
  (void)microbatch;
  if (step < 0) return (double)NAN;
  return (double)sequences * (step >= 10 && step < 10 + high_updates ? high : 1);
}

static pl_end end_with(double first, double last, double peak, int64_t peaks, const char *reason) {
  rig r;
  high = peak;
  high_updates = peaks;
  the_script = (script){.loss = with_peaks, .gradient = flat, .val_loss = {first, last}};
  script_open(&r, "'steps': 100, 'batch_tokens': 1", "");
  rig_train(&r);
  pl_end end = r.outcome.end;
  assert_int_equal(r.outcome.steps, 100);
  assert_int_equal(r.outcome.first_bad_step, -1);
  assert_non_null(strstr(r.outcome.reason, reason));
  assert_true(end == PL_END_DIVERGED || r.outcome.reason[0] == '\0');
  rig_close(&r);
  return end;
}

static void divergence_is_judged_at_the_end(void **state) {
  (void)state;
  assert_int_equal(end_with(2, 1, 1, 0, ""), PL_END_DONE);
  assert_int_equal(end_with(2, 2, 1, 0, ""), PL_END_DONE);
  assert_int_equal(end_with(2, 2.5, 1, 0, "2.5"), PL_END_DIVERGED);
  assert_int_equal(end_with(2, (double)NAN, 1, 0, "not finite"), PL_END_DIVERGED);
  assert_int_equal(end_with(2, 1, 2.1, 4, ""), PL_END_DONE);
  assert_int_equal(end_with(2, 1, 2.1, 5, "5 of 100"), PL_END_DIVERGED);
  assert_int_equal(end_with(2, 1, 2.0, 50, ""), PL_END_DONE);
}

/* The forms of weight decay, from x_t: with gradient 0 decoupled decay shrinks by 1 - lr wd; l2 goes through the
 * optimizer, after clipping. */
static double nothing(int64_t step, size_t stage) {
  (void)step;
  (void)stage;
  return 0;
}

static void weight_decay_forms(void **state) {
  (void)state;
  static const char *const forms[] = {"decoupled", "l2"};
  for (size_t i = 0; i < 2; i++) {
    rig r;
    char json[RIG_TEXT];
    snprintf(
        json, sizeof json,
        "{'model': 'script', 'data': 'none', 'optimizer': {'type': 'sgd', 'lr': 0.5, 'momentum': 0.9}, 'delay': 2, "
        "'train': {'steps': 2, 'batch_tokens': 1, 'warmup': 0, 'lr_schedule': 'constant', 'clip': 0.001, "
        "'weight_decay': 0.2, 'weight_decay_form': '%s'}}",
        forms[i]);
    the_script = (script){.loss = one, .gradient = nothing};
    rig_open(&r, &script_models, json);
    rig_train(&r);
    /* l2: x_1 = 1 - 0.5 * 0.2 = 0.9; buffer 0.9 * 0.2 + 0.2 * 0.9 = 0.36; x_2 = 0.9 - 0.18. */
    assert_true(fabs((double)r.weights[0] - (i == 0 ? 0.9 * 0.9 : 0.72)) < near);
    rig_close(&r);
  }
}

static void log_has_one_point_per_update(void **state) {
  (void)state;
  rig r;
  the_script = (script){.loss = one, .gradient = flat};
  script_open(&r, "'steps': 10, 'batch_tokens': 1, 'val_every': 4, 'log_every': 3", ", 'delay': 1, 'correction': 'ef'");
  rig_train(&r);
  static const int64_t steps[] = {0, 3, 4, 6, 8, 9, 10};
  assert_int_equal(r.point_count, 7);
  for (size_t i = 0; i < 7; i++) {
    const pl_point *p = &r.points[i];
    assert_int_equal(p->step, steps[i]);
    assert_true(isnan(p->values[PL_SERIES_val_loss]) == (steps[i] % 4 != 0 && steps[i] != 10));
    assert_true(isnan(p->values[PL_SERIES_train_loss]) == (i == 0));
    assert_true(isnan(p->values[PL_SERIES_val_loss_y]) == (steps[i] != 10));
    assert_true(p->values[PL_SERIES_seconds] >= 0);
  }
  assert_true(r.outcome.val_loss_y == 1 && r.outcome.final_val_loss == 1 && r.outcome.initial_val_loss == 1);
  r.write_fails = true;
  pl_err e = {0};
  assert_int_equal(pl_train(&r.args, &r.outcome, &e), PL_FAIL);
  assert_string_equal(e.text, "the log is broken");
  rig_close(&r);
}

#define TIED                                                                                                           \
  "'model': {'type': 'transformer', 'layers': 4, 'd_model': 16, 'heads': 2, 'tied': true, 'context': 64}, 'data': "    \
  "'synthetic', 'optimizer': 'sgd'"

/* A tied head on a per-stage profile: the copy equals the original after every update. */
static void tied_copy_follows(void **state) {
  (void)state;
  rig r;
  rig_open(&r, NULL,
           "{" TIED ", 'train': {'steps': 7, 'batch_tokens': 128, 'val_tokens': 64, 'weight_decay': 0.1}, 'delay': "
           "[3, 2, 1, 0], 'correction': 'ef', 'simulate_only': true, 'pipeline': {'stages': 4}}");
  rig_train(&r);
  /* The embedding is the first segment; the copy lies somewhere in the last stage. */
  size_t n = 64 * 16;
  bool found = false;
  for (size_t i = n; i + n <= r.count && !found; i++) found = rig_same(r.weights, r.weights + i, n * sizeof *r.weights);
  assert_true(found);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(clip_scopes),
      cmocka_unit_test(ragged_microbatches),
      cmocka_unit_test(microbatches_do_not_change_the_update),
      cmocka_unit_test(stages_do_not_change_a_bit),
      cmocka_unit_test(corrections_are_identity_at_delay_0),
      cmocka_unit_test(paranoid_device_gives_the_same_bits),
      cmocka_unit_test(profile_is_measured),
      cmocka_unit_test(stages_read_their_versions),
      cmocka_unit_test(nonfinite_stops),
      cmocka_unit_test(nonfinite_is_skipped),
      cmocka_unit_test(twenty_skips_in_a_row_diverge),
      cmocka_unit_test(divergence_is_judged_at_the_end),
      cmocka_unit_test(weight_decay_forms),
      cmocka_unit_test(log_has_one_point_per_update),
      cmocka_unit_test(tied_copy_follows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
