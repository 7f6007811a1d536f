#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "fake_sweep.h"

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *at) {
  (void)info, (void)type, (void)at;
  return remove(path);
}

static const double rates[] = {4e-3, 8e-3, 16e-3};
static const pl_gap_options at_8 = {.at_key = "optimizer.lr", .at_value = 8e-3};

static pl_analysis compute(const pl_catalog *c, const pl_gap_options *o) {
  pl_analysis t = {0};
  pl_err e = {0};
  if (pl_analysis_run(c, NULL, o, &t, &e) != PL_OK) fail_msg("%s", e.text);
  return t;
}

static pl_sheets sheets_of(const pl_analysis *t) {
  pl_sheets s = {0};
  pl_err e = {0};
  if (pl_sheets_make(t, &s, &e) != PL_OK) fail_msg("%s", e.text);
  return s;
}

static void gap_text(const pl_analysis *t, pl_str *out) {
  pl_sheets s = sheets_of(t);
  pl_sheet_text(&s.list[PL_SHEET_GAP], out);
  pl_warnings_text(&t->warnings, out);
  pl_sheets_free(&s);
}

static const pl_gap_row *row(const pl_analysis *t, pl_reading reading, const char *optimizer, const char *delay,
                             const char *correction) {
  const pl_gap_row *found = NULL;
  for (size_t i = 0; i < t->gap.count; i++) {
    const pl_gap_row *r = &t->gap.rows[i];
    if (r->reading != reading || strcmp(r->optimizer, optimizer) != 0 || strcmp(r->delay, delay) != 0 ||
        strcmp(r->correction, correction) != 0)
      continue;
    assert_null(found);
    found = r;
  }
  if (!found) fail_msg("no row %s, delay %s, %s in reading %d", optimizer, delay, correction, (int)reading);
  return found;
}

static bool warned(const pl_analysis *t, const char *part) {
  for (size_t i = 0; i < t->warnings.count; i++)
    if (strstr(t->warnings.texts[i], part)) return true;
  return false;
}

static void near(double seen, double expected) {
  if (!(fabs(seen - expected) <= 1e-12)) fail_msg("%.17g instead of %.17g", seen, expected);
}

/* Five seeds at 8e-3, seed 0 also at 4e-3 and 16e-3. */
static const double sync_8[] = {1.641, 1.652, 1.633, 1.648, 1.637};
static const double delayed_8[] = {1.743, 1.747, 1.751, 1.736, 1.757};
static const double ef_8[] = {1.670, 1.679, 1.668, 1.671, 1.676};

static void add_rates(pl_catalog *c, const char *delay, const char *correction, double at_4, const double *at_eight,
                      double at_16) {
  fake_arm_run(c, "adamw", 4e-3, delay, correction, 0, at_4);
  for (int seed = 0; seed < 5; seed++) fake_arm_run(c, "adamw", 8e-3, delay, correction, seed, at_eight[seed]);
  fake_arm_run(c, "adamw", 16e-3, delay, correction, 0, at_16);
}

static pl_catalog demo(void) {
  pl_catalog c = fake_catalog("made-up");
  add_rates(&c, "0", "\"none\"", 1.656, sync_8, 1.631);
  add_rates(&c, "1", "\"none\"", 1.730, delayed_8, 1.828);
  add_rates(&c, "1", "\"ef\"", 1.699, ef_8, 1.695);
  return c;
}

