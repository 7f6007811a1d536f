#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "analysis_help.h"
#include "core/base/rng.h"

/* Losses of the 360M models and of the 10B mixture of experts (arXiv 2606.30634): one run each. */
static void papers_numbers_give_its_parts(void **state) {
  (void)state;
  static const struct {
    const char *optimizer;
    double sync, async, ef, part;
  } small[] = {{"adamw", 2.612, 2.890, 2.640, 0.90},
               {"muon", 2.578, 2.590, 2.583, 0.58},
               {"soap", 2.581, 2.608, 2.590, 0.67},
               {"adan", 2.641, 2.651, NAN, NAN}};
  pl_catalog c = fake_catalog("made-up");
  for (size_t i = 0; i < 4; i++) {
    fake_arm_run(&c, small[i].optimizer, 1e-3, "0", "\"none\"", 0, small[i].sync);
    fake_arm_run(&c, small[i].optimizer, 1e-3, "1", "\"none\"", 0, small[i].async);
    if (i < 3) fake_arm_run(&c, small[i].optimizer, 1e-3, "1", "\"ef\"", 0, small[i].ef);
  }
  const double large[] = {1.906, 1.911, 1.906};
  for (size_t i = 0; i < 3; i++)
    fake_run(&c, PL_RUN_DONE, large[i],
             "\"optimizer\": \"muon\", \"delay\": %d, \"correction\": \"%s\", \"train\": {\"steps\": 40000}", i > 0,
             i == 2 ? "ef" : "none");
  pl_analysis a = compute(&c, &(pl_gap_options){0});
  for (size_t i = 0; i < 3; i++) {
    const pl_gap_row *ef = row(&a, small[i].optimizer, "1", "ef");
    assert_true(fabs(ef->won_back.mean - small[i].part) < 0.005);
    assert_true(isnan(ef->won_back.low) && isnan(ef->gap.low) && isnan(ef->p) && !ef->gap_resolved);
    near(row(&a, small[i].optimizer, "1", "none")->gap.mean, small[i].async - small[i].sync);
  }
  char *text = sheet_text(&a, PL_SHEET_OVERVIEW);
  assert_non_null(strstr(text, "  adamw      1      2.6120   2.8900  +0.2780   2.6400 (90%)\n"));
  assert_non_null(strstr(text, "  muon       1      2.5780   2.5900  +0.0120   2.5830 (58%)\n"));
  assert_non_null(strstr(text, "  soap       1      2.5810   2.6080  +0.0270   2.5900 (67%)\n"));
  assert_non_null(strstr(text, "  adan       1      2.6410   2.6510  +0.0100              -\n"));
  assert_non_null(strstr(text, "  muon       1      1.9060   1.9110  +0.0050  1.9060 (100%)\n"));
  pl_str_free(&(pl_str){.text = text});
  text = sheet_text(&a, PL_SHEET_GAP);
  assert_null(strstr(text, "] "));
  assert_non_null(strstr(text, "no interval (n=1)"));
  pl_str_free(&(pl_str){.text = text});
  pl_analysis_free(&a);
  pl_catalog_free(&c);
}

/* Two rates, five seeds; by their means 4e-3 is best, by seed 0 alone 8e-3. */
static pl_catalog two_rates(void) {
  pl_catalog c = fake_catalog("made-up");
  for (int seed = 0; seed < 5; seed++)
    for (int delay = 0; delay < 2; delay++)
      for (int rate = 0; rate < 2; rate++) {
        double loss = 1.6 + 0.01 * seed + (0.1 + 0.002 * ((3 * seed) % 4)) * delay + 0.05 * rate;
        if (seed == 0 && rate == 1) loss -= 0.06;
        fake_arm_run(&c, "adamw", rate ? 8e-3 : 4e-3, delay ? "1" : "0", "\"none\"", seed, loss);
      }
  return c;
}

