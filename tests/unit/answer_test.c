#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

#include "analysis/answer.h"
#include "fake_sweep.h"

enum { SEEDS = 3 };

/* Gaps with mean 0.11 and sd 0.01: over three pairs the interval is +- 4.3027 * 0.01 / sqrt(3) = 0.0248. */
static const double gaps[SEEDS] = {0.10, 0.11, 0.12};

static double sync_loss(int seed) { return 1.6 + 0.03 * seed; }

static void add_sync(pl_catalog *c, const char *optimizer, int seeds) {
  for (int s = 0; s < seeds; s++) fake_arm_run(c, optimizer, 8e-3, "0", "\"none\"", s, sync_loss(s));
}

static void add_delayed(pl_catalog *c, const char *optimizer, const char *delay, const char *correction, int seeds,
                        double share) {
  for (int s = 0; s < seeds; s++)
    fake_arm_run(c, optimizer, 8e-3, delay, correction, s, sync_loss(s) + share * gaps[s]);
}

/* The sentences of a catalog, one a line. The catalog is released. */
static char *answer(pl_catalog *c, bool fixed) {
  pl_err e = {0};
  pl_gap_options o = {.at_key = fixed ? "optimizer.lr" : NULL, .at_value = 8e-3};
  pl_analysis a;
  pl_notes sentences = {0};
  pl_str text = {0};
  char *out = NULL;
  if (pl_analysis_run(c, NULL, &o, &a, &e) != PL_OK) fail_msg("%s", e.text);
  if (pl_answer_make(&a, &sentences, &e) != PL_OK) fail_msg("%s", e.text);
  assert_true(sentences.count >= 1 && sentences.count <= PL_ANSWER_SENTENCES);
  for (size_t i = 0; i < sentences.count; i++) pl_str_printf(&text, "%s\n", sentences.texts[i]);
  assert_int_equal(pl_strdup(pl_str_text(&text), &out, &e), PL_OK);
  pl_str_free(&text);
  pl_notes_free(&sentences);
  pl_analysis_free(&a);
  pl_catalog_free(c);
  return out;
}

static void expect(pl_catalog c, const char *text) {
  char *got = answer(&c, false);
  assert_string_equal(got, text);
  pl_free(got);
}

static void numbers_are_those_of_the_table(void **state) {
  (void)state;
  pl_catalog c = fake_catalog("/nowhere");
  add_sync(&c, "adamw", 3);
  add_delayed(&c, "adamw", "1", "\"none\"", 3, 1);
  add_delayed(&c, "adamw", "1", "\"ef\"", 3, 0.4);
  expect(c, "adamw loses 0.1100 ± 0.0248 nats/token (n=3) at delay 1; ef wins back 60% [60, 60].\n");
}

static void of_several_delays_and_corrections_it_says_which(void **state) {
  (void)state;
  pl_catalog c = fake_catalog("/nowhere");
  add_sync(&c, "adamw", 3);
  add_delayed(&c, "adamw", "1", "\"none\"", 3, 0.5);
  add_delayed(&c, "adamw", "4", "\"none\"", 3, 1);
  add_delayed(&c, "adamw", "4", "\"ef\"", 3, 0.75);
  add_delayed(&c, "adamw", "4", "\"lookahead\"", 3, 0.5);
  add_delayed(&c, "adamw", "8", "\"none\"", 2, 1); /* too few to speak of */
  char *got = answer(&c, true);
  assert_string_equal(got, "adamw loses 0.1100 ± 0.0248 nats/token (n=3) at delay 4; of 2 corrections lookahead wins "
                           "back 50% [50, 50].\n");
  pl_free(got);
}

static void below_three_pairs_no_number_is_told(void **state) {
  (void)state;
  static const char *const words[] = {"±", "loses", "gains", "wins", "0.1"};
  for (int seeds = 1; seeds < 3; seeds++) {
    pl_catalog c = fake_catalog("/nowhere");
    char text[128];
    add_sync(&c, "adamw", seeds);
    add_delayed(&c, "adamw", "1", "\"none\"", seeds, 1);
    add_delayed(&c, "adamw", "1", "\"ef\"", seeds, 0.4);
    snprintf(text, sizeof text, "adamw at delay 1: %d pair%s of seeds finished, and an interval needs 3.\n", seeds,
             seeds == 1 ? "" : "s");
    char *got = answer(&c, false);
    assert_string_equal(got, text);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) assert_null(strstr(got, words[i]));
    pl_free(got);
  }
}

static void too_few_corrected_seeds_are_told(void **state) {
  (void)state;
  pl_catalog c = fake_catalog("/nowhere");
  add_sync(&c, "adamw", 3);
  add_delayed(&c, "adamw", "1", "\"none\"", 3, 1);
  add_delayed(&c, "adamw", "1", "\"ef\"", 2, 0.4);
  expect(c, "adamw loses 0.1100 ± 0.0248 nats/token (n=3) at delay 1; ef has 2 of the 3 seeds that a part won back "
            "needs.\n");
}

static void without_a_correction_it_says_so(void **state) {
  (void)state;
  pl_catalog c = fake_catalog("/nowhere");
  add_sync(&c, "adamw", 3);
  add_delayed(&c, "adamw", "1", "\"none\"", 3, 1);
  expect(c, "adamw loses 0.1100 ± 0.0248 nats/token (n=3) at delay 1; no correction was run there.\n");
}