static void fixed_reading_pairs_by_seed(void **state) {
  (void)state;
  pl_catalog c = demo();
  pl_analysis t = compute(&c, &at_8);
  assert_string_equal(t.gap.at, "optimizer.lr = 0.008");
  const pl_gap_row *sync = row(&t, PL_READING_FIXED, "adamw", "0", "none");
  const pl_gap_row *delayed = row(&t, PL_READING_FIXED, "adamw", "1", "none");
  const pl_gap_row *ef = row(&t, PL_READING_FIXED, "adamw", "1", "ef");
  double difference[5], won[5];
  for (size_t i = 0; i < 5; i++) {
    difference[i] = delayed_8[i] - sync_8[i];
    won[i] = delayed_8[i] - ef_8[i];
  }
  pl_estimate gap = pl_estimate_of(difference, 5), loss = pl_estimate_of(delayed_8, 5);
  bool resolved = false;
  pl_estimate ratio = pl_ratio_of_means(won, difference, 5, &resolved);
  assert_true(sync->sync && sync->gap.n == 0 && sync->won_back.n == 0 && sync->loss.n == 5);
  assert_false(delayed->sync);
  near(delayed->loss.mean, loss.mean);
  near(delayed->loss_median, 1.747);
  near(delayed->gap.mean, gap.mean);
  near(delayed->gap.low, gap.low);
  near(delayed->gap.high, gap.high);
  assert_int_equal(delayed->gap.n, 5);
  assert_int_equal(delayed->won_back.n, 0);
  assert_true(ef->gap_resolved && resolved);
  near(ef->won_back.mean, ratio.mean);
  near(ef->won_back.low, ratio.low);
  near(ef->won_back.high, ratio.high);
  assert_true(ef->finished == 5 && ef->total == 5 && ef->diverged == 0 && ef->unfinished == 0);
  pl_analysis_free(&t);
  pl_catalog_free(&c);
}

static void best_reading_chooses_on_common_seeds(void **state) {
  (void)state;
  pl_catalog c = demo();
  pl_analysis t = compute(&c, &(pl_gap_options){0});
  assert_null(t.gap.at);
  const pl_gap_row *sync = row(&t, PL_READING_BEST, "adamw", "0", "none");
  const pl_gap_row *delayed = row(&t, PL_READING_BEST, "adamw", "1", "none");
  const pl_gap_row *ef = row(&t, PL_READING_BEST, "adamw", "1", "ef");
  assert_true(sync->lr == 16e-3 && sync->lr_edge == 1);
  assert_true(delayed->lr == 4e-3 && delayed->lr_edge == -1);
  assert_true(ef->lr == 8e-3 && ef->lr_edge == 0);
  near(delayed->gap.mean, 1.730 - 1.631);
  assert_true(delayed->gap.n == 1 && isnan(delayed->gap.low));
  /* The mean covers five seeds, the gap the one that the sync arm has at its best rate. */
  assert_true(ef->loss.n == 5 && ef->gap.n == 1);
  near(ef->gap.mean, 1.670 - 1.631);
  near(ef->won_back.mean, (1.730 - 1.670) / (1.730 - 1.631));
  assert_false(ef->gap_resolved);
  assert_true(warned(&t, "adamw sync: the best optimizer.lr 0.016 is the highest of 0.004 .. 0.016; extend the axis "
                         "upwards"));
  assert_true(warned(&t, "adamw delay 1: the best optimizer.lr 0.004 is the lowest of 0.004 .. 0.016; extend the axis "
                         "downwards"));
  assert_true(warned(&t, "adamw delay 1 ef: its gap is over 1 pair, its loss over 5 seeds and the sync loss over 1"));
  assert_int_equal(t.warnings.count, 3);
  pl_analysis_free(&t);
  pl_catalog_free(&c);
}

/* Seeds 1-4 alone would make 8e-3 the best rate of an arm whose seed 0 says otherwise. */
static void seeds_of_one_rate_alone_do_not_choose_it(void **state) {
  (void)state;
  pl_catalog c = fake_catalog("made-up");
  const double losses[] = {1.70, 1.50, 1.50, 1.50, 1.50};
  add_rates(&c, "0", "\"none\"", 1.65, losses, 1.69);
  pl_analysis t = compute(&c, &(pl_gap_options){0});
  assert_true(row(&t, PL_READING_BEST, "adamw", "0", "none")->lr == 4e-3);
  pl_analysis_free(&t);
  pl_catalog_free(&c);
}

