/* The finer points of an update, and what a run says and counts around it. */
#include "core/train/learning_rate.h"
#include "core/train/training.h"
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

static double nothing(int64_t step, size_t stage) {
  (void)step;
  (void)stage;
  return 0;
}

static double growing(int64_t step, size_t stage) {
  (void)stage;
  return -(double)(step + 1);
}

static double four_and_three(int64_t step, size_t stage) {
  (void)step;
  return stage == 0 ? 4 : 3;
}

static double bad_at_3(int64_t step, size_t stage) {
  (void)stage;
  return step == 3 ? (double)NAN : -1;
}

static double good_at_10_and_21(int64_t step, size_t stage) {
  (void)stage;
  return step == 10 || step >= 21 ? -1 : (double)NAN;
}

static void script_open(rig *r, const char *optimizer, const char *train, const char *rest) {
  char json[RIG_TEXT];
  snprintf(json, sizeof json,
           "{'model': 'script', 'data': 'none', 'optimizer': {'type': '%s', 'lr': 1}, 'train': {'lr_schedule': "
           "'constant', 'warmup': 0, 'clip': 0, 'batch_tokens': 1, %s}%s}",
           optimizer, train, rest);
  rig_open(r, &script_models, json);
}

static double weight(const rig *r, size_t stage, size_t stages) {
  return (double)r->weights[stage * (r->count / stages)];
}

/* Both forms spare the segments that take no decay. */
static void undecayed_segments(void **state) {
  (void)state;
  static const char *const forms[] = {"'steps': 1, 'weight_decay': 0.25, 'weight_decay_form': 'l2'",
                                      "'steps': 1, 'weight_decay': 0.25, 'weight_decay_form': 'decoupled'"};
  for (size_t i = 0; i < 2; i++) {
    rig r;
    the_script = (script){.loss = one, .gradient = nothing, .undecayed = {false, true}};
    script_open(&r, "sgd", forms[i], ", 'pipeline': {'stages': 2}");
    rig_train(&r);
    assert_true(weight(&r, 0, 2) == 0.75 && weight(&r, 1, 2) == 1);
    rig_close(&r);
  }
}

/* With a constant gradient Adam's every step is the rate, but only if its bias corrections count the same updates as
 * its moments: those that were made, not those that were skipped. */
static void skipped_updates_do_not_age_adam(void **state) {
  (void)state;
  rig r;
  the_script = (script){.loss = one, .gradient = bad_at_3};
  script_open(&r, "adamw", "'steps': 8, 'weight_decay': 0, 'nonfinite': 'skip'", "");
  rig_train(&r);
  assert_int_equal(r.outcome.skipped, 1);
  assert_true(fabs((double)r.weights[0] - 8) < 1e-5);
  rig_close(&r);
}

static void skips_apart_do_not_add_up(void **state) {
  (void)state;
  rig r;
  the_script = (script){.loss = one, .gradient = good_at_10_and_21};
  script_open(&r, "sgd", "'steps': 30, 'nonfinite': 'skip'", "");
  rig_train(&r);
  assert_int_equal(r.outcome.end, PL_END_DONE);
  assert_int_equal(r.outcome.skipped, 20);
  rig_close(&r);
}

/* A skipped update's loss is shown but is no peak: three of twenty updates would be more than 5%. */
static double infinite_at_times(int64_t step, size_t microbatch, size_t sequences) {
  (void)microbatch;
  return step > 0 && step % 6 == 1 ? (double)INFINITY : (double)sequences;
}

static void skipped_losses_are_no_peaks(void **state) {
  (void)state;
  rig r;
  the_script = (script){.loss = infinite_at_times, .gradient = nothing};
  script_open(&r, "sgd", "'steps': 20, 'nonfinite': 'skip'", "");
  rig_train(&r);
  assert_int_equal(r.outcome.end, PL_END_DONE);
  assert_int_equal(r.outcome.skipped, 4);
  assert_true(isinf(r.outcome.final_train_loss) && isinf(r.points[20].values[PL_SERIES_train_loss]));
  rig_close(&r);
}