static void selection_seed_chooses_and_is_not_compared(void **state) {
  (void)state;
  pl_catalog c = two_rates();
  const int64_t zero = 0, seven = 7;
  pl_analysis a = compute(&c, &(pl_gap_options){0});
  assert_true(row(&a, "adamw", "1", "none")->lr == 4e-3);
  assert_int_equal(row(&a, "adamw", "1", "none")->gap.n, 5);
  pl_analysis_free(&a);
  a = compute(&c, &(pl_gap_options){.select_on = &zero, .at_key = "optimizer.lr", .at_value = 8e-3});
  const pl_gap_row *r = row(&a, "adamw", "1", "none");
  assert_true(r->lr == 8e-3 && r->gap.n == 4 && r->finished == 4 && r->total == 4);
  near(r->gap.mean, 0.1 + 0.002 * (3 + 2 + 1 + 0) / 4);
  assert_int_equal(a.rates.rows[0].seeds, 1);
  const pl_gap_row *fixed = &a.gap.rows[a.gap.count - 1]; /* nothing was chosen there */
  assert_true(fixed->reading == PL_READING_FIXED && fixed->gap.n == 5);
  pl_analysis_free(&a);
  fake_arm_run(&c, "muon", 4e-3, "0", "\"none\"", 0, 1.5);
  fake_arm_run(&c, "muon", 8e-3, "0", "\"none\"", 0, 1.4);
  fake_arm_run(&c, "muon", 4e-3, "0", "\"none\"", 1, 1.5);
  a = compute(&c, &(pl_gap_options){.select_on = &zero});
  assert_true(warned(&a, "muon sync: seed 0 chose optimizer.lr 0.008, where no other seed was run"));
  pl_analysis_free(&a);
  a = compute(&c, &(pl_gap_options){.select_on = &seven});
  assert_int_equal(a.gap.count, 0);
  assert_true(warned(&a, "adamw delay 1: seed 7 has no result, so it chooses no optimizer.lr"));
  pl_analysis_free(&a);
  pl_catalog_free(&c);
}

static const pl_rate_row *rate_row(const pl_analysis *a, const char *optimizer) {
  for (size_t i = 0; i < a->rates.count; i++)
    if (strcmp(a->rates.rows[i].arm->optimizer, optimizer) == 0) return &a->rates.rows[i];
  return NULL;
}

static void parabola_checks_the_grid(void **state) {
  (void)state;
  static const double rates[] = {1e-3, 2e-3, 4e-3, 8e-3};
  static const double inside[] = {2.65, 2.612, 2.63, 2.9}, off[] = {2.70, 2.50, 2.501, 3.5},
                      flat[] = {2.60, 2.50, 2.59, 2.599}, edge[] = {2.5, 2.6, 2.8, 3.1};
  pl_catalog c = fake_catalog("made-up");
  for (size_t i = 0; i < 4; i++) {
    fake_arm_run(&c, "adamw", rates[i], "0", "\"none\"", 0, inside[i]);
    fake_arm_run(&c, "muon", rates[i], "0", "\"none\"", 0, off[i]);
    fake_arm_run(&c, "soap", rates[i], "0", "\"none\"", 0, flat[i]);
    fake_arm_run(&c, "adan", rates[i], "0", "\"none\"", 0, edge[i]);
  }
  pl_analysis a = compute(&c, &(pl_gap_options){0});
  const pl_rate_row *r = rate_row(&a, "adamw");
  assert_int_equal(r->mark, PL_RATE_INSIDE);
  near(r->lr, 0.0022635252945476677); /* vectors/stats.json */
  near(r->predicted, 2.6111071428571435);
  near(r->steps_off, log2(0.0022635252945476677 / 2e-3));
  assert_true(isnan(pl_rate_beyond_edge(r)));
  r = rate_row(&a, "muon"); /* 2.70, 2.50, 2.501: vertex at 2e-3 * 2^0.495; nearly half a step */
  assert_int_equal(r->mark, PL_RATE_INSIDE);
  assert_int_equal(rate_row(&a, "soap")->mark, PL_RATE_FLAT);
  assert_true(warned(&a, "soap sync: the losses at the three best of 4 rates have no minimum"));
  r = rate_row(&a, "adan");
  assert_int_equal(r->mark, PL_RATE_EDGE_LOW);
  assert_true(pl_rate_beyond_edge(r) == 5e-4);
  assert_true(
      warned(&a, "adan sync: the best optimizer.lr 0.001 is the lowest of 0.001 .. 0.008; extend the axis down"));
  pl_analysis_free(&a);
  pl_catalog_free(&c);
}

