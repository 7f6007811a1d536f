#include "report_help.h"

/* Only tags are rewritten, not what is written between them. */
static void drawings_keep_their_texts(void **state) {
  (void)state;
  pl_str out = {0};
  assert_true(
      pl_svg_inline("<?xml?>\n<svg id='a'><title>x</title><desc>y</desc><use xlink:href='#a' filter=\"url(#b)\"/>"
                    "<text> id='a' href='#a'</text></svg>",
                    "p", "1 < 2", &out));
  assert_string_equal(pl_str_text(&out), "<svg role=\"img\" aria-label=\"1 &lt; 2\" id='p-a'><use xlink:href='#p-a' "
                                         "filter=\"url(#p-b)\"/><text> id='a' href='#a'</text></svg>");
  assert_false(pl_svg_inline("nothing", "p", "", &out));
  pl_str_free(&out);
}

static void dates_of_a_pdf_keep_its_length(void **state) {
  (void)state;
  static const struct {
    const char *before, *date, *after;
  } cases[] = {
      {"a/CreationDate (D:20261201072330+09'00)b", "2026-11-30T18:00:00Z", "a/CreationDate (D:20261130180000Z)     b"},
      {"a/CreationDate (D:20261201072330Z)b", "", "a                                 b"},
      {"a/ModDate (D:1999)b", "2026-11-30T18:00:00Z", "a                 b"},
      {"no date", "2026-11-30T18:00:00Z", "no date"}};
  char *folder = make_folder(), *path = NULL;
  pl_err e = {0};
  assert_int_equal(pl_path_join(folder, "x.pdf", &path, &e), PL_OK);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    size_t n = 0;
    write_below(folder, "x.pdf", cases[i].before);
    assert_int_equal(pl_pdf_set_date(path, cases[i].date, &e), PL_OK);
    char *got = read_below(folder, "x.pdf", &n);
    assert_string_equal(got, cases[i].after);
    pl_free(got);
  }
  pl_free(path);
  remove_folder(folder);
}

/* The numbers of a figure with what they belong to. */
static void figures_have_their_numbers(void **state) {
  (void)state;
  pl_plot p = {.name = "figure"};
  pl_plot_series(&p, "adamw, delay 1");
  pl_plot_numbers(&p, (double[]){0.5, NAN}, 2);
  pl_plot_series(&p, "plain");
  pl_plot_numbers(&p, (double[]){1, 2}, 2);
  assert_string_equal(pl_str_text(&p.csv), "\"adamw, delay 1\",0.5,\nplain,1,2\n");
  assert_string_equal(pl_str_text(&p.data), "0.5 NaN\n1 2\n");
  pl_plot_free(&p);
}

/* Any two keys: here a parameter of the optimizer and a section; sizes sort as numbers. */
static void heat_maps_take_any_keys(void **state) {
  (void)state;
  if (!has_gnuplot()) skip();
  char *dir = make_folder(), *folder = make_folder();
  pl_catalog c = fake_catalog(dir);
  static const double momenta[] = {0.9, 0.95, 0.99};
  for (int m = 0; m < 3; m++)
    for (int seed = 0; seed < 3; seed++) {
      const char *const corrections[] = {"none", "ef"};
      for (int k = 0; k < 3; k++)
        fake_run(&c, PL_RUN_DONE, 1.6 + 0.1 * m + 0.05 * k + 0.001 * seed * (k + 1),
                 "\"optimizer\": \"adamw\", \"optimizer.beta1\": %g, \"delay\": %d, \"correction\": \"%s\", \"seed\": "
                 "%d, \"train\": {\"steps\": 9}",
                 momenta[2 - m], k == 0 ? 0 : 1, corrections[k == 2], seed);
    }
  pl_str said = {0};
  pl_gap_options o = {0};
  size_t n = 0;
  write_report_of(&(pl_report_input){.catalog = &c, .options = &o, .heat = {"optimizer.beta1", "correction"}}, folder,
                  &said);
  assert_null(strstr(pl_str_text(&said), "could not"));
  char *script = read_below(folder, "plots/heat.gp", &n), *csv = read_below(folder, "plots/heat.csv", &n);
  assert_non_null(strstr(script, "set xtics ('0.9' 0, '0.95' 1, '0.99' 2)"));
  assert_non_null(strstr(script, "set ytics ('none' 0, 'ef' 1)"));
  assert_int_equal(count_of(script, "with boxxyerror"), 1); /* one panel */
  assert_non_null(strstr(csv, "\"delay 1, optimizer.beta1 0.9, correction ef\",0,1,0.10"));
  pl_free(script);
  pl_free(csv);
  pl_str_free(&said);
  pl_catalog_free(&c);
  remove_folder(dir);
  remove_folder(folder);
}

