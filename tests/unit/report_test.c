#include "report_help.h"

static const char *const written[] = {"report.md",
                                      "report.html",
                                      "gap.csv",
                                      "runs.csv",
                                      "gap.json",
                                      "latex/gap.tex",
                                      "latex/figures.tex",
                                      "latex/report.tex",
                                      "plots/loss_curves.svg",
                                      "plots/loss_curves.png",
                                      "plots/loss_curves.pdf",
                                      "plots/loss_vs_lr.svg",
                                      "plots/loss_vs_lr.png",
                                      "plots/loss_vs_lr.pdf",
                                      "plots/gap_vs_delay.svg",
                                      "plots/gap_vs_delay.png",
                                      "plots/gap_vs_delay.pdf",
                                      "plots/won_back.svg",
                                      "plots/won_back.pdf",
                                      "plots/heat.svg",
                                      "plots/heat.pdf",
                                      "plots/loss_curves_2.svg",
                                      "plots/gap_vs_delay_2.png"};

static void a_report_is_written_twice_with_the_same_bytes(void **state) {
  (void)state;
  if (!has_gnuplot()) skip();
  char *dir = make_folder(), *first = make_folder(), *second = make_folder();
  pl_catalog c = sample(dir);
  pl_str said = {0}, again = {0};
  snprintf(c.runs[3].result.ended, sizeof c.runs[3].result.ended, "2026-11-30T18:00:00Z");
  write_report(&c, first, &said);
  char *zone = put("TZ", "Asia/Tokyo"), *locale = put("LC_ALL", "de_DE.UTF-8"), *clock = put("SOURCE_DATE_EPOCH", "5");
  write_report(&c, second, &again);
  put_back("TZ", zone);
  put_back("LC_ALL", locale);
  put_back("SOURCE_DATE_EPOCH", clock);
  for (size_t i = 0; i < sizeof written / sizeof written[0]; i++) {
    size_t n = 0, m = 0;
    char *a = read_below(first, written[i], &n), *b = read_below(second, written[i], &m);
    assert_true(n > 100);
    if (n != m || memcmp(a, b, n) != 0) fail_msg("%s differs", written[i]);
    assert_non_null(strstr(pl_str_text(&said), written[i]));
    pl_free(a);
    pl_free(b);
  }
  size_t n = 0;
  char *pdf = read_below(first, "plots/gap_vs_delay.pdf", &n);
  assert_non_null(memmem(pdf, n, "/CreationDate (D:20261130180000Z)", 33));
  pl_free(pdf);
  /* A bar without an interval says its value and over how few seeds it is. */
  char *drawing = read_below(first, "plots/gap_vs_delay_2.svg", &n);
  assert_true(count_of(drawing, "n=1") == 1 && count_of(drawing, "0.300") == 1);
  pl_free(drawing);
  drawing = read_below(first, "plots/gap_vs_delay.svg", &n);
  assert_int_equal(count_of(drawing, "n=1"), 0);
  pl_free(drawing);
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
  assert_non_null(strstr(text, "# made-up\n\n**At optimizer.lr = 0.008:** adamw ("));
  assert_non_null(strstr(text, "\n\n56 runs: 55 done, 1 diverged; 0.056 million tokens"));
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

static bool is_below(const char *folder, const char *name) {
  pl_err e = {0};
  char *path = NULL;
  assert_int_equal(pl_path_join(folder, name, &path, &e), PL_OK);
  bool there = pl_path_exists(path);
  pl_free(path);
  return there;
}

/* A report of two groups, then one of runs without a delay: what the second does not write again goes, and nothing
 * else. */
static void an_earlier_report_is_tidied_up(void **state) {
  (void)state;
  char *dir = make_folder(), *folder = make_folder();
  pl_catalog c = sample(dir), plain = fake_catalog(dir);
  pl_str said = {0};
  fake_arm_run(&plain, "adamw", 8e-3, "0", "\"none\"", 0, 1.6);
  write_report(&c, folder, &said);
  assert_true(is_below(folder, "overview.csv") && is_below(folder, "power.csv"));
  write_below(folder, "mine.csv", "mine\n");
  write_below(folder, "power.csv", "changed\n");
  pl_str_free(&said);
  write_report(&plain, folder, &said);
  assert_false(is_below(folder, "overview.csv") || is_below(folder, "rates.csv"));
  assert_false(is_below(folder, "latex/power.tex") || is_below(folder, "plots/gap_vs_delay.gp") ||
               is_below(folder, "plots/loss_curves_2.svg"));
  assert_true(is_below(folder, "mine.csv") && is_below(folder, "power.csv") && is_below(folder, "gap.csv"));
  assert_non_null(strstr(pl_str_text(&said), "overview.csv is of an earlier report; removed"));
  assert_non_null(strstr(pl_str_text(&said), "power.csv is of an earlier report and was changed since; it stays"));
  pl_str_free(&said);
  pl_catalog_free(&c);
  pl_catalog_free(&plain);
  remove_folder(dir);
  remove_folder(folder);
}

/* files.txt may be anything: no file outside the folder is touched. */
static void a_list_of_files_is_not_trusted(void **state) {
  (void)state;
  char *dir = make_folder(), *folder = make_folder(), hash[PL_ID_SIZE];
  pl_catalog c = sample(dir);
  pl_gap_options o = {.at_key = "optimizer.lr", .at_value = 8e-3};
  pl_str said = {0}, list = {0};
  write_below(dir, "precious", "text");
  pl_hash_hex(pl_hash("text", 4), hash);
  pl_str_printf(&list, "%s %s/precious\n%s ../%s/precious\nshort\n%s \n%s plots\n", hash, dir, hash,
                strrchr(dir, '/') + 1, hash, hash);
  write_below(folder, "files.txt", pl_str_text(&list));
  write_plain_report(&(pl_report_input){.catalog = &c, .options = &o}, folder, &said);
  assert_true(is_below(dir, "precious"));
  pl_str_free(&list);
  pl_str_free(&said);
  pl_catalog_free(&c);
  remove_folder(dir);
  remove_folder(folder);
}

/* Texts of a sweep are shown as they are, in every format. */
static void texts_are_escaped(void **state) {
  (void)state;
  static const char nasty[] = "<script>alert('1')</script> & \"x\" 50% a_b #1 \\ {y} ~^|*`";
  char *dir = make_folder(), *folder = make_folder();
  pl_catalog c = sample(dir);
  pl_notes warnings = {0};
  pl_err e = {0};
  pl_str said = {0};
  pl_gap_options o = {0};
  size_t n = 0;
  for (size_t i = 0; i < 2; i++) {
    pl_free(c.runs[i].label);
    assert_int_equal(pl_strdup(nasty, &c.runs[i].label, &e), PL_OK);
  }
  pl_free(c.name);
  assert_int_equal(pl_strdup(nasty, &c.name, &e), PL_OK);
  assert_int_equal(pl_note(&warnings, &e, "%s", nasty), PL_OK);
  write_plain_report(
      &(pl_report_input){.catalog = &c, .options = &o, .known = &warnings, .command = nasty, .program = nasty}, folder,
      &said);
  char *html = read_below(folder, "report.html", &n), *markdown = read_below(folder, "report.md", &n);
  assert_int_equal(count_of(html, "<script>"), 1); /* the page's own */
  assert_null(strstr(html, "alert('1')"));
  assert_true(count_of(html, "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &quot;x&quot;") >= 7);
  assert_int_equal(count_of(markdown, "<script>"), count_of(markdown, "\\<script>"));
  assert_true(count_of(markdown, "<script>") >= 6);
  pl_free(html);
  pl_free(markdown);
  html = read_below(folder, "latex/report.tex", &n);
  assert_non_null(strstr(html, "$<$script$>$alert('1')$<$/script$>$ \\& ''x'' 50\\% a\\_b \\#1 "
                               "\\textbackslash{} \\{y\\} \\~{}\\^{}\\textbar{}*`"));
  pl_free(html);
  char *csv = read_below(folder, "runs.csv", &n);
  assert_non_null(strstr(csv, ",\"<script>alert('1')</script> & \"\"x\"\" 50%"));
  pl_free(csv);
  pl_str_free(&said);
  pl_notes_free(&warnings);
  pl_catalog_free(&c);
  remove_folder(dir);
  remove_folder(folder);
}

static void a_page_stands_alone(void **state) {
  (void)state;
  if (!has_gnuplot()) skip();
  char *dir = make_folder(), *folder = make_folder();
  pl_catalog c = sample(dir);
  pl_str said = {0};
  pl_gap_options o = {0};
  size_t n = 0;
  write_report_of(&(pl_report_input){.catalog = &c, .options = &o, .reload = 10}, folder, &said);
  char *html = read_below(folder, "report.html", &n);
  assert_non_null(strstr(html, "<meta http-equiv=\"refresh\" content=\"10\">"));
  assert_null(strstr(html, "<img"));
  assert_null(strstr(html, "src="));
  assert_null(strstr(html, "https://"));
  assert_null(strstr(html, "<title>Gnuplot"));
  assert_int_equal(count_of(html, "<svg "), count_of(html, "<figure "));
  assert_int_equal(count_of(html, " id='loss_curves-gpDot'"), 1);
  assert_true(count_of(html, "href='#loss_vs_lr-gpPt") > 0 && count_of(html, "href='#gp") == 0);
  assert_null(strstr(html, dir));
  pl_free(html);
  pl_str_free(&said);
  write_report(&c, folder, &said);
  html = read_below(folder, "report.html", &n);
  assert_null(strstr(html, "\"refresh\""));
  pl_free(html);
  pl_str_free(&said);
  pl_catalog_free(&c);
  remove_folder(dir);
  remove_folder(folder);
}

static void warnings_do_not_tell_where_things_are(void **state) {
  (void)state;
  char *dir = make_folder(), *folder = make_folder();
  const char *const dirs[] = {dir, "b"}, *const names[] = {"first", "second"};
  pl_catalog c = sample(dir);
  pl_notes warnings = {0};
  pl_err e = {0};
  pl_str said = {0};
  pl_gap_options o = {0};
  size_t n = 0;
  assert_int_equal(pl_note(&warnings, &e, "run x (b=b) has other results in b than in %s; both are out", dir), PL_OK);
  write_plain_report(
      &(pl_report_input){
          .catalog = &c, .options = &o, .known = &warnings, .dirs = dirs, .names = names, .dir_count = 2},
      folder, &said);
  char *json = read_below(folder, "gap.json", &n);
  assert_non_null(strstr(json, "run x (b=b) has other results in second than in first; both are out"));
  pl_free(json);
  pl_str_free(&said);
  pl_notes_free(&warnings);
  pl_catalog_free(&c);
  remove_folder(dir);
  remove_folder(folder);
}

static void tables_of_a_paper_have_labels(void **state) {
  (void)state;
  char *dir = make_folder(), *folder = make_folder();
  pl_catalog c = sample(dir);
  pl_gap_options o = {.at_key = "optimizer.lr", .at_value = 8e-3};
  pl_str said = {0};
  size_t n = 0;
  write_plain_report(&(pl_report_input){.catalog = &c, .options = &o}, folder, &said);
  char *text = read_below(folder, "latex/gap.tex", &n);
  assert_int_equal(count_of(text, "\\label{tab:gap-"), count_of(text, "\\begin{table}"));
  assert_int_equal(count_of(text, "\\begin{tabular}"), count_of(text, "\\end{tabular}"));
  assert_int_equal(count_of(text, "\\toprule"), count_of(text, "\\bottomrule"));
  assert_non_null(strstr(text, "\\label{tab:gap-1}"));
  assert_non_null(strstr(
      text, "train.steps=1200 train.val\\_every=100 pipeline.stages=1. n = 3. loss: mean final validation loss."));
  assert_non_null(strstr(text, "95\\% interval"));
  assert_non_null(strstr(text, "pipedream*"));
  pl_free(text);
  pl_str_free(&said);
  pl_catalog_free(&c);
  remove_folder(dir);
  remove_folder(folder);
}

static void without_gnuplot_the_plots_are_left_out(void **state) {
  (void)state;
  char *dir = make_folder(), *folder = make_folder();
  pl_catalog c = sample(dir);
  pl_gap_options o = {0};
  pl_str said = {0};
  size_t n = 0;
  write_plain_report(&(pl_report_input){.catalog = &c, .options = &o}, folder, &said);
  char *text = read_below(folder, "report.md", &n);
  assert_non_null(strstr(pl_str_text(&said), "gnuplot is not installed"));
  assert_null(strstr(pl_str_text(&said), ".svg"));
  assert_null(strstr(text, ".svg"));
  pl_free(text);
  pl_str_free(&said);
  pl_catalog_free(&c);
  remove_folder(dir);
  remove_folder(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_report_is_written_twice_with_the_same_bytes),
      cmocka_unit_test(the_report_says_what_was_run),
      cmocka_unit_test(odd_sweeps_are_drawn),
      cmocka_unit_test(an_earlier_report_is_tidied_up),
      cmocka_unit_test(a_list_of_files_is_not_trusted),
      cmocka_unit_test(texts_are_escaped),
      cmocka_unit_test(a_page_stands_alone),
      cmocka_unit_test(warnings_do_not_tell_where_things_are),
      cmocka_unit_test(tables_of_a_paper_have_labels),
      cmocka_unit_test(without_gnuplot_the_plots_are_left_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
