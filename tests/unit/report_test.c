#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

#include "analysis/gnuplot.h"
#include "analysis/mean_curve.h"
#include "analysis/plots.h"
#include "analysis/report.h"
#include "fake_sweep.h"

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *at) {
  (void)s;
  (void)kind;
  (void)at;
  return remove(path);
}

static char *make_folder(void) {
  char text[] = "/tmp/pipelag-report-XXXXXX", *out = NULL;
  pl_err e = {0};
  assert_non_null(mkdtemp(text));
  assert_int_equal(pl_strdup(text, &out, &e), PL_OK);
  return out;
}

static void remove_folder(char *folder) {
  assert_int_equal(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
  pl_free(folder);
}

/* Two optimizers with three learning rates and three seeds, one arm that diverges, and a second group of arms. */
static pl_catalog sample(const char *dir) {
  pl_catalog c = fake_catalog(dir);
  const char *const optimizers[] = {"adamw", "muon"};
  for (int o = 0; o < 2; o++)
    for (int seed = 0; seed < 3; seed++)
      for (int l = 0; l < 3; l++) {
        double lr = 4e-3 * (1 << l), loss = 1.60 + 0.02 * o + 0.003 * seed + 0.01 * (l - 1) * (l - 1);
        double delayed = loss + (o == 0 ? 0.1 + 0.02 * l : 0.02) + 0.001 * ((seed * 5) % 3);
        fake_arm_run(&c, optimizers[o], lr, "0", "\"none\"", seed, loss);
        fake_arm_run(&c, optimizers[o], lr, "1", "\"none\"", seed,
                     o == 0 && l == 2 && seed == 1 ? (double)NAN : delayed);
        fake_arm_run(&c, optimizers[o], lr, "1", "\"ef\"", seed, 0.6 * loss + 0.4 * delayed);
      }
  for (int d = 0; d < 2; d++)
    fake_run(&c, PL_RUN_DONE, 1.7 + 0.3 * d,
             "\"optimizer\": \"adamw\", \"optimizer.lr\": 0.008, \"delay\": %s, \"simulate_only\": true, "
             "\"pipeline\": {\"stages\": 8}, \"train\": {\"steps\": 600}",
             d == 0 ? "0" : "\"pipedream\"");
  for (size_t i = 0; i < c.count; i++) fake_journal(&c, &c.runs[i]);
  return c;
}

static void note_line(void *self, const char *line) { pl_str_printf(self, "%s\n", line); }

static void write_report(const pl_catalog *c, const char *folder, pl_str *said) {
  pl_err e = {0};
  pl_gap_options o = {.at_key = "optimizer.lr", .at_value = 8e-3};
  if (pl_report_write(c, NULL, &o, folder, note_line, said, &e) != PL_OK) fail_msg("%s", e.text);
}

static char *read_below(const char *folder, const char *name, size_t *length) {
  pl_err e = {0};
  char *path = NULL, *text = NULL;
  assert_int_equal(pl_path_join(folder, name, &path, &e), PL_OK);
  if (pl_file_read(path, (size_t)1 << 24, &text, length, &e) != PL_OK) fail_msg("%s", e.text);
  pl_free(path);
  return text;
}

static const char *const written[] = {"report.md",
                                      "gap.csv",
                                      "gap.json",
                                      "plots/loss_curves.svg",
                                      "plots/loss_curves.png",
                                      "plots/loss_vs_lr.svg",
                                      "plots/loss_vs_lr.png",
                                      "plots/gap_vs_delay.svg",
                                      "plots/gap_vs_delay.png",
                                      "plots/loss_curves_2.svg",
                                      "plots/gap_vs_delay_2.png"};

static bool has_gnuplot(void) { return system("gnuplot --version > /dev/null 2>&1") == 0; }

static void a_report_is_written_twice_with_the_same_bytes(void **state) {
  (void)state;
  if (!has_gnuplot()) skip();
  char *dir = make_folder(), *first = make_folder(), *second = make_folder();
  pl_catalog c = sample(dir);
  pl_str said = {0}, again = {0};
  write_report(&c, first, &said);
  write_report(&c, second, &again);
  for (size_t i = 0; i < sizeof written / sizeof written[0]; i++) {
    size_t n = 0, m = 0;
    char *a = read_below(first, written[i], &n), *b = read_below(second, written[i], &m);
    assert_true(n > 100);
    if (n != m || memcmp(a, b, n) != 0) fail_msg("%s differs", written[i]);
    assert_non_null(strstr(pl_str_text(&said), written[i]));
    pl_free(a);
    pl_free(b);
  }
  /* One learning rate alone makes no curve. */
  assert_null(strstr(pl_str_text(&said), "loss_vs_lr_2"));
  pl_str_free(&said);
  pl_str_free(&again);
  pl_catalog_free(&c);
  remove_folder(dir);
  remove_folder(first);
  remove_folder(second);
}

static void the_report_says_what_was_run(void **state) {
  (void)state;
  char *dir = make_folder(), *folder = make_folder();
  pl_catalog c = sample(dir);
  pl_str said = {0};
  size_t n = 0;
  write_report(&c, folder, &said);
  char *text = read_below(folder, "report.md", &n), id[PL_ID_SIZE];
  assert_non_null(strstr(text, "# made-up\n\n56 runs: 55 done, 1 diverged; 0.056 million tokens"));
  assert_non_null(strstr(text, "### At optimizer.lr = 0.008"));
  assert_non_null(strstr(text, "pipedream\\*"));
  assert_non_null(strstr(text, "(1 of 3)"));
  for (size_t i = 0; i < c.count; i++) {
    pl_hash_hex(c.runs[i].id, id);
    assert_non_null(strstr(text, id));
  }
  if (has_gnuplot()) {
    assert_non_null(strstr(text, "](plots/loss_vs_lr.svg)"));
    assert_true(strstr(text, "## Plots") < strstr(text, "## Gap")); /* people look at plots first */
  }
  pl_free(text);
  pl_str_free(&said);
  pl_catalog_free(&c);
  remove_folder(dir);
  remove_folder(folder);
}

/* Many optimizers, losses over decades, a rate at which all diverged, and an arm alone: gnuplot draws without
 * complaint.
 */
static void odd_sweeps_are_drawn(void **state) {
  (void)state;
  if (!has_gnuplot()) skip();
  for (int arms = 1; arms <= 14; arms += 13) {
    char *dir = make_folder(), *folder = make_folder();
    pl_catalog c = fake_catalog(dir);
    for (int arm = 0; arm < arms; arm++)
      for (int rate = 0; rate < 3; rate++)
        for (int delay = 0; delay < (arms > 1 ? 3 : 1); delay++) {
          bool bad = rate == 2 && delay > 0;
          fake_journal(&c,
                       fake_run(&c, bad ? PL_RUN_DIVERGED : PL_RUN_DONE, bad ? (double)NAN : pow(10, -arm) / (1 + rate),
                                "\"optimizer\": \"adamw\", \"optimizer.beta1\": %g, \"optimizer.lr\": %g, "
                                "\"delay\": %d, \"train\": {\"steps\": 40, \"val_every\": 2}",
                                0.8 + 0.01 * arm, 0.008 * (1 + rate), delay));
        }
    pl_str said = {0};
    size_t n = 0;
    write_report(&c, folder, &said);
    assert_null(strstr(pl_str_text(&said), "could not"));
    char *script = read_below(folder, "plots/loss_vs_lr.gp", &n);
    assert_int_equal(strstr(script, "title 'diverged'") != NULL, arms > 1);
    assert_non_null(strstr(script, "'0.008' 0.008"));
    pl_free(script);
    if (arms > 1) {
      char *bars = read_below(folder, "plots/gap_vs_delay.gp", &n);
      assert_non_null(strstr(bars, "rotate by 90")); /* 28 bars are narrow */
      pl_free(bars);
    } else {
      assert_null(strstr(pl_str_text(&said), "gap_vs_delay"));
    }
    pl_str_free(&said);
    pl_catalog_free(&c);
    remove_folder(dir);
    remove_folder(folder);
  }
}

static void vertical_axes_follow_the_losses(void **state) {
  (void)state;
  assert_true(pl_plot_spans_decades(1e-5, 0.1));
  assert_false(pl_plot_spans_decades(1.5, 5.5));
  assert_false(pl_plot_spans_decades(-1e-5, 0.1));
  static const struct {
    double low, high;
    const char *script;
  } cases[] = {{0.01, 1, "set logscale y\nset yrange [0.001:10]\n"},
               {1, 3, "unset logscale y\nset yrange [0:4]\n"},
               {2, 2, "unset logscale y\nset yrange [*:*]\n"}};
  for (size_t i = 0; i < 3; i++) {
    pl_str s = {0};
    pl_plot_vertical(&s, cases[i].low, cases[i].high, 0.5);
    assert_string_equal(pl_str_text(&s), cases[i].script);
    pl_str_free(&s);
  }
}

static void without_gnuplot_the_plots_are_left_out(void **state) {
  (void)state;
  char *dir = make_folder(), *folder = make_folder(), *path = NULL;
  pl_err e = {0};
  pl_catalog c = sample(dir);
  pl_str said = {0};
  size_t n = 0;
  assert_int_equal(pl_strdup(getenv("PATH"), &path, &e), PL_OK);
  setenv("PATH", folder, 1);
  write_report(&c, folder, &said);
  setenv("PATH", path, 1);
  char *text = read_below(folder, "report.md", &n);
  assert_non_null(strstr(pl_str_text(&said), "gnuplot is not installed"));
  assert_null(strstr(pl_str_text(&said), ".svg"));
  assert_null(strstr(text, ".svg"));
  pl_free(text);
  pl_free(path);
  pl_str_free(&said);
  pl_catalog_free(&c);
  remove_folder(dir);
  remove_folder(folder);
}

static void gnuplot_complaints_are_passed_on(void **state) {
  (void)state;
  if (!has_gnuplot()) skip();
  char *folder = make_folder();
  pl_err e = {0};
  pl_drawn drawn;
  pl_plot p = {.name = "broken", .width = 300, .height = 200};
  pl_str_append(&p.script, "plot nothing_of_that_name\n");
  assert_int_equal(pl_plot_draw(&p, folder, &drawn, &e), PL_OK);
  assert_false(drawn.svg || drawn.png || drawn.missing);
  assert_true(strlen(drawn.problem) > 0);
  pl_plot_free(&p);
  remove_folder(folder);
}

/* A text of the sweep file stands inside the script as a text, whatever is in it. */
static void quotes_hold(void **state) {
  (void)state;
  pl_str s = {0};
  pl_plot_quote(&s, "it's `date`\n@x");
  assert_string_equal(pl_str_text(&s), "'it''s `date` @x'");
  pl_str_free(&s);
}

static void mean_curves_keep_common_steps(void **state) {
  (void)state;
  char *dir = make_folder();
  pl_catalog c = fake_catalog(dir);
  const char *format =
      "\"optimizer\": \"adamw\", \"delay\": 0, \"seed\": %d, \"train\": {\"steps\": 12, \"val_every\": %d}";
  fake_run(&c, PL_RUN_DONE, 2.0, format, 0, 2);
  fake_run(&c, PL_RUN_DONE, 3.0, format, 1, 3);
  pl_catalog_run *lost = fake_run(&c, PL_RUN_DIVERGED, NAN, format, 2, 3);
  for (size_t i = 0; i < c.count; i++) fake_journal(&c, &c.runs[i]);
  pl_arm_run runs[] = {{&c.runs[0], 0, 2.0}, {&c.runs[1], 1, 3.0}, {lost, 2, (double)INFINITY}};
  pl_arm_cell cell = {.lr = 1e-3, .runs = runs, .count = 3};
  pl_mean_curve m;
  pl_err e = {0};
  assert_int_equal(pl_mean_curve_read(&cell, PL_SERIES_val_loss, &m, &e), PL_OK);
  assert_int_equal(m.seeds, 2);
  assert_int_equal(m.count, 3);
  assert_int_equal(m.steps[1], 6);
  assert_int_equal(m.steps[2], 12);
  assert_true(m.values[0] == 5.5 && m.values[2] == 2.5);
  pl_mean_curve_free(&m);
  pl_catalog_free(&c);
  remove_folder(dir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_report_is_written_twice_with_the_same_bytes),
      cmocka_unit_test(the_report_says_what_was_run),
      cmocka_unit_test(odd_sweeps_are_drawn),
      cmocka_unit_test(vertical_axes_follow_the_losses),
      cmocka_unit_test(without_gnuplot_the_plots_are_left_out),
      cmocka_unit_test(gnuplot_complaints_are_passed_on),
      cmocka_unit_test(quotes_hold),
      cmocka_unit_test(mean_curves_keep_common_steps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