static void transferred_reading_takes_the_sync_rate(void **state) {
  (void)state;
  pl_catalog c = demo();
  fake_arm_run(&c, "adamw", 8e-3, "4", "\"none\"", 0, 2.1);
  pl_analysis t = compute(&c, &(pl_gap_options){0});
  const pl_gap_row *delayed = row(&t, PL_READING_TRANSFERRED, "adamw", "1", "none");
  assert_true(delayed->lr == 16e-3 && delayed->lr_edge == 0);
  near(delayed->gap.mean, 1.828 - 1.631);
  assert_true(warned(&t, "adamw delay 4: no run at the sync arm's best optimizer.lr 0.016"));
  for (size_t i = 0; i < t.gap.count; i++)
    assert_false(t.gap.rows[i].reading == PL_READING_TRANSFERRED && strcmp(t.gap.rows[i].delay, "4") == 0);
  pl_analysis_free(&t);
  pl_catalog_free(&c);
}

static void runs_that_differ_in_more_than_delay_are_never_paired(void **state) {
  (void)state;
  pl_catalog c = fake_catalog("made-up");
  fake_arm_run(&c, "adamw", 8e-3, "0", "\"none\"", 0, 1.60);
  fake_arm_run(&c, "adamw", 8e-3, "1", "\"none\"", 0, 1.70);
  fake_run(&c, PL_RUN_DONE, 1.80,
           "\"optimizer\": {\"type\": \"adamw\", \"lr\": 0.008}, \"delay\": 1, \"train\": {\"steps\": 600}");
  fake_run(&c, PL_RUN_DONE, 1.72,
           "\"optimizer\": {\"type\": \"adamw\", \"lr\": 0.008, \"beta1\": 0.95}, \"delay\": 1, "
           "\"train\": {\"steps\": 1200, \"val_every\": 100}");
  pl_analysis t = compute(&c, &(pl_gap_options){0});
  assert_int_equal(t.gap.count, 4 + 2);
  const pl_gap_row *paired = NULL;
  for (size_t i = 0; i < t.gap.count; i++) {
    if (t.gap.rows[i].gap.n == 0 || t.gap.rows[i].reading != PL_READING_BEST) continue;
    assert_null(paired);
    paired = &t.gap.rows[i];
  }
  assert_non_null(paired);
  near(paired->gap.mean, 1.70 - 1.60);
  assert_string_equal(paired->optimizer, "adamw(beta1=0.9)");
  assert_string_equal(paired->group, "train.steps=1200 train.val_every=100");
  assert_true(warned(&t, "adamw(beta1=0.95) delay 1 (train.steps=1200 train.val_every=100): no synchronous run"));
  assert_true(warned(&t, "adamw(beta1=0.9) delay 1 (train.steps=600 train.val_every=0): no synchronous run"));
  pl_analysis_free(&t);
  pl_catalog_free(&c);
}

static void what_varies_is_in_the_names(void **state) {
  (void)state;
  pl_catalog c = fake_catalog("made-up");
  fake_arm_run(&c, "adamw", 8e-3, "0", "\"none\"", 0, 1.60);
  fake_arm_run(&c, "adamw", 8e-3, "2", "[\"ef\", \"lookahead\"]", 0, 1.66);
  fake_arm_run(&c, "adamw", 8e-3, "2", "{\"type\": \"ef\", \"lambda\": 0.5}", 0, 1.68);
  fake_arm_run(&c, "adamw", 8e-3, "1", "\"none\", \"delay_start\": 100", 0, 1.65);
  fake_arm_run(&c, "adamw", 8e-3, "2", "\"none\"", 0, 1.70);
  pl_analysis t = compute(&c, &(pl_gap_options){0});
  near(row(&t, PL_READING_BEST, "adamw", "2", "ef(lambda=1)+lookahead")->gap.mean, 1.66 - 1.60);
  near(row(&t, PL_READING_BEST, "adamw", "2", "ef(lambda=0.5)")->won_back.mean, (1.70 - 1.68) / (1.70 - 1.60));
  near(row(&t, PL_READING_BEST, "adamw", "1 from 100", "none")->gap.mean, 1.65 - 1.60);
  /* By delay, and the uncorrected arm first. */
  assert_string_equal(t.gap.rows[0].delay, "0");
  assert_string_equal(t.gap.rows[1].delay, "1 from 100");
  assert_string_equal(t.gap.rows[2].correction, "none");
  assert_int_equal(t.warnings.count, 0);
  pl_analysis_free(&t);
  pl_catalog_free(&c);
}