/* The three best rates lie on one side of the best: they point beyond it. */
static void parabola_points_elsewhere(void **state) {
  (void)state;
  static const double losses[] = {2.14, 2.05, 2.00, 3.00};
  pl_catalog c = fake_catalog("made-up");
  for (int i = 0; i < 4; i++) fake_arm_run(&c, "adamw", 1e-3 * (1 << i), "0", "\"none\"", 0, losses[i]);
  pl_analysis a = compute(&c, &(pl_gap_options){0});
  const pl_rate_row *r = rate_row(&a, "adamw");
  assert_int_equal(r->mark, PL_RATE_OFF);
  near(r->steps_off, 0.75);
  assert_true(warned(&a, "minimum at optimizer.lr 0.00673, "));
  pl_analysis_free(&a);
  pl_catalog_free(&c);
}

static void families_are_adjusted_by_group(void **state) {
  (void)state;
  pl_catalog c = two_rates();
  pl_analysis a = compute(&c, &(pl_gap_options){0});
  double alone = row(&a, "adamw", "1", "none")->p_holm, gap = row(&a, "adamw", "1", "none")->gap.mean;
  assert_true(alone == row(&a, "adamw", "1", "none")->p && alone > 0 && alone < 1e-4);
  pl_analysis_free(&a);
  /* An unrelated sweep, here of other lengths, changes no number. */
  for (int seed = 0; seed < 3; seed++)
    for (int delay = 0; delay < 2; delay++)
      fake_run(&c, PL_RUN_DONE, 3 + 0.01 * seed + delay * (0.001 + 0.001 * seed),
               "\"optimizer\": \"muon\", \"delay\": %d, \"seed\": %d, \"train\": {\"steps\": 50}", delay, seed);
  a = compute(&c, &(pl_gap_options){0});
  assert_true(row(&a, "adamw", "1", "none")->p_holm == alone && row(&a, "adamw", "1", "none")->gap.mean == gap);
  pl_analysis_free(&a);
  /* Another arm in the table does. */
  for (int seed = 0; seed < 5; seed++)
    fake_arm_run(&c, "adamw", 4e-3, "2", "\"none\"", seed, 1.8 + 0.05 * ((2 * seed) % 5));
  a = compute(&c, &(pl_gap_options){0});
  assert_true(row(&a, "adamw", "1", "none")->p_holm > alone);
  near(row(&a, "adamw", "1", "none")->p, alone);
  pl_analysis_free(&a);
  pl_catalog_free(&c);
}

static void gaps_along_an_axis_get_a_line(void **state) {
  (void)state;
  pl_catalog c = fake_catalog("made-up");
  const double noise[] = {0.004, -0.003, 0.001, -0.002};
  for (int seed = 0; seed < 4; seed++)
    for (int k = 0; k < 4; k++) {
      char delay[16];
      int d = k == 3 ? 4 : k;
      snprintf(delay, sizeof delay, "%d", d);
      double own = d * (0.05 + noise[seed]); /* each seed has a slope of its own */
      fake_arm_run(&c, "adamw", 4e-3, delay, "\"none\"", seed, 1.6 + 0.01 * seed + own);
    }
  const char *const against[] = {"delay", NULL}, *const wrong[] = {"model.width", NULL};
  pl_analysis a = compute(&c, &(pl_gap_options){.against = against});
  assert_int_equal(a.against.count, 1);
  assert_int_equal(a.against.point_count, 3);
  const pl_against_series *s = &a.against.series[0];
  double slopes[4];
  for (size_t i = 0; i < 4; i++) slopes[i] = 0.05 + noise[i];
  pl_estimate expected = pl_estimate_of(slopes, 4);
  assert_int_equal(s->seeds, 4);
  near(s->slope.mean, expected.mean);
  near(s->slope.low, expected.low);
  near(s->slope.high, expected.high);
  near(s->intercept, 0);
  pl_analysis_free(&a);
  pl_err e = {0};
  assert_int_equal(pl_analysis_run(&c, NULL, &(pl_gap_options){.against = wrong}, &a, &e), PL_BAD);
  assert_string_equal(e.text, "--against model.width: no run has a number of that name");
  pl_catalog_free(&c);
}

