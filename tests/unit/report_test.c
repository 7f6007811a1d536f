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
#include "analysis/pdf_date.h"
#include "analysis/plots.h"
#include "analysis/report_parts.h"
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

static void write_report_of(const pl_report_input *in, const char *folder, pl_str *said) {
  pl_err e = {0};
  if (pl_report_write(in, folder, note_line, said, &e) != PL_OK) fail_msg("%s", e.text);
}

static void write_report(const pl_catalog *c, const char *folder, pl_str *said) {
  pl_gap_options o = {.at_key = "optimizer.lr", .at_value = 8e-3};
  write_report_of(&(pl_report_input){.catalog = c, .options = &o}, folder, said);
}

/* Sets an environment variable, or unsets it with NULL; the old value is released by put_back. */
static char *put(const char *name, const char *value) {
  char *old = NULL;
  const char *now = getenv(name);
  pl_err e = {0};
  if (now) assert_int_equal(pl_strdup(now, &old, &e), PL_OK);
  if (value)
    setenv(name, value, 1);
  else
    unsetenv(name);
  return old;
}

static void put_back(const char *name, char *old) {
  pl_free(put(name, old));
  pl_free(old);
}

/* Without plots, which take most of the time. */
static void write_plain_report(const pl_report_input *in, const char *folder, pl_str *said) {
  char *path = put("PATH", folder);
  write_report_of(in, folder, said);
  put_back("PATH", path);
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

static bool has_gnuplot(void) { return system("gnuplot --version > /dev/null 2>&1") == 0; }

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

static void write_below(const char *folder, const char *name, const char *text) {
  pl_err e = {0};
  char *path = NULL;
  assert_int_equal(pl_path_join(folder, name, &path, &e), PL_OK);
  assert_int_equal(pl_file_replace(path, text, strlen(text), &e), PL_OK);
  pl_free(path);
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

static size_t count_of(const char *text, const char *part) {
  size_t n = 0;
  for (const char *at = text; (at = strstr(at, part)) != NULL; at++) n++;
  return n;
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
      cmocka_unit_test(a_report_is_written_twice_with_the_same_bytes),
      cmocka_unit_test(the_report_says_what_was_run),
      cmocka_unit_test(odd_sweeps_are_drawn),
      cmocka_unit_test(an_earlier_report_is_tidied_up),
      cmocka_unit_test(a_list_of_files_is_not_trusted),
      cmocka_unit_test(texts_are_escaped),
      cmocka_unit_test(a_page_stands_alone),
      cmocka_unit_test(drawings_keep_their_texts),
      cmocka_unit_test(dates_of_a_pdf_keep_its_length),
      cmocka_unit_test(figures_have_their_numbers),
      cmocka_unit_test(heat_maps_take_any_keys),
      cmocka_unit_test(warnings_do_not_tell_where_things_are),
      cmocka_unit_test(tables_of_a_paper_have_labels),
      cmocka_unit_test(vertical_axes_follow_the_losses),
      cmocka_unit_test(without_gnuplot_the_plots_are_left_out),
      cmocka_unit_test(gnuplot_complaints_are_passed_on),
      cmocka_unit_test(quotes_hold),
      cmocka_unit_test(mean_curves_keep_common_steps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
