#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "analysis/compare.h"
#include "analysis/extend.h"
#include "analysis/join.h"
#include "fake_sweep.h"
#include "sweeps/sweep.h"

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *at) {
  (void)info, (void)type, (void)at;
  return remove(path);
}

static void make_folder(char *out) {
  strcpy(out, "/tmp/pl_join_XXXXXX");
  assert_non_null(mkdtemp(out));
}

static void remove_folder(const char *dir) { assert_int_equal(nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0); }

static pl_json *parse(const char *text) {
  pl_json *out = NULL;
  pl_err e = {0};
  if (pl_json_parse(text, strlen(text), "sweep", &out, &e) != PL_OK) fail_msg("%s", e.text);
  return out;
}

/* Freezes a sweep into a folder, as `pipelag run` does, and gives every run of it without a result the loss that
 * `loss` says. */
static void fill(const char *dir, const pl_json *document, double (*loss)(const pl_run_config *c)) {
  pl_registries r = fake_registries();
  pl_err e = {0};
  pl_sweep *sweep = NULL;
  pl_freeze *f = NULL;
  const pl_sweep_run *run = NULL;
  if (pl_sweep_from_json(&r, document, "sweep.json", (pl_sets){0}, &sweep, &e) != PL_OK) fail_msg("%s", e.text);
  assert_int_equal(pl_freeze_begin(dir, pl_sweep_name(sweep), pl_sweep_document(sweep), "/tmp", &f, &e), PL_OK);
  for (;;) {
    uint64_t index = 0;
    pl_result known;
    if (pl_sweep_next(sweep, &run, &e) != PL_OK) fail_msg("%s", e.text);
    if (!run) break;
    assert_int_equal(pl_freeze_add(f, run->id, "a run", &index, &e), PL_OK);
    assert_int_equal(pl_run_create(dir, run->id, run->config, &e), PL_OK);
    if (pl_run_read_result(dir, run->id, &known, &e) == PL_OK) continue;
    pl_outcome o = {.end = PL_END_DONE, .steps = 100, .tokens = 1000, .first_bad_step = -1, .resumed_from = -1};
    o.final_val_loss = o.best_val_loss = loss(run->config);
    assert_int_equal(pl_run_write_result(dir, run->id, PL_RUN_DONE, &o, NULL, &e), PL_OK);
  }
  assert_int_equal(pl_freeze_commit(f, &e), PL_OK);
  pl_freeze_end(f);
  pl_sweep_free(sweep);
}

static double beta_of(const pl_run_config *c) {
  return ((const fake_optimizer *)(const void *)c->optimizer.config)->beta1;
}

/* Best at 8e-3; delay costs 0.1 and a little more or less by the seed, momentum 0.5 another 0.03. */
static double usual_loss(const pl_run_config *c) {
  double off = log2(pl_run_config_lr(c) / 8e-3), seed = (double)c->root.seed;
  double delayed = (double)c->root.delay.values[0] * (0.1 + 0.001 * fmod(3 * seed, 5));
  return 1.6 + 0.01 * off * off + 0.002 * seed + delayed + (beta_of(c) < 0.6 ? 0.03 + 0.001 * fmod(2 * seed, 3) : 0);
}

static double other_loss(const pl_run_config *c) { return usual_loss(c) + (c->root.seed == 1 ? 1e-9 : 0); }

static const char sweep_text[] =
    "{\"name\": \"joined\", \"base\": {\"model\": \"toy\", \"optimizer\": \"adamw\", \"train\": {\"steps\": 100}},"
    " \"grid\": {\"optimizer.lr\": [0.001, 0.002, 0.004], \"delay\": [0, 1]}, \"seeds\": [0, 1, 2]}";

static pl_joined open_all(const char *const *dirs, size_t count) {
  pl_registries r = fake_registries();
  pl_joined j;
  pl_err e = {0};
  if (pl_joined_open(&r, dirs, count, NULL, NULL, &j, &e) != PL_OK) fail_msg("%s", e.text);
  return j;
}