static double scripted_validation(int64_t step, size_t microbatch, size_t sequences) {
  (void)microbatch;
  return step < 0 ? (double)NAN : (double)sequences;
}

static void best_validation_is_kept(void **state) {
  (void)state;
  rig r;
  the_script = (script){.loss = scripted_validation, .gradient = nothing, .val_loss = {2, 0.5, 3, 1}};
  script_open(&r, "sgd", "'steps': 6, 'val_every': 2", "");
  rig_train(&r);
  assert_true(r.outcome.initial_val_loss == 2 && r.outcome.best_val_loss == 0.5 && r.outcome.final_val_loss == 1);
  rig_close(&r);
  the_script = (script){.loss = scripted_validation, .gradient = nothing, .val_loss = {(double)NAN, 1, 2}};
  script_open(&r, "sgd", "'steps': 4, 'val_every': 2", "");
  rig_train(&r);
  assert_true(isnan(r.outcome.initial_val_loss) && r.outcome.end == PL_END_DONE);
  rig_close(&r);
}

static void figures_of_an_update(void **state) {
  (void)state;
  rig r;
  the_script = (script){.loss = one, .gradient = four_and_three};
  rig_open(&r, &script_models,
           "{'model': 'script', 'data': 'none', 'optimizer': 'sgd', 'train': {'steps': 1, 'batch_tokens': 1, 'warmup': "
           "0, 'clip': 1, 'clip_scope': 'stage'}, 'pipeline': {'stages': 2}}");
  rig_train(&r);
  assert_true(fabs(r.points[1].values[PL_SERIES_clip_scale] - 0.25) < 1e-6);
  rig_close(&r);
  /* u_t = -(t + 1), so that EF's v_t = 2 u_t - u_{t-1} = -(t + 2): the norm is that of v. */
  the_script = (script){.loss = one, .gradient = growing};
  rig_open(&r, &script_models,
           "{'model': 'script', 'data': 'none', 'optimizer': {'type': 'sgd', 'lr': 1, 'momentum': 0}, 'delay': 1, "
           "'correction': 'ef', 'train': {'steps': 4, 'batch_tokens': 1, 'warmup': 0, 'lr_schedule': 'constant', "
           "'clip': 0, 'weight_decay': 0}}");
  rig_train(&r);
  static const double norms[] = {1, 3, 4, 5};
  for (size_t t = 0; t < 4; t++) assert_true(fabs(r.points[t + 1].values[PL_SERIES_update_norm] - norms[t]) < near);
  rig_close(&r);
}

/* Muon's AdamW part has a rate of its own, for the decay too: with gradient 0 only the decay moves the embedding. */
static void own_rate_decays(void **state) {
  (void)state;
  rig plain, decayed;
  static const char json[] =
      "{'model': {'type': 'mlp', 'hidden': 6, 'embedding': 4, 'context': 4}, 'data': {'type': "
      "'synthetic', 'vocab': 8}, 'optimizer': {'type': 'muon', 'lr': 0.125, 'adamw.lr': 0.5}, "
      "'train': {'steps': 1, 'batch_tokens': 4, 'val_tokens': 4, 'warmup': 0, 'weight_decay': %s}}";
  char text[RIG_TEXT];
  snprintf(text, sizeof text, json, "0");
  rig_open(&plain, NULL, text);
  rig_train(&plain);
  snprintf(text, sizeof text, json, "0.25");
  rig_open(&decayed, NULL, text);
  rig_train(&decayed);
  const pl_training *t = NULL;
  pl_training *opened = NULL;
  pl_err e = {0};
  rig_must(pl_alloc(1, sizeof *opened, "test", &opened, &e), &e);
  rig_must(pl_training_open(&plain.args, opened, &e), &e);
  rig_must(pl_training_start(opened, &e), &e);
  t = opened;
  const pl_layout *l = t->stage[0].layout;
  const pl_real *x = pl_ring_newest(&t->stage[0].ring);
  for (size_t i = 0; i < l->count; i++) {
    const pl_segment *s = &l->segments[i];
    double rate = s->kind == PL_SEGMENT_MATRIX ? 0.125 : 0.5, decay = s->decay ? rate * 0.25 : 0;
    for (size_t j = s->offset; j < s->offset + s->rows * s->cols; j++)
      assert_true(fabs((double)(plain.weights[j] - decayed.weights[j]) - decay * (double)x[j]) < near);
  }
  pl_training_close(opened);
  pl_free(opened);
  rig_close(&decayed);
  rig_close(&plain);
}