/* One seed: the interval is from the scatter. Other keys may go along with the axis. */
static void momentum_is_fitted_as_memory(void **state) {
  (void)state;
  pl_catalog c = fake_catalog("made-up");
  const double beta[] = {0.5, 0.8, 0.9, 0.95};
  for (int i = 0; i < 4; i++)
    for (int delay = 0; delay < 2; delay++)
      fake_run(
          &c, PL_RUN_DONE, 1.6 + 0.1 * i + delay * (0.02 + 0.003 / (1 - beta[i])),
          "\"optimizer\": {\"type\": \"adamw\", \"lr\": 0.004, \"beta1\": %g}, \"delay\": %d, \"train\": {\"steps\": "
          "%d}",
          beta[i], delay, 100 + i);
  const char *const alone[] = {"optimizer.beta1", NULL}, *const along[] = {"optimizer.beta1", "train.steps", NULL};
  pl_analysis a = compute(&c, &(pl_gap_options){.against = alone});
  assert_int_equal(a.against.count, 4); /* each its own series: the lengths differ */
  assert_true(isnan(a.against.series[0].slope.mean));
  pl_analysis_free(&a);
  a = compute(&c, &(pl_gap_options){.against = along});
  assert_int_equal(a.against.count, 1);
  const pl_against_series *s = &a.against.series[0];
  assert_true(a.against.inverted && s->seeds == 0 && s->slope.n == 4);
  near(s->slope.mean, 0.003);
  near(s->intercept, 0.02);
  near(s->slope.high, 0.003);
  char *text = sheet_text(&a, PL_SHEET_SLOPES);
  assert_non_null(strstr(text, "0.5 .. 0.95 (4)"));
  assert_non_null(strstr(text, "scatter of 4 values"));
  pl_str_free(&(pl_str){.text = text});
  pl_analysis_free(&a);
  pl_catalog_free(&c);
}

/* fake_journal falls from 5.5 to the final loss, validated every 100 of 1200 updates of 1024 tokens. */
static void curves_tell_tokens_to_a_loss(void **state) {
  (void)state;
  char dir[] = "/tmp/pl_reach_XXXXXX";
  assert_non_null(mkdtemp(dir));
  pl_catalog c = fake_catalog(dir);
  for (int seed = 0; seed < 3; seed++)
    for (int k = 0; k < 3; k++)
      fake_run(
          &c, PL_RUN_DONE, 1.5 + 0.1 * k + 0.001 * seed,
          "\"optimizer\": \"adamw\", \"delay\": %d, \"correction\": \"%s\", \"seed\": %d, \"pipeline\": {\"stages\": "
          "2, \"microbatches\": 8}, \"train\": {\"steps\": 1200, \"val_every\": 100}",
          k > 0, k == 2 ? "ef" : "none", seed);
  for (size_t i = 0; i < c.count; i++) {
    c.runs[i].result.outcome.tokens = 1200 * 1024;
    fake_journal(&c, &c.runs[i]);
  }
  pl_analysis a = compute(&c, &(pl_gap_options){0});
  near(reach(&a, "0", "none")->target, 1.502); /* the worst synchronous seed */
  assert_int_equal(reach(&a, "0", "none")->reached, 3);
  const pl_reach_row *delayed = reach(&a, "1", "none");
  assert_int_equal(delayed->reached, 0);
  assert_true(isinf(delayed->tokens) && delayed->overhead.n == 0 && delayed->runs == 3);
  assert_true(delayed->at_own_end.n == 3 && delayed->at_own_end.mean > 1.2 && delayed->at_own_end.mean < 3);
  near(delayed->schedule_gain, 9.0 / 8);
  assert_true(isnan(reach(&a, "0", "none")->schedule_gain));
  pl_analysis_free(&a);
  const double target = 1.8;
  a = compute(&c, &(pl_gap_options){.target = &target});
  for (int k = 0; k < 3; k++) { /* the loss of fake_journal at the validations, by hand */
    const pl_reach_row *r = reach(&a, k > 0 ? "1" : "0", k == 2 ? "ef" : "none");
    int64_t step = 0;
    double final = 1.5 + 0.1 * k + 0.001; /* the middle seed */
    for (; step <= 1200; step += 100) {
      double done = (double)step / 1200;
      if (final + (5.5 - final) * exp(-6 * done) * (1 - done) <= target) break;
    }
    near(r->steps, (double)step);
    near(r->tokens, 1024 * (double)step);
    assert_int_equal(r->reached, 3);
  }
  near(reach(&a, "1", "ef")->overhead.mean, reach(&a, "1", "ef")->tokens / reach(&a, "0", "none")->tokens);
  pl_analysis_free(&a);
  const double never = 0.1;
  a = compute(&c, &(pl_gap_options){.target = &never});
  assert_true(warned(&a, "no run reached the target loss 0.1"));
  pl_analysis_free(&a);
  const double at_once = 1e9;
  a = compute(&c, &(pl_gap_options){.target = &at_once});
  assert_true(warned(&a, "is not below the loss before the first update, in 3 of 3 arms"));
  pl_analysis_free(&a);
  pl_catalog_free(&c);
  remove_folder(dir);
}