static pl_analysis analyze(const pl_joined *j) {
  static const pl_gap_options none = {0};
  pl_analysis a;
  pl_err e = {0};
  if (pl_analysis_run(&j->all, &j->warnings, &none, &a, &e) != PL_OK) fail_msg("%s", e.text);
  return a;
}

static void runs_of_several_directories_count_once(void **state) {
  (void)state;
  char one[32], two[32], three[32];
  make_folder(one), make_folder(two), make_folder(three);
  pl_json *document = parse(sweep_text);
  fill(one, document, usual_loss);
  fill(two, document, usual_loss);
  fill(three, document, other_loss);
  const char *const dirs[] = {one, two, three};
  pl_joined j = open_all(dirs, 1);
  pl_analysis a = analyze(&j);
  const pl_estimate alone = a.gap.rows[1].gap;
  assert_int_equal(alone.n, 3);
  pl_analysis_free(&a);
  pl_joined_free(&j);
  j = open_all(dirs, 2);
  assert_int_equal(j.all.count, 18);
  assert_int_equal(j.warnings.count, 0);
  a = analyze(&j);
  assert_true(a.gap.rows[1].gap.mean == alone.mean && a.gap.rows[1].gap.n == 3);
  pl_analysis_free(&a);
  pl_joined_free(&j);
  j = open_all(dirs, 3); /* the runs of seed 1 contradict each other */
  assert_int_equal(j.all.count, 12);
  assert_int_equal(j.warnings.count, 6);
  assert_non_null(strstr(j.warnings.texts[0], "(a run) has other results in "));
  a = analyze(&j);
  assert_int_equal(a.gap.rows[1].gap.n, 2);
  assert_non_null(strstr(a.warnings.texts[0], "both are left out of the comparison"));
  pl_analysis_free(&a);
  pl_joined_free(&j);
  pl_json_release(document);
  remove_folder(one), remove_folder(two), remove_folder(three);
}

/* The same figures from another curve are another result. */
static void curves_are_compared_too(void **state) {
  (void)state;
  char one[32], two[32];
  make_folder(one), make_folder(two);
  pl_json *document = parse(sweep_text);
  fill(one, document, usual_loss);
  fill(two, document, usual_loss);
  const char *const dirs[] = {one, two};
  pl_joined j = open_all(dirs, 2);
  fake_journal(&j.parts[0], &j.parts[0].runs[4]);
  fake_journal(&j.parts[1], &j.parts[1].runs[4]);
  j.parts[0].runs[7].result.outcome.final_val_loss += 0.5;
  fake_journal(&j.parts[0], &j.parts[0].runs[7]);
  fake_journal(&j.parts[1], &j.parts[1].runs[7]);
  pl_joined_free(&j);
  j = open_all(dirs, 2);
  assert_int_equal(j.all.count, 17);
  assert_int_equal(j.warnings.count, 1);
  pl_joined_free(&j);
  pl_json_release(document);
  remove_folder(one), remove_folder(two);
}