/* Mean 0.01, sd 0.1015: the interval is +- 4.3027 * 0.1015 / sqrt(3) = 0.2521 and holds 0. */
static void an_unresolved_gap_is_no_loss(void **state) {
  (void)state;
  static const double noise[SEEDS] = {-0.1, 0.1, 0.03};
  pl_catalog c = fake_catalog("/nowhere");
  add_sync(&c, "adamw", 3);
  for (int s = 0; s < SEEDS; s++) {
    fake_arm_run(&c, "adamw", 8e-3, "1", "\"none\"", s, sync_loss(s) + noise[s]);
    fake_arm_run(&c, "adamw", 8e-3, "1", "\"ef\"", s, sync_loss(s) + 0.4 * noise[s]);
  }
  expect(c, "adamw differs from its synchronous runs by +0.0100 ± 0.2521 nats/token (n=3) at delay 1, an interval that "
            "holds 0; what ef wins back of it is not resolved.\n");
}

static void a_gain_is_called_one(void **state) {
  (void)state;
  pl_catalog c = fake_catalog("/nowhere");
  add_sync(&c, "adamw", 3);
  add_delayed(&c, "adamw", "1", "\"none\"", 3, -1);
  add_delayed(&c, "adamw", "1", "\"ef\"", 3, -0.4);
  expect(c, "adamw gains 0.1100 ± 0.0248 nats/token (n=3) at delay 1.\n");
}

static void diverged_runs_are_told(void **state) {
  (void)state;
  pl_catalog c = fake_catalog("/nowhere");
  add_sync(&c, "adamw", 3);
  fake_arm_run(&c, "adamw", 8e-3, "0", "\"none\"", 3, 1.7);
  add_delayed(&c, "adamw", "1", "\"none\"", 3, 1);
  fake_arm_run(&c, "adamw", 8e-3, "1", "\"none\"", 3, (double)NAN);
  add_sync(&c, "muon", 3);
  for (int s = 0; s < SEEDS; s++) fake_arm_run(&c, "muon", 8e-3, "1", "\"none\"", s, (double)NAN);
  expect(c, "adamw loses 0.1100 ± 0.0248 nats/token (n=3) at delay 1; no correction was run there; 1 of 4 delayed runs "
            "diverged and is not in these numbers.\n"
            "muon at delay 1: 3 of 3 runs diverged and none finished.\n");
}

static void what_is_missing_is_told(void **state) {
  (void)state;
  pl_catalog c = fake_catalog("/nowhere");
  add_delayed(&c, "adamw", "1", "\"none\"", 3, 1);
  expect(c, "adamw at delay 1: it has no synchronous runs to be compared with.\n");
  c = fake_catalog("/nowhere");
  add_sync(&c, "adamw", 3);
  expect(c, "No arm without a correction has a delay in this reading, so there is no gap to tell.\n");
}

/* Four optimizers are more than three sentences. */
static void many_are_told_by_their_range(void **state) {
  (void)state;
  static const char *const optimizers[] = {"adamw", "muon", "soap", "adan"};
  static const double shares[] = {1, 0.5, 2, 1.5};
  pl_catalog c = fake_catalog("/nowhere");
  for (int o = 0; o < 4; o++) {
    add_sync(&c, optimizers[o], 3);
    add_delayed(&c, optimizers[o], "1", "\"none\"", o == 3 ? 2 : 3, shares[o]);
  }
  expect(c, "The largest of 3 gaps: soap loses 0.2200 ± 0.0497 nats/token (n=3) at delay 1; no correction was run "
            "there.\n"
            "The smallest of 3 gaps: muon loses 0.0550 ± 0.0124 nats/token (n=3) at delay 1; no correction was run "
            "there.\n"
            "1 more of the 4 optimizers and groups have fewer than 3 pairs of seeds.\n");
}

/* t = 5 with two degrees of freedom: p = 1 - 5 / sqrt(27) = 0.0378, twice that for the smaller of two. */
static void what_holm_does_not_confirm_is_told(void **state) {
  (void)state;
  static const double noise[SEEDS] = {0.01, 0.02, 0.02};
  pl_catalog c = fake_catalog("/nowhere");
  add_sync(&c, "adamw", 3);
  for (int s = 0; s < SEEDS; s++) {
    fake_arm_run(&c, "adamw", 8e-3, "1", "\"none\"", s, sync_loss(s) + noise[s]);
    fake_arm_run(&c, "adamw", 8e-3, "2", "\"none\"", s, sync_loss(s) + noise[s]);
  }
  expect(c, "adamw loses 0.0167 ± 0.0143 nats/token (n=3) at delay 2 (p 0.0755 after Holm); no correction was run "
            "there.\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_are_those_of_the_table),
      cmocka_unit_test(of_several_delays_and_corrections_it_says_which),
      cmocka_unit_test(below_three_pairs_no_number_is_told),
      cmocka_unit_test(too_few_corrected_seeds_are_told),
      cmocka_unit_test(without_a_correction_it_says_so),
      cmocka_unit_test(an_unresolved_gap_is_no_loss),
      cmocka_unit_test(a_gain_is_called_one),
      cmocka_unit_test(diverged_runs_are_told),
      cmocka_unit_test(what_is_missing_is_told),
      cmocka_unit_test(many_are_told_by_their_range),
      cmocka_unit_test(what_holm_does_not_confirm_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