/* Runs without validations on the way say nothing about a target, whatever it is. */
static void a_target_needs_validations(void **state) {
  (void)state;
  char dir[] = "/tmp/pl_analysis_test.XXXXXX";
  assert_non_null(mkdtemp(dir));
  pl_catalog c = fake_catalog(dir);
  for (int d = 0; d < 2; d++)
    fake_run(&c, PL_RUN_DONE, 1.5 + 0.1 * d, "\"optimizer\": \"adamw\", \"delay\": %d, \"train\": {\"steps\": 1200}",
             d);
  for (size_t i = 0; i < c.count; i++) fake_journal(&c, &c.runs[i]);
  const double target = 1e9;
  pl_analysis a = compute(&c, &(pl_gap_options){.target = &target});
  assert_true(warned(&a, "no arm has the 4 validations during training that it takes to say when a loss was reached"));
  assert_false(warned(&a, "no run reached"));
  pl_analysis_free(&a);
  a = compute(&c, &(pl_gap_options){0});
  assert_false(warned(&a, "--target"));
  pl_analysis_free(&a);
  pl_catalog_free(&c);
  remove_folder(dir);
}

static void odd_results_are_named(void **state) {
  (void)state;
  pl_catalog c = fake_catalog("made-up");
  fake_arm_run(&c, "adamw", 4e-3, "0", "\"none\"", 0, 1.6);
  fake_arm_run(&c, "adamw", 4e-3, "1", "\"none\"", 0, 1.7)->result.outcome.tokens = 500;
  pl_catalog_run *r = fake_arm_run(&c, "adamw", 4e-3, "0", "\"none\"", 1, 1.6);
  r->result.outcome.final_val_loss = NAN;
  r = fake_arm_run(&c, "adamw", 4e-3, "0", "\"none\"", 2, 1.6);
  r->result.outcome.final_val_loss = INFINITY;
  r = fake_arm_run(&c, "adamw", 4e-3, "0", "\"none\"", 3, 1.6);
  r->state = PL_RUN_STOPPED;
  r->has_result = false;
  r = fake_arm_run(&c, "muon", 4e-3, "1", "\"ef\"", 0, 1.6); /* no result at all, and no partner */
  r->state = PL_RUN_PENDING;
  r->has_result = false;
  c.unreadable = 1;
  pl_analysis a = compute(&c, &(pl_gap_options){0});
  const pl_gap_row *sync = row(&a, "adamw", "0", "none"), *empty = row(&a, "muon", "1", "ef");
  assert_true(sync->finished == 1 && sync->unfinished == 3 && sync->stopped == 1 && sync->total == 4);
  assert_true(empty->total == 1 && empty->unfinished == 1 && isnan(empty->lr) && empty->gap.n == 0);
  assert_true(warned(&a, "is done with a final validation loss of NaN; it counts as unfinished"));
  assert_true(warned(&a, "is done with a final validation loss of Infinity; it counts as unfinished"));
  assert_true(warned(&a, "adamw delay 1: seed 0 saw 500 tokens and its synchronous run 1000"));
  assert_true(warned(&a, "muon delay 1 ef: no synchronous run"));
  assert_true(warned(&a, "1 run folder could not be read and is left out"));
  assert_true(warned(&a, "4 of 6 runs have no result yet"));
  char *text = sheet_text(&a, PL_SHEET_GAP);
  assert_non_null(strstr(text, "1/4, 3 unfinished (1 stopped)"));
  assert_non_null(strstr(text, "0/1, 1 unfinished"));
  pl_str_free(&(pl_str){.text = text});
  pl_analysis_free(&a);
  pl_catalog_free(&c);
}