/* The best rate is the highest: the sweep is extended upwards until it no longer is. */
static void extended_sweeps_extend_the_directory(void **state) {
  (void)state;
  char dir[32];
  make_folder(dir);
  pl_registries r = fake_registries();
  pl_json *document = parse(sweep_text), *extended = NULL;
  const char *const dirs[] = {dir};
  pl_err e = {0};
  fill(dir, document, usual_loss);
  for (int round = 0; round < 3; round++) {
    size_t added = 0;
    pl_joined j = open_all(dirs, 1);
    pl_analysis a = analyze(&j);
    pl_status st = pl_extend(&r, &a.rates, &extended, &added, &e);
    size_t known = j.all.count;
    assert_true(a.gap.rows[0].lr == (round == 0 ? 4e-3 : 8e-3));
    pl_analysis_free(&a);
    pl_joined_free(&j);
    if (round == 2) {
      assert_int_equal(st, PL_NOTHING);
      break;
    }
    if (st != PL_OK) fail_msg("%s", e.text);
    assert_int_equal(added, 6);
    assert_string_equal(pl_json_get_string(extended, "name", ""), "joined");
    const pl_json *grid = pl_json_get(extended, "grid"), *last = pl_json_at(grid, pl_json_size(grid) - 1);
    assert_int_equal(pl_json_size(grid), 3 + 2 * (size_t)round);
    assert_int_equal(pl_json_size(pl_json_get(last, "base")), 1); /* the delay alone: the sweep's base says the rest */
    assert_int_equal(pl_json_get_int(pl_json_get(last, "base"), "delay", -1), 1);
    fill(dir, extended, usual_loss);
    j = open_all(dirs, 1);
    assert_int_equal(j.all.count, known + 6);
    for (size_t i = 0; i < j.all.count; i++) assert_true(j.all.runs[i].current);
    pl_joined_free(&j);
    pl_json_release(extended);
    extended = NULL;
  }
  pl_json_release(document);
  remove_folder(dir);
}

/* What was given with --set stands over every block: an extension could not add anything, and says so. */
static void a_set_axis_is_not_extended(void **state) {
  (void)state;
  char dir[32];
  make_folder(dir);
  pl_registries r = fake_registries();
  pl_json *document = parse(
      "{\"name\": \"joined\", \"base\": {\"model\": \"toy\", \"optimizer\": \"adamw\", \"train\": {\"steps\": 100}},"
      " \"grid\": {\"delay\": [0, 1]}, \"set\": {\"optimizer.lr\": [0.001, 0.002, 0.004]}}");
  const char *const dirs[] = {dir};
  pl_err e = {0};
  pl_json *extended = NULL;
  size_t added = 0;
  fill(dir, document, usual_loss);
  pl_joined j = open_all(dirs, 1);
  pl_analysis a = analyze(&j);
  assert_int_equal(pl_extend(&r, &a.rates, &extended, &added, &e), PL_BAD);
  assert_non_null(strstr(e.text, "0 of the 2 runs that extend its learning rates would come out; \"set\""));
  assert_null(extended);
  pl_analysis_free(&a);
  pl_joined_free(&j);
  pl_json_release(document);
  remove_folder(dir);
}

static void gather(const pl_joined *j, const pl_arms *arms, const char *name, pl_side *out) {
  pl_err e = {0};
  *out = (pl_side){.name = name, .arms = arms};
  for (size_t i = 0; i < j->all.count; i++)
    assert_int_equal(pl_side_add(out, j->all.runs[i].id, j->all.runs[i].config, &j->all.runs[i], &e), PL_OK);
  pl_side_sort(out);
}