/* Both copies of a tied matrix get the same gradient and have the same optimizer state, not only the same weights. */
static void tied_copies_share_the_gradient(void **state) {
  (void)state;
  rig r;
  pl_err e = {0};
  pl_training *t = NULL;
  rig_open(&r, NULL,
           "{'model': {'type': 'transformer', 'layers': 2, 'd_model': 8, 'heads': 2, 'tied': true, 'context': 8}, "
           "'data': {'type': 'synthetic', 'vocab': 16}, 'optimizer': 'adamw', 'delay': 1, 'correction': 'ef', 'train': "
           "{'steps': 4, 'batch_tokens': 16, 'val_tokens': 8}, 'pipeline': {'stages': 2}}");
  rig_must(pl_alloc(1, sizeof *t, "test", &t, &e), &e);
  rig_must(pl_training_open(&r.args, t, &e), &e);
  rig_must(pl_training_start(t, &e), &e);
  pl_training_begin(t, 0, false);
  while (t->last_boundary < 3) {
    bool moved = false;
    rig_must(pl_engine_step(t->replica[0].engine, &moved, &e), &e);
    rig_must(pl_work_advance(t, &moved, &e), &e);
    rig_must(pl_report_read(t, &moved, &e), &e);
    assert_true(moved);
  }
  const pl_tie *tie = &t->tie;
  assert_true(t->tied && tie->head_stage == 1 && tie->count == 16 * 8);
  for (size_t i = 0; i < t->stage[0].kept_count; i++)
    assert_memory_equal(t->stage[0].kept[i] + tie->embedding, t->stage[1].kept[i] + tie->head,
                        tie->count * sizeof(pl_real));
  assert_memory_not_equal(t->stage[0].state[0] + tie->embedding, t->stage[0].state[1] + tie->embedding,
                          tie->count * sizeof(pl_real));
  pl_training_close(t);
  pl_free(t);
  rig_close(&r);
}

/* A correction that stays on at delay 0 counts all updates, another one those since delay_start. */
static int64_t calls_seen[16];
static size_t call_count;
static bool stays_on;

static size_t no_arrays(const void *config, int64_t k) {
  (void)config;
  (void)k;
  return 0;
}

static void see_calls(const void *config, const pl_correction_call *c) {
  (void)config;
  calls_seen[call_count++] = c->calls;
}

static bool at_zero(const void *config) {
  (void)config;
  return stays_on;
}

static void correction_calls(void **state) {
  (void)state;
  for (int on = 0; on < 2; on++) {
    rig r;
    const pl_component *const lookahead = &((const pl_correction_type *)(const void *)pl_corrections.items[0])->base;
    pl_correction_type seen = {
        .base = *lookahead, .state_arrays = no_arrays, .displace = see_calls, .at_zero = at_zero};
    stays_on = on == 1;
    call_count = 0;
    the_script = (script){.loss = one, .gradient = nothing};
    script_open(&r, "sgd", "'steps': 6", ", 'delay': 2, 'delay_start': 2, 'correction': 'lookahead'");
    r.config.corrections[0].type = &seen.base;
    rig_train(&r);
    assert_int_equal(call_count, on ? 6 : 4);
    for (size_t i = 0; i < call_count; i++) assert_int_equal(calls_seen[i], i);
    rig_close(&r);
  }
}

