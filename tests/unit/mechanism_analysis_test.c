/* The table of what delay does: means over the second half of the runs and over seeds, of what was logged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "analysis/plots.h"
#include "fake_sweep.h"

enum { STEPS = 12 };

static char folder[64];

static int make_folder(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/pl_mechanism_XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *at) {
  (void)info, (void)type, (void)at;
  return remove(path);
}

static int remove_folder(void **state) {
  (void)state;
  return nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* What a run logs in its second half; its first half has other values, which must not count. NaN: not at all. */
typedef struct logged {
  double drift, displacement, cosine;
  int cosine_every, clipped; /* of the six last updates */
} logged;

static void write_journal(const pl_catalog *c, const pl_catalog_run *run, const logged *l) {
  pl_err e = {0};
  char *path = NULL, *run_folder = NULL;
  pl_journal *j = NULL;
  assert_int_equal(pl_run_path(c->dir, run->id, "", &run_folder, &e), PL_OK);
  assert_int_equal(pl_make_folders(run_folder, &e), PL_OK);
  assert_int_equal(pl_run_path(c->dir, run->id, "journal", &path, &e), PL_OK);
  assert_int_equal(pl_journal_open(path, &j, &e), PL_OK);
  for (int64_t s = 0; s <= STEPS; s++) {
    const double early = s <= STEPS / 2 ? 100 : 0, wave = s % 2 == 0 ? 0.125 : -0.125;
    pl_point p = {.step = s, .tokens = 1024 * s};
    for (size_t i = 0; i < PL_SERIES_COUNT; i++) p.values[i] = (double)NAN;
    if (s > 0) {
      p.values[PL_SERIES_drift] = l->drift + early + wave;
      p.values[PL_SERIES_displacement_ratio] = l->displacement + early + wave;
      if (s % l->cosine_every == 0) p.values[PL_SERIES_gradient_cos] = l->cosine + early;
      p.values[PL_SERIES_clip_scale] = s > STEPS - l->clipped || early > 0 ? 0.5 : 1;
    }
    assert_int_equal(pl_journal_write(j, &p, &e), PL_OK);
  }
  pl_journal_close(j);
  pl_free(path);
  pl_free(run_folder);
}

static void add(pl_catalog *c, double lr, const char *delay, const char *correction, int seed, double loss,
                const logged *l) {
  const bool diverged = !isfinite(loss);
  const pl_catalog_run *r =
      fake_run(c, diverged ? PL_RUN_DIVERGED : PL_RUN_DONE, loss,
               "\"optimizer\": \"adamw\", \"optimizer.lr\": %g, \"delay\": %s, \"correction\": \"%s\", \"seed\": %d, "
               "\"train\": {\"steps\": %d}",
               lr, delay, correction, seed, STEPS);
  write_journal(c, r, l);
}

static pl_analysis compute(const pl_catalog *c, const pl_gap_options *o) {
  pl_analysis a = {0};
  pl_err e = {0};
  if (pl_analysis_run(c, NULL, o, &a, &e) != PL_OK) fail_msg("%s", e.text);
  return a;
}

static void near(const pl_estimate *x, size_t n, double mean) {
  assert_int_equal(x->n, n);
  if (!(fabs(x->mean - mean) <= 1e-12)) fail_msg("%.17g instead of %.17g", x->mean, mean);
}

static void expect_sheet(const pl_analysis *a, const char *text, const char *csv) {
  pl_sheets s = {0};
  pl_err e = {0};
  pl_str seen = {0}, data = {0};
  assert_int_equal(pl_sheets_make(a, &s, &e), PL_OK);
  pl_sheet_text(&s.list[PL_SHEET_MECHANISM], &seen);
  pl_sheet_csv(&s.list[PL_SHEET_MECHANISM], &data);
  if (!strstr(pl_str_text(&seen), text)) fail_msg("no \"%s\" in\n%s", text, pl_str_text(&seen));
  assert_string_equal(pl_str_text(&data), csv);
  pl_str_free(&seen);
  pl_str_free(&data);
  pl_sheets_free(&s);
}

/* The caption of the figure tells of what has a panel, and of nothing else. */
static void expect_caption(const pl_catalog *c, const pl_analysis *a, const char *start, const char *end) {
  const pl_plot_input in = {.catalog = c, .arms = &a->arms};
  pl_plot p = {.name = "mechanism"};
  pl_err e = {0};
  assert_int_equal(pl_plot_mechanism(&in, (pl_arm_range){0, a->arms.count}, &p, &e), PL_OK);
  assert_true(p.blocks > 0);
  const char *text = pl_str_text(&p.caption);
  if (strncmp(text, start, strlen(start)) != 0 || strcmp(text + strlen(text) - strlen(end), end) != 0)
    fail_msg("\"%s\" is not \"%s ... %s\"", text, start, end);
  pl_plot_free(&p);
}

#define HEAD "group,optimizer,delay,correction,lr,runs,"