static void simulated_delay_keeps_its_baseline(void **state) {
  (void)state;
  pl_catalog c = fake_catalog("made-up");
  const char *format = "\"optimizer\": \"muon\", \"optimizer.lr\": 0.008, \"delay\": %s, \"simulate_only\": %s, "
                       "\"pipeline\": {\"stages\": 4}, \"train\": {\"steps\": 600}";
  fake_run(&c, PL_RUN_DONE, 1.60, format, "0", "false");
  fake_run(&c, PL_RUN_DONE, 1.66, format, "1", "false");
  fake_run(&c, PL_RUN_DONE, 1.80, format, "\"pipedream\"", "true");
  pl_analysis t = compute(&c, &at_8);
  const pl_gap_row *simulated = row(&t, PL_READING_FIXED, "muon", "pipedream", "none");
  assert_true(simulated->simulated);
  near(simulated->gap.mean, 1.80 - 1.60);
  assert_false(row(&t, PL_READING_FIXED, "muon", "1", "none")->simulated);
  pl_str text = {0};
  gap_text(&t, &text);
  assert_non_null(strstr(pl_str_text(&text), "pipedream*"));
  assert_non_null(strstr(pl_str_text(&text), "* simulated only"));
  pl_str_free(&text);
  pl_analysis_free(&t);
  pl_catalog_free(&c);
}

static void diverged_runs_are_counted_and_never_chosen(void **state) {
  (void)state;
  pl_catalog c = fake_catalog("made-up");
  for (int seed = 0; seed < 5; seed++) {
    fake_arm_run(&c, "adamw", 4e-3, "0", "\"none\"", seed, 1.60 + 0.01 * seed);
    fake_arm_run(&c, "adamw", 4e-3, "1", "\"none\"", seed, seed == 3 ? (double)NAN : 1.70 + 0.02 * seed);
    fake_arm_run(&c, "adamw", 2e-3, "1", "\"none\"", seed, 1.90 + 0.01 * seed);
  }
  pl_analysis t = compute(&c, &(pl_gap_options){.at_key = "optimizer.lr", .at_value = 4e-3});
  /* 4e-3 is better on the survivors, but one seed was lost there. */
  assert_true(row(&t, PL_READING_BEST, "adamw", "1", "none")->lr == 2e-3);
  const pl_gap_row *lossy = row(&t, PL_READING_FIXED, "adamw", "1", "none");
  assert_true(lossy->finished == 4 && lossy->diverged == 1 && lossy->total == 5);
  near(lossy->loss.mean, (1.70 + 1.72 + 1.74 + 1.78) / 4);
  near(lossy->loss_median, 1.74);
  assert_int_equal(lossy->gap.n, 4);
  near(lossy->gap.mean, (0.10 + 0.11 + 0.12 + 0.14) / 4);
  assert_true(warned(&t, "adamw delay 1: runs diverged at optimizer.lr 0.004 (1 of 5); loss"));
  pl_str text = {0};
  gap_text(&t, &text);
  assert_non_null(strstr(pl_str_text(&text), "4/5, 1 diverged"));
  pl_str_free(&text);
  pl_analysis_free(&t);
  pl_catalog_free(&c);
}

static void failed_and_open_runs_do_not_enter(void **state) {
  (void)state;
  pl_catalog c = demo();
  fake_arm_run(&c, "adamw", 8e-3, "1", "\"none\"", 5, 1.0)->state = PL_RUN_RUNNING;
  c.runs[c.count - 1].has_result = false;
  fake_run(&c, PL_RUN_FAILED, NAN,
           "\"optimizer\": \"adamw\", \"optimizer.lr\": 0.008, \"delay\": 1, \"seed\": 6, "
           "\"train\": {\"steps\": 1200, \"val_every\": 100}");
  fake_arm_run(&c, "adamw", 8e-3, "1", "\"none\"", 7, 1.0)->current = false;
  pl_analysis t = compute(&c, &at_8);
  const pl_gap_row *r = row(&t, PL_READING_FIXED, "adamw", "1", "none");
  assert_true(r->finished == 5 && r->unfinished == 2 && r->total == 7 && r->diverged == 0);
  assert_true(warned(&t, "2 of 23 runs have no result (1 failed)"));
  pl_analysis_free(&t);
  pl_gap_options all = at_8;
  all.all = true;
  t = compute(&c, &all);
  assert_int_equal(row(&t, PL_READING_FIXED, "adamw", "1", "none")->finished, 6);
  pl_analysis_free(&t);
  pl_catalog_free(&c);
}