/* Titles name the optimizer, and of its parameters those that differ between its own runs. */
static void titles_do_not_repeat_the_optimizer(void **state) {
  (void)state;
  if (!has_gnuplot()) skip();
  char *dir = make_folder(), *folder = make_folder();
  pl_catalog c = fake_catalog(dir);
  for (int o = 0; o < 2; o++)
    for (int k = 0; k < 8; k++)
      fake_run(&c, PL_RUN_DONE, 1.6 + 0.1 * k,
               "\"optimizer\": {\"type\": \"%s\", \"beta1\": %g}, \"optimizer.lr\": %g, \"delay\": %d, \"train\": "
               "{\"steps\": 9}",
               o == 0 ? "adamw" : "muon", o == 0 && k >= 4 ? 0.5 : 0.9 + 0.05 * o, k % 2 ? 0.01 : 0.02, k / 2 % 2);
  pl_str said = {0};
  pl_gap_options o = {0};
  size_t n = 0;
  write_report_of(&(pl_report_input){.catalog = &c, .options = &o, .heat = {"optimizer.lr", "delay"}}, folder, &said);
  char *script = read_below(folder, "plots/heat.gp", &n);
  assert_int_equal(count_of(script, "optimizer adamw, optimizer.beta1 0.9'"), 1);
  assert_int_equal(count_of(script, "optimizer adamw, optimizer.beta1 0.5'"), 1);
  assert_int_equal(count_of(script, "'optimizer muon'"), 1);
  assert_int_equal(count_of(script, "beta1 0.95"), 0);
  pl_free(script);
  pl_str_free(&said);
  pl_catalog_free(&c);
  remove_folder(dir);
  remove_folder(folder);
}

/* Axes that are none are refused before anything is written, and those that there are are named. */
static void axes_of_a_heat_map_must_differ(void **state) {
  (void)state;
  char *dir = make_folder(), *folder = make_folder(), *below = NULL;
  pl_catalog c = sample(dir);
  static const struct {
    const char *keys[2], *said;
  } cases[] = {
      {{"optimzer.lr", "delay"}, "--heat: optimzer.lr is a key that no run has, did you mean optimizer.lr?; allowed:"},
      {{"delay", "train.foo"},
       "--heat: train.foo is a key that no run has; allowed: two keys that differ between runs"},
      {{"delay", "train.foo"}, "optimizer.lr, correction"},
      {{"seed", "delay"}, "--heat: seed is no axis, values are means over seeds"},
      {{"delay", "train.batch_tokens"}, "--heat: train.batch_tokens has one value in all runs"},
      {{"delay", "delay"}, "--heat: saw delay twice"},
  };
  pl_gap_options o = {0};
  pl_err e = {0};
  assert_int_equal(pl_path_join(folder, "report", &below, &e), PL_OK);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    e = (pl_err){0};
    const pl_report_input in = {.catalog = &c, .options = &o, .heat = {cases[i].keys[0], cases[i].keys[1]}};
    assert_int_equal(pl_report_write(&in, below, NULL, NULL, &e), PL_BAD);
    if (!strstr(e.text, cases[i].said)) fail_msg("\"%s\" lacks \"%s\"", e.text, cases[i].said);
    assert_false(pl_path_exists(below));
  }
  pl_str said = {0};
  write_plain_report(&(pl_report_input){.catalog = &c, .options = &o, .heat = {"optimizer", "correction"}}, below,
                     &said);
  assert_true(pl_path_exists(below));
  pl_str_free(&said);
  pl_free(below);
  pl_catalog_free(&c);
  remove_folder(dir);
  remove_folder(folder);
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

static void gnuplot_complaints_are_passed_on(void **state) {
  (void)state;
  if (!has_gnuplot()) skip();
  char *folder = make_folder();
  pl_err e = {0};
  pl_drawn drawn;
  pl_plot p = {.name = "broken", .width = 300, .height = 200};
  pl_str_append(&p.script, "plot nothing_of_that_name\n");
  assert_int_equal(pl_plot_draw(&p, folder, "", &drawn, &e), PL_OK);
  assert_false(drawn.as[PL_DRAWN_SVG] || drawn.as[PL_DRAWN_PNG] || drawn.as[PL_DRAWN_PDF] || drawn.missing);
  assert_true(strlen(drawn.problem[PL_DRAWN_SVG]) > 0);
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
  assert_true(m.low[2] == 2 && m.high[2] == 3);
  pl_mean_curve_free(&m);
  pl_catalog_free(&c);
  remove_folder(dir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(drawings_keep_their_texts),
      cmocka_unit_test(dates_of_a_pdf_keep_its_length),
      cmocka_unit_test(figures_have_their_numbers),
      cmocka_unit_test(heat_maps_take_any_keys),
      cmocka_unit_test(titles_do_not_repeat_the_optimizer),
      cmocka_unit_test(axes_of_a_heat_map_must_differ),
      cmocka_unit_test(vertical_axes_follow_the_losses),
      cmocka_unit_test(gnuplot_complaints_are_passed_on),
      cmocka_unit_test(quotes_hold),
      cmocka_unit_test(mean_curves_keep_common_steps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