static void second_halves_over_seeds(void **state) {
  (void)state;
  pl_catalog c = fake_catalog(folder);
  for (int seed = 0; seed < 3; seed++) {
    add(&c, 0.5, "0", "none", seed, 1.5, &(logged){0.25, 1, 1, 1, 0});
    add(&c, 0.25, "1", "none", seed, 1.75, &(logged){50, 50, 50, 1, 6}); /* not its best rate */
    add(&c, 0.5, "1", "none", seed, 1.625, &(logged){0.5 + 0.25 * seed, 1, 0.5 * seed, 3, seed});
    add(&c, 0.5, "1", "ef", seed, 1.5625, &(logged){2, 1.5, (double)NAN, 1, 6});
  }
  add(&c, 0.5, "1", "none", 3, (double)INFINITY, &(logged){1e6, 1e6, 1e6, 1, 6}); /* diverged */
  fake_run(&c, PL_RUN_DONE, 1.5625,
           "\"optimizer\": \"adamw\", \"optimizer.lr\": 0.5, \"delay\": 1, \"correction\": \"ef\", \"seed\": 3, "
           "\"train\": {\"steps\": 12}"); /* without a journal */
  pl_analysis a = compute(&c, &(pl_gap_options){0});
  const pl_mechanism_table *t = &a.mechanism;
  assert_int_equal(t->count, 3);
  near(&t->rows[0].of[PL_MECHANISM_DRIFT], 3, 0.25);
  near(&t->rows[0].of[PL_MECHANISM_CLIPPED], 3, 0);
  const pl_mechanism_row *plain = &t->rows[1], *ef = &t->rows[2];
  assert_int_equal(plain->runs, 3);
  near(&plain->of[PL_MECHANISM_DRIFT], 3, 0.75);
  assert_true(plain->of[PL_MECHANISM_DRIFT].sd == 0.25 && plain->of[PL_MECHANISM_DRIFT].high > 1);
  near(&plain->of[PL_MECHANISM_DISPLACEMENT], 3, 1);
  near(&plain->of[PL_MECHANISM_COSINE], 3, 0.5);
  near(&plain->of[PL_MECHANISM_CLIPPED], 3, 1.0 / 6);
  assert_int_equal(ef->runs, 3);
  near(&ef->of[PL_MECHANISM_DISPLACEMENT], 3, 1.5);
  assert_int_equal(ef->of[PL_MECHANISM_COSINE].n, 0);
  near(&ef->of[PL_MECHANISM_CLIPPED], 3, 1);
  expect_caption(&c, &a,
                 "Cosine between the gradient that an update used and that of its batch at the newest weights, and how "
                 "far the weights went since the gradient read them, mean over",
                 "without delay they are 1 and 0");
  pl_analysis_free(&a);
  const int64_t chooses = 2;
  a = compute(&c, &(pl_gap_options){.select_on = &chooses});
  near(&a.mechanism.rows[1].of[PL_MECHANISM_DRIFT], 2, 0.625);
  pl_analysis_free(&a);
  pl_catalog_free(&c);
}

static void columns_of_what_was_logged(void **state) {
  (void)state;
  pl_catalog c = fake_catalog(folder);
  const double none = (double)NAN;
  add(&c, 0.5, "0", "none", 7, 1.5, &(logged){0, 1, none, 1, 0});
  add(&c, 0.5, "1", "none", 7, 1.625, &(logged){0.0625, 1, none, 1, 3});
  pl_analysis a = compute(&c, &(pl_gap_options){0});
  expect_sheet(&a,
               "  optimizer  delay  correction   lr  n   drift  displacement ratio  clipped\n"
               "  adamw      0      none        0.5  1       0              1.0000     0.0%\n"
               "  adamw      1      none        0.5  1  0.0625              1.0000    50.0%\n",
               HEAD "drift.n,drift.mean,drift.sd,drift.low,drift.high,displacement_ratio.n,displacement_ratio.mean,"
                    "displacement_ratio.sd,displacement_ratio.low,displacement_ratio.high,clipped.n,clipped.mean,"
                    "clipped.sd,clipped.low,clipped.high\n"
                    ",adamw,0,none,0.5,1,1,0,,,,1,1,,,,1,0,,,\n"
                    ",adamw,1,none,0.5,1,1,0.0625,,,,1,1,,,,1,0.5,,,\n");
  expect_caption(&c, &a, "How far the weights went since the gradient read them, mean over", "without delay it is 0");
  pl_analysis_free(&a);
  pl_catalog_free(&c);
}

/* Journals of older builds have the clipping alone, which another table shows; a cosine alone is enough. */
static void clipping_alone_is_no_table(void **state) {
  (void)state;
  pl_catalog c = fake_catalog(folder);
  const double none = (double)NAN;
  add(&c, 0.5, "0", "none", 9, 1.5, &(logged){none, none, none, 1, 4});
  pl_analysis a = compute(&c, &(pl_gap_options){0});
  assert_int_equal(a.mechanism.count, 0);
  expect_sheet(&a, "", "");
  pl_analysis_free(&a);
  add(&c, 0.5, "2", "none", 9, 1.5, &(logged){none, none, 0.75, 4, 0});
  a = compute(&c, &(pl_gap_options){0});
  assert_int_equal(a.mechanism.count, 1);
  expect_sheet(&a, "  adamw      2      none        0.5  1        0.7500     0.0%\n",
               HEAD "gradient_cos.n,gradient_cos.mean,gradient_cos.sd,gradient_cos.low,gradient_cos.high,clipped.n,"
                    "clipped.mean,clipped.sd,clipped.low,clipped.high\n"
                    ",adamw,2,none,0.5,1,1,0.75,,,,1,0,,,\n");
  pl_analysis_free(&a);
  pl_catalog_free(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(second_halves_over_seeds, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(columns_of_what_was_logged, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(clipping_alone_is_no_table, make_folder, remove_folder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