/* A crash says nothing about the learning rate. */
static void failed_runs_do_not_sway_the_choice(void **state) {
  (void)state;
  pl_catalog c = fake_catalog("made-up");
  for (int seed = 0; seed < 3; seed++) {
    fake_arm_run(&c, "adamw", 4e-3, "0", "\"none\"", seed, 1.6);
    pl_catalog_run *r = fake_arm_run(&c, "adamw", 8e-3, "0", "\"none\"", seed, 1.5);
    if (seed == 1) r->state = r->result.state = PL_RUN_FAILED;
  }
  pl_analysis t = compute(&c, &(pl_gap_options){0});
  const pl_gap_row *r = row(&t, PL_READING_BEST, "adamw", "0", "none");
  assert_true(r->lr == 8e-3 && r->finished == 2 && r->diverged == 0 && r->unfinished == 1);
  near(r->loss_median, 1.5);
  assert_true(warned(&t, "1 of 6 runs have no result (1 failed)"));
  pl_analysis_free(&t);
  pl_catalog_free(&c);
}

/* Where delay did no harm, a share of it is no figure, however sure the difference is. */
static void without_a_gap_nothing_is_won_back(void **state) {
  (void)state;
  pl_catalog c = fake_catalog("made-up");
  for (int seed = 0; seed < 4; seed++) {
    fake_arm_run(&c, "adamw", 8e-3, "0", "\"none\"", seed, 1.60 + 0.01 * seed);
    fake_arm_run(&c, "adamw", 8e-3, "1", "\"none\"", seed, 1.50 + 0.011 * seed);
    fake_arm_run(&c, "adamw", 8e-3, "1", "\"ef\"", seed, 1.59 + 0.012 * seed);
  }
  pl_analysis t = compute(&c, &(pl_gap_options){0});
  assert_true(row(&t, PL_READING_BEST, "adamw", "1", "none")->gap.high < 0);
  const pl_gap_row *r = row(&t, PL_READING_BEST, "adamw", "1", "ef");
  assert_true(isnan(r->won_back.mean) && isnan(r->won_back.low) && !r->gap_resolved);
  pl_analysis_free(&t);
  pl_catalog_free(&c);
}

static void write_meta(const pl_catalog *c, const pl_catalog_run *run, const char *cpu, const char *data,
                       bool bitwise) {
  char *folder = NULL, *path = NULL, text[512];
  int length = snprintf(text, sizeof text,
                        "{\"attempts\": [{\"cpu\": \"an earlier one\"}, {\"version\": \"0.1.0\", \"git_commit\": "
                        "\"0123456789abcdef\", \"git_diff\": \"\", \"binary_hash\": \"fedcba9876543210\", \"kernel\": "
                        "\"avx2\", \"threads\": 1, \"cpu\": \"%s\", \"data_fingerprint\": \"%s\"}], \"bitwise\": %s}",
                        cpu, data, bitwise ? "true" : "false");
  assert_int_equal(pl_run_path(c->dir, run->id, "", &folder, NULL), PL_OK);
  assert_int_equal(pl_make_folders(folder, NULL), PL_OK);
  assert_int_equal(pl_run_path(c->dir, run->id, "meta.json", &path, NULL), PL_OK);
  assert_int_equal(pl_file_replace(path, text, (size_t)length, NULL), PL_OK);
  pl_free(path);
  pl_free(folder);
}