static void sweeps_that_differ_in_a_key_are_compared_by_seed(void **state) {
  (void)state;
  char one[32], two[32];
  make_folder(one), make_folder(two);
  pl_json *document = parse(sweep_text);
  pl_json *changed =
      parse("{\"name\": \"joined\", \"base\": {\"model\": \"toy\", \"optimizer\": \"adamw\", \"optimizer.beta1\": 0.5, "
            "\"train\": {\"steps\": 100}}, \"grid\": {\"optimizer.lr\": [0.002, 0.004], \"delay\": [0, 1, 2]}, "
            "\"seeds\": [0, 1, 2]}");
  fill(one, document, usual_loss);
  fill(two, changed, usual_loss);
  const char *const dirs[] = {one, two};
  const pl_gap_options options = {0};
  pl_joined a = open_all(&dirs[0], 1), b = open_all(&dirs[1], 1);
  pl_analysis x = analyze(&a), y = analyze(&b);
  pl_side left, right;
  pl_comparison c;
  pl_err e = {0};
  pl_str text = {0};
  gather(&a, &x.arms, one, &left);
  gather(&b, &y.arms, two, &right);
  if (pl_compare(&left, &right, &options, &c, &e) != PL_OK) fail_msg("%s", e.text);
  assert_true(c.both == 0 && c.only_a == 18 && c.only_b == 18);
  assert_int_equal(c.keys.count, 3);
  assert_int_equal(c.arms.count, 2); /* delay 0 and 1; delay 2 has no partner */
  const double more[] = {0.03, 0.032, 0.031};
  pl_estimate expected = pl_estimate_of(more, 3);
  for (size_t i = 0; i < 2; i++) {
    const pl_json *d = pl_json_get(c.arms.rows[i].data, "difference");
    assert_true(fabs(pl_json_get_number(d, "mean", NAN) - expected.mean) < 1e-12);
    assert_true(fabs(pl_json_get_number(d, "high", NAN) - expected.high) < 1e-12);
  }
  pl_comparison_text(&c, &text);
  assert_non_null(strstr(text.text, "0 runs in both, 18 only in A, 18 only in B."));
  assert_non_null(strstr(text.text, "  optimizer.beta1  0.9                  0.5\n"));
  assert_non_null(strstr(text.text, "  optimizer.lr     0.001, 0.002, 0.004  0.002, 0.004\n"));
  assert_non_null(strstr(text.text, "  delay            0, 1                 0, 1, 2\n"));
  pl_str_free(&text);
  pl_comparison_free(&c);
  /* With itself: the same runs, the same results. */
  if (pl_compare(&left, &left, &options, &c, &e) != PL_OK) fail_msg("%s", e.text);
  assert_true(c.both == 18 && c.compared == 18 && c.different == 0 && c.keys.count == 0 && c.arms.count == 2);
  pl_comparison_free(&c);
  pl_side_free(&left);
  pl_side_free(&right);
  pl_analysis_free(&x);
  pl_analysis_free(&y);
  pl_joined_free(&a);
  pl_joined_free(&b);
  pl_json_release(document);
  pl_json_release(changed);
  remove_folder(one), remove_folder(two);
}

static void note_line(void *self, const char *line) { pl_str_printf(self, "%s\n", line); }

static void a_damaged_result_is_named_and_left_out(void **state) {
  (void)state;
  char dir[32], *path = NULL;
  make_folder(dir);
  pl_registries r = fake_registries();
  pl_json *document = parse(sweep_text);
  const char *const dirs[] = {dir};
  pl_err e = {0};
  pl_str said = {0};
  fill(dir, document, usual_loss);
  pl_joined j = open_all(dirs, 1);
  assert_int_equal(pl_run_path(dir, j.all.runs[0].id, "result.json", &path, &e), PL_OK);
  pl_joined_free(&j);
  assert_int_equal(pl_file_replace(path, "{\"state\": \"do", 13, &e), PL_OK);
  assert_int_equal(pl_joined_open(&r, dirs, 1, note_line, &said, &j, &e), PL_OK);
  assert_non_null(strstr(pl_str_text(&said), "result.json"));
  pl_analysis a = analyze(&j);
  bool told = false;
  for (size_t i = 0; i < a.warnings.count; i++)
    told = told || strstr(a.warnings.texts[i], "1 run folder could not be read and is left out") != NULL;
  assert_true(told);
  pl_analysis_free(&a);
  pl_joined_free(&j);
  pl_str_free(&said);
  pl_free(path);
  pl_json_release(document);
  remove_folder(dir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_of_several_directories_count_once),
      cmocka_unit_test(curves_are_compared_too),
      cmocka_unit_test(extended_sweeps_extend_the_directory),
      cmocka_unit_test(a_set_axis_is_not_extended),
      cmocka_unit_test(sweeps_that_differ_in_a_key_are_compared_by_seed),
      cmocka_unit_test(a_damaged_result_is_named_and_left_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