/* A gap that was put in is found, and none where there is none. */
static void planted_gaps_are_found(void **state) {
  (void)state;
  pl_catalog c = fake_catalog("made-up");
  pl_rng r = pl_rng_at(11, PL_STREAM_NOISE, 0, 0);
  for (int seed = 0; seed < 8; seed++) {
    double own = 1.6 + 0.01 * pl_rng_normal(&r);
    fake_arm_run(&c, "adamw", 4e-3, "0", "\"none\"", seed, own + 0.002 * pl_rng_normal(&r));
    fake_arm_run(&c, "adamw", 4e-3, "1", "\"none\"", seed, own + 0.02 + 0.002 * pl_rng_normal(&r));
    fake_arm_run(&c, "muon", 4e-3, "0", "\"none\"", seed, own + 0.002 * pl_rng_normal(&r));
    fake_arm_run(&c, "muon", 4e-3, "1", "\"none\"", seed, own + 0.002 * pl_rng_normal(&r));
  }
  pl_analysis a = compute(&c, &(pl_gap_options){.resolve = 0.01});
  const pl_gap_row *planted = row(&a, "adamw", "1", "none"), *none = row(&a, "muon", "1", "none");
  assert_true(planted->gap.low > 0.01 && planted->gap.low < 0.02 && planted->gap.high > 0.02);
  assert_true(planted->p_holm < 0.001 && planted->correlation > 0.8 && planted->pairs_needed <= 5);
  assert_true(none->gap.low < 0 && none->gap.high > 0 && none->p_holm > 0.05);
  pl_analysis_free(&a);
  pl_catalog_free(&c);
}

static void awkward_names_survive_csv_and_markdown(void **state) {
  (void)state;
  static const pl_sheet_column columns[] = {{"group", false}, {"delay", true}};
  pl_sheet sheet = {.name = "rows", .columns = columns, .column_count = 2};
  pl_sheet_row *r = NULL;
  pl_err e = {0};
  pl_json *data = pl_json_new_object();
  assert_true(pl_json_set(data, "group", pl_json_new_string("data.train=a|b.txt, \"x\"")) &&
              pl_json_set(data, "delay", pl_json_new_string("[1,0]")) && pl_json_set(data, "x", pl_json_new_null()));
  assert_int_equal(pl_sheet_add(&sheet, "Title", "a|b", data, &r, &e), PL_OK);
  pl_str_append(&r->cells[0], "data.train=a|b.txt");
  pl_str markdown = {0}, csv = {0};
  pl_sheet_csv(&sheet, &csv);
  pl_sheet_markdown(&sheet, &markdown);
  assert_string_equal(csv.text, "group,delay,x\n\"data.train=a|b.txt, \"\"x\"\"\",\"[1,0]\",\n");
  assert_non_null(strstr(markdown.text, "#### a\\|b\n"));
  assert_non_null(strstr(markdown.text, "| data.train=a\\|b.txt |"));
  pl_str_free(&csv);
  pl_str_free(&markdown);
  pl_sheet_free(&sheet);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(papers_numbers_give_its_parts),  cmocka_unit_test(selection_seed_chooses_and_is_not_compared),
      cmocka_unit_test(parabola_checks_the_grid),       cmocka_unit_test(parabola_points_elsewhere),
      cmocka_unit_test(families_are_adjusted_by_group), cmocka_unit_test(gaps_along_an_axis_get_a_line),
      cmocka_unit_test(momentum_is_fitted_as_memory),   cmocka_unit_test(curves_tell_tokens_to_a_loss),
      cmocka_unit_test(a_target_needs_validations),     cmocka_unit_test(odd_results_are_named),
      cmocka_unit_test(planted_gaps_are_found),         cmocka_unit_test(awkward_names_survive_csv_and_markdown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