/* f(x) = x^2 / 2 in one dimension: the loss tells y. Updates by hand, y by y_{t+1} = y_t - (what entered EF). */
static double y_after(int64_t steps, bool lookahead) {
  double x[16] = {1}, y = 1, p = 0, before = 0;
  for (int64_t t = 0; t < steps; t++) {
    double u = 0.125 * x[t > 0 ? t - 1 : 0];
    if (lookahead) {
      p = 0.9 * p - 0.1 * u;
      u = 0.1 * u - 0.9 * p;
    }
    if (t == 0) y = 1 + u; /* copies of u_0 before it */
    x[t + 1] = x[t] - (2 * u - (t == 0 ? u : before));
    y -= u;
    before = u;
  }
  return y;
}

static void y_is_where_the_chain_ends_with_it(void **state) {
  (void)state;
  static const struct {
    const char *correction;
    bool lookahead, defined;
  } cases[] = {
      {"'ef'", false, true},          {"['lookahead', 'ef']", true, true}, {"['ef', 'lookahead']", false, false},
      {"['ef', 'ef']", false, false}, {"'lookahead'", false, false},       {"'none'", false, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rig r;
    char json[RIG_TEXT];
    snprintf(
        json, sizeof json,
        "{'model': {'type': 'quadratic', 'dim': 1, 'spectrum': 'constant', 'init_value': 1}, 'data': 'none', "
        "'optimizer': {'type': 'sgd', 'lr': 0.125, 'momentum': 0}, 'delay': 1, 'correction': %s, 'train': {'steps': "
        "7, 'batch_tokens': 1, 'warmup': 0, 'lr_schedule': 'constant', 'clip': 0, 'weight_decay': 0}}",
        cases[i].correction);
    rig_open(&r, NULL, json);
    rig_train(&r);
    double y = y_after(7, cases[i].lookahead), found = r.outcome.val_loss_y;
    assert_true(cases[i].defined ? fabs(found - y * y / 2) < near : isnan(found));
    assert_false(cases[i].defined && fabs(found - r.outcome.final_val_loss) < 1e-4);
    rig_close(&r);
  }
}

static void warmup_in_updates(void **state) {
  (void)state;
  static const struct {
    double warmup;
    int64_t steps, updates;
  } cases[] = {{0, 5, 0},    {0.1, 5, 1}, {0.1, 14, 1}, {0.1, 16, 2}, {0.1, 1200, 120},
               {0.1, 4, 0},  {1, 5, 1},   {2, 5, 2},    {4, 5, 4},    {5, 5, 5},
               {9e15, 5, 5}, {0.5, 1, 1}, {0.09, 5, 0}, {0.95, 5, 5}, {120, 1200, 120}};
  rig r;
  the_script = (script){.loss = one, .gradient = nothing};
  script_open(&r, "sgd", "'steps': 5", "");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pl_err e = {0};
    r.config.train.warmup = cases[i].warmup;
    r.config.train.steps = cases[i].steps;
    assert_int_equal(pl_warmup_updates(&r.config), cases[i].updates);
    assert_int_equal(pl_run_config_check(&r.config, &e), cases[i].updates < cases[i].steps ? PL_OK : PL_BAD);
  }
  r.config.train.warmup = 2;
  r.config.train.steps = 5;
  assert_true(pl_learning_rate(&r.config, 0) == 0.5 && pl_learning_rate(&r.config, 1) == 1);
  rig_close(&r);
}

/* Weights of zero know nothing: the loss is ln(vocab) per token, in training and in validation, whatever the cut. */
static void losses_are_per_token(void **state) {
  (void)state;
  for (int microbatches = 1; microbatches <= 3; microbatches++) {
    rig r;
    char json[RIG_TEXT];
    snprintf(json, sizeof json,
             "{'model': {'type': 'mlp', 'hidden': 6, 'context': 4, 'init_gain': 0}, 'data': {'type': 'synthetic', "
             "'vocab': 16}, 'optimizer': 'sgd', 'train': {'steps': 1, 'batch_tokens': 20, 'val_tokens': 28}, "
             "'pipeline': {'microbatches': %d}}",
             microbatches);
    rig_open(&r, NULL, json);
    rig_train(&r);
    assert_true(fabs(r.outcome.initial_val_loss - log(16)) < near);
    assert_true(fabs(r.points[1].values[PL_SERIES_train_loss] - log(16)) < near);
    rig_close(&r);
  }
}