/* What was recorded per attempt and differs within the comparison. */
static void mixed_machines_are_flagged(void **state) {
  (void)state;
  char dir[] = "/tmp/pl_gap_XXXXXX";
  assert_non_null(mkdtemp(dir));
  pl_catalog c = fake_catalog(dir);
  for (int seed = 0; seed < 3; seed++) {
    fake_arm_run(&c, "adamw", 8e-3, "0", "\"none\"", seed, 1.60);
    fake_arm_run(&c, "adamw", 8e-3, "1", "\"none\"", seed, 1.70 + 0.01 * seed);
  }
  fake_arm_run(&c, "muon", 8e-3, "0", "\"none\"", 0, 1.5); /* without a record */
  fake_arm_run(&c, "muon", 8e-3, "1", "\"none\"", 0, 1.6);
  for (size_t i = 0; i < 6; i++) write_meta(&c, &c.runs[i], "EPYC", "aa", true);
  write_meta(&c, &c.runs[7], "EPYC", "bb", true); /* other data, but no pair */
  pl_analysis t = compute(&c, &(pl_gap_options){0});
  assert_false(warned(&t, "alike"));
  assert_false(warned(&t, "bitwise"));
  pl_analysis_free(&t);
  write_meta(&c, &c.runs[1], "Xeon", "aa", true);
  write_meta(&c, &c.runs[3], "Xeon", "aa", false);
  t = compute(&c, &(pl_gap_options){0});
  /* The values come in the order of the arms' ids. */
  assert_true(warned(&t, "the compared runs were not all made alike; cpu \""));
  assert_true(warned(&t, "\"EPYC\" (5 runs)") && warned(&t, "\"Xeon\" (2 runs)"));
  assert_true(warned(&t, "; 2 runs differ in this from a synchronous run of the same seed"));
  assert_true(warned(&t, "1 run was resumed by another program"));
  assert_false(warned(&t, "data fingerprint"));
  pl_analysis_free(&t);
  write_meta(&c, &c.runs[1], "EPYC", "cc", true);
  write_meta(&c, &c.runs[3], "EPYC", "aa", true);
  t = compute(&c, &(pl_gap_options){0});
  assert_true(warned(&t, "alike; data fingerprint ") && warned(&t, "; 1 run differs"));
  assert_true(warned(&t, "\"aa\" (5 runs)") && warned(&t, "\"cc\" (1 run)") && warned(&t, "\"bb\" (1 run)"));
  pl_analysis_free(&t);
  pl_catalog_free(&c);
  assert_int_equal(nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void another_key_can_be_fixed(void **state) {
  (void)state;
  pl_catalog c = demo();
  for (size_t i = 0; i < 3; i++)
    fake_run(&c, PL_RUN_DONE, 1.5 + 0.01 * (double)i,
             "\"optimizer\": \"adamw\", \"optimizer.beta1\": 0.8, \"optimizer.lr\": %.17g, "
             "\"train\": {\"steps\": 1200, \"val_every\": 100}",
             rates[i]);
  pl_analysis t = compute(&c, &(pl_gap_options){.at_key = "optimizer.beta1", .at_value = 0.8});
  size_t fixed = 0;
  for (size_t i = 0; i < t.gap.count; i++) fixed += t.gap.rows[i].reading == PL_READING_FIXED;
  assert_int_equal(fixed, 1);
  assert_true(row(&t, PL_READING_FIXED, "adamw(beta1=0.8)", "0", "none")->lr == 4e-3);
  pl_analysis_free(&t);
  pl_catalog_free(&c);
}

static void nothing_to_read_is_said(void **state) {
  (void)state;
  pl_catalog c = fake_catalog("made-up");
  pl_analysis t;
  pl_err e = {0};
  assert_int_equal(pl_analysis_run(&c, NULL, &(pl_gap_options){0}, &t, &e), PL_NOTHING);
  pl_catalog_free(&c);
  c = demo();
  e = (pl_err){0};
  assert_int_equal(pl_analysis_run(&c, NULL, &(pl_gap_options){.at_key = "optimizer.lr", .at_value = 9e-3}, &t, &e),
                   PL_NOTHING);
  assert_string_equal(e.text, "--at: no run has optimizer.lr = 0.009");
  e = (pl_err){0};
  assert_int_equal(pl_analysis_run(&c, NULL, &(pl_gap_options){.at_key = "optimizer.rl", .at_value = 9e-3}, &t, &e),
                   PL_BAD);
  assert_non_null(strstr(e.text, "optimizer.rl"));
  e = (pl_err){0};
  assert_int_equal(pl_analysis_run(&c, NULL, &(pl_gap_options){.at_key = "seed", .at_value = 0}, &t, &e), PL_BAD);
  assert_int_equal(t.gap.count, 0);
  pl_catalog_free(&c);
}

static size_t occurrences(const char *text, const char *part) {
  size_t n = 0;
  for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) n++;
  return n;
}

static void tables_agree(void **state) {
  (void)state;
  pl_catalog c = demo();
  pl_analysis t = compute(&c, &at_8);
  pl_str text = {0}, markdown = {0}, csv = {0};
  gap_text(&t, &text);
  pl_sheets s = sheets_of(&t);
  pl_sheet_markdown(&s.list[PL_SHEET_GAP], &markdown);
  pl_sheet_csv(&s.list[PL_SHEET_GAP], &csv);
  assert_non_null(strstr(pl_str_text(&text), "At optimizer.lr = 0.008"));
  assert_non_null(strstr(pl_str_text(&text), "no interval (n=1)"));
  assert_non_null(strstr(pl_str_text(&text), "+0.1046"));
  assert_non_null(strstr(pl_str_text(&text), "warning: adamw sync: the best optimizer.lr 0.016"));
  assert_int_equal(occurrences(pl_str_text(&markdown), "| +0.1046 |"), 1);
  assert_int_equal(occurrences(pl_str_text(&markdown), "| adamw |"), t.gap.count);
  assert_int_equal(occurrences(pl_str_text(&csv), "\n"), t.gap.count + 1);
  assert_int_equal(occurrences(pl_str_text(&csv), ","), 36 * (t.gap.count + 1));
  pl_json *j = pl_analysis_json(&t, &s);
  const pl_json *rows = pl_json_get(j, "rows");
  assert_int_equal(pl_json_size(rows), t.gap.count);
  for (size_t i = 0; i < t.gap.count; i++) {
    const pl_json *gap = pl_json_get(pl_json_at(rows, i), "gap");
    if (t.gap.rows[i].gap.n > 0)
      assert_true(pl_json_get_number(gap, "mean", NAN) == t.gap.rows[i].gap.mean);
    else
      assert_int_equal(pl_json_kind_of(pl_json_get(gap, "mean")), PL_JSON_NULL);
  }
  assert_int_equal(pl_json_size(pl_json_get(j, "warnings")), t.warnings.count);
  pl_json_release(j);
  pl_sheets_free(&s);
  pl_str_free(&text);
  pl_str_free(&markdown);
  pl_str_free(&csv);
  pl_analysis_free(&t);
  pl_catalog_free(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fixed_reading_pairs_by_seed),
      cmocka_unit_test(best_reading_chooses_on_common_seeds),
      cmocka_unit_test(seeds_of_one_rate_alone_do_not_choose_it),
      cmocka_unit_test(transferred_reading_takes_the_sync_rate),
      cmocka_unit_test(runs_that_differ_in_more_than_delay_are_never_paired),
      cmocka_unit_test(what_varies_is_in_the_names),
      cmocka_unit_test(simulated_delay_keeps_its_baseline),
      cmocka_unit_test(diverged_runs_are_counted_and_never_chosen),
      cmocka_unit_test(failed_and_open_runs_do_not_enter),
      cmocka_unit_test(failed_runs_do_not_sway_the_choice),
      cmocka_unit_test(without_a_gap_nothing_is_won_back),
      cmocka_unit_test(mixed_machines_are_flagged),
      cmocka_unit_test(another_key_can_be_fixed),
      cmocka_unit_test(nothing_to_read_is_said),
      cmocka_unit_test(tables_agree),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