/* Layer i of n belongs to stage p of P when floor(n p / P) <= i < floor(n (p + 1) / P); the data seed is the run's seed
 * unless it is given, and 0 is given. */
static void layers_and_seeds(void **state) {
  (void)state;
  static const struct {
    const char *given;
    uint64_t seed;
  } cases[] = {{"", 5}, {", 'data_seed': -1", 5}, {", 'data_seed': 0", 0}, {", 'data_seed': 7", 7}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rig r;
    pl_err e = {0};
    pl_training *t = NULL;
    char json[RIG_TEXT];
    snprintf(
        json, sizeof json,
        "{'model': {'type': 'mlp', 'layers': 7, 'hidden': 6, 'context': 4}, 'data': {'type': 'synthetic', 'vocab': "
        "16}, 'optimizer': 'sgd', 'seed': 5, 'train': {'steps': 1, 'batch_tokens': 4, 'val_tokens': 4%s}, "
        "'pipeline': {'stages': 3, 'partition': 'even'}}",
        cases[i].given);
    rig_open(&r, NULL, json);
    rig_must(pl_alloc(1, sizeof *t, "test", &t, &e), &e);
    rig_must(pl_training_open(&r.args, t, &e), &e);
    static const size_t first[] = {0, 2, 4, 7};
    assert_memory_equal(t->first_layer, first, sizeof first);
    assert_true(t->batches.data_seed == cases[i].seed);
    pl_training_close(t);
    pl_free(t);
    rig_close(&r);
  }
}

/* The update that ends a run is in its log, also between two that are due. */
static double always_bad(int64_t step, size_t stage) {
  (void)step;
  (void)stage;
  return (double)NAN;
}

static void last_point_of_a_halted_run(void **state) {
  (void)state;
  rig r;
  the_script = (script){.loss = one, .gradient = always_bad};
  script_open(&r, "sgd", "'steps': 40, 'nonfinite': 'skip', 'log_every': 7", "");
  rig_train(&r);
  assert_int_equal(r.outcome.end, PL_END_DIVERGED);
  assert_int_equal(r.point_count, 4);
  assert_int_equal(r.points[2].step, 14);
  assert_int_equal(r.points[3].step, 20);
  rig_close(&r);
}

#define LOOKED_AT                                                                                                      \
  "{'model': {'type': 'transformer', 'layers': 4, 'd_model': 16, 'heads': 2, 'kv_heads': 1, 'context': 8, 'tied': "    \
  "true}, 'data': {'type': 'synthetic', 'vocab': 16}, 'optimizer': {'type': '%s', 'lr': 0.01}, 'correction': "         \
  "[{'type': 'lookahead', 'at_zero': true}, {'type': 'ef', 'form': 'block'}], 'delay': [3, 0], 'delay_start': 2, "     \
  "'simulate_only': true, 'train': {'steps': 9, 'batch_tokens': 40, 'val_tokens': 72, 'clip': 0.5%s}, 'pipeline': "    \
  "{'stages': 2, 'microbatches': 3}}"

/* Neither validation nor the log nor a device that fills free memory with NaN changes a bit of a training. */
static void looking_changes_nothing(void **state) {
  (void)state;
  static const char *const optimizers[] = {"sgd", "adamw", "muon"};
  static const struct {
    const char *device, *train;
  } others[] = {{"cpu", ", 'val_every': 1"},
                {"cpu", ", 'val_every': 4, 'log_every': 3"},
                {"paranoid", ""},
                {"paranoid", ", 'val_every': 2"},
                {"cpu", ""}};
  for (size_t o = 0; o < sizeof optimizers / sizeof *optimizers; o++) {
    rig plain, other;
    char json[RIG_TEXT];
    snprintf(json, sizeof json, LOOKED_AT, optimizers[o], "");
    rig_open(&plain, NULL, json);
    rig_train(&plain);
    assert_true(isfinite(plain.outcome.val_loss_y));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
      snprintf(json, sizeof json, LOOKED_AT, optimizers[o], others[i].train);
      rig_open_on(&other, others[i].device, NULL, json);
      rig_train(&other);
      assert_true(rig_same_weights(&plain, &other));
      assert_true(plain.outcome.final_val_loss == other.outcome.final_val_loss);
      assert_true(plain.outcome.val_loss_y == other.outcome.val_loss_y);
      assert_true(plain.outcome.final_train_loss == other.outcome.final_train_loss);
      rig_close(&other);
    }
    rig_close(&plain);
  }
}

static void rules_are_said(void **state) {
  (void)state;
  static const struct {
    const char *model, *optimizer, *table;
  } cases[] = {
      {"'layers': 12, 'tied': true", "{'type': 'muon', 'lr': 0.5, 'adamw.lr': 0.125}",
       "optimizer muon: rule adamw with 0.25 times the learning rate takes 328 parameters: embedding, "
       "layers.*.attention_norm, layers.*.mlp_norm, final_norm\n"
       "optimizer muon: rule muon takes 9984 parameters: layers.*.attention.q, layers.*.attention.k, "
       "layers.*.attention.v, layers.*.attention.o, layers.*.mlp.gate, layers.*.mlp.up, layers.*.mlp.down\n"},
      {"'layers': 2, 'norm': 'layernorm', 'positions': 'learned', 'activation': 'gelu', 'bias': true", "'adamw'",
       "optimizer adamw: rule adamw takes 2048 parameters: embedding, positions, layers.*.attention_norm, "
       "layers.*.attention_norm.bias, layers.*.attention.q, layers.*.attention.q.bias, layers.*.attention.k, "
       "layers.*.attention.k.bias, layers.*.attention.v, layers.*.attention.v.bias, layers.*.attention.o, "
       "layers.*.attention.o.bias, layers.*.mlp_norm, layers.*.mlp_norm.bias, layers.*.mlp.in, layers.*.mlp.in.bias, "
       "layers.*.mlp.out, layers.*.mlp.out.bias, final_norm, final_norm.bias, head\n"}};
  for (size_t i = 0; i < 2; i++)
    for (int stages = 1; stages <= 2; stages++) {
      rig r;
      char json[RIG_TEXT];
      snprintf(json, sizeof json,
               "{'model': {'type': 'transformer', 'd_model': 8, 'heads': 2, 'context': 4, %s}, 'data': {'type': "
               "'synthetic', 'vocab': 16}, 'optimizer': %s, 'train': {'steps': 1, 'batch_tokens': 4, 'val_tokens': 4}, "
               "'pipeline': {'stages': %d}}",
               cases[i].model, cases[i].optimizer, stages);
      rig_open(&r, NULL, json);
      rig_train(&r);
      assert_string_equal(r.table, cases[i].table);
      rig_close(&r);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(undecayed_segments),        cmocka_unit_test(skipped_updates_do_not_age_adam),
      cmocka_unit_test(skips_apart_do_not_add_up), cmocka_unit_test(skipped_losses_are_no_peaks),
      cmocka_unit_test(best_validation_is_kept),   cmocka_unit_test(figures_of_an_update),
      cmocka_unit_test(own_rate_decays),           cmocka_unit_test(tied_copies_share_the_gradient),
      cmocka_unit_test(correction_calls),          cmocka_unit_test(y_is_where_the_chain_ends_with_it),
      cmocka_unit_test(warmup_in_updates),         cmocka_unit_test(losses_are_per_token),
      cmocka_unit_test(layers_and_seeds),          cmocka_unit_test(last_point_of_a_halted_run),
      cmocka_unit_test(looking_changes_nothing),   cmocka_unit_test(rules_are_said),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
