/* The way of a run through import, catalog, export and import again. */
#include "results_help.h"

#include "results/catalog.h"
#include "results/curves.h"
#include "results/export.h"
#include "results/import.h"
#include "results/imported.h"

static pl_json *parse(const char *text) {
  pl_json *out = NULL;
  pl_err e = {0};
  if (pl_json_parse(text, strlen(text), "test", &out, &e) != PL_OK) fail_msg("%s", e.text);
  return out;
}

static uint64_t id_of(const char *settings) {
  pl_json *given = parse(settings), *document = pl_json_new_object();
  pl_imported *i = NULL;
  pl_err e = {0};
  if (pl_imported_merge(document, given, "run", &e) != PL_OK) fail_msg("%s", e.text);
  if (pl_imported_read(document, "run", &i, &e) != PL_OK) fail_msg("%s", e.text);
  uint64_t id = pl_run_config_id(pl_imported_config(i));
  pl_json *dump = pl_run_config_dump(pl_imported_config(i));
  pl_imported *again = NULL;
  if (pl_imported_read(dump, "run", &again, &e) != PL_OK) fail_msg("%s", e.text);
  assert_int_equal(pl_run_config_id(pl_imported_config(again)), id);
  pl_imported_free(again);
  pl_imported_free(i);
  pl_json_release(dump);
  pl_json_release(document);
  pl_json_release(given);
  return id;
}

static void what_is_stated_is_the_identity(void **state) {
  (void)state;
  const uint64_t plain = id_of("{\"optimizer\": \"soap\", \"optimizer.lr\": 0.001}");
  assert_int_equal(plain, id_of("{\"optimizer\": {\"lr\": 1e-3, \"type\": \"soap\"}}"));
  assert_int_equal(plain, id_of("{\"optimizer\": {\"lr\": 1e-3, \"type\": \"soap\"}, \"seed\": 0, \"delay\": [0]}"));
  static const char *const others[] = {
      "{\"optimizer\": \"soap\"}",
      "{\"optimizer\": \"adan\", \"optimizer.lr\": 0.001}",
      "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.002}",
      "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.001, \"optimizer.beta2\": 0.95}",
      "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.001, \"optimizer.inner.lr\": 0.95}",
      "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.001, \"seed\": 1}",
      "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.001, \"delay\": 1}",
      "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.001, \"delay\": [3, 2, 1, 0]}",
      "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.001, \"correction\": \"ef\"}",
      "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.001, \"correction\": [\"ef\", {\"type\": \"mine\", \"x\": 1}]}",
      "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.001, \"model.size\": \"360M\"}",
      "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.001, \"data.train\": [\"a\", \"b\"]}",
      "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.001, \"train.batch_tokens\": 1024}",
  };
  enum { COUNT = sizeof others / sizeof *others };
  uint64_t ids[COUNT];
  for (size_t i = 0; i < COUNT; i++) {
    ids[i] = id_of(others[i]);
    assert_true(ids[i] != plain);
    for (size_t k = 0; k < i; k++) assert_true(ids[i] != ids[k]);
  }
}

static void settings_that_make_no_sense_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *settings, *says;
  } cases[] = {
      {"{}", "run: no optimizer is stated"},
      {"{\"optimizer.lr\": 1}", "run: no optimizer is stated"},
      {"{\"optimizer\": 3}", "run.optimizer: must be a name or an object"},
      {"{\"optimizer\": \"soap\", \"optimizer.lr\": 0}", "run.optimizer.lr: must be a number > 0"},
      {"{\"optimizer\": \"soap\", \"optimizer.lr\": \"low\"}", "run.optimizer.lr: must be a number > 0"},
      {"{\"optimizer\": \"soap\", \"train.step\": 3}", "unknown key \"step\" (of train); did you mean \"steps\"?"},
      {"{\"optimizer\": \"soap\", \"sed\": 3}", "unknown key \"sed\""},
      {"{\"optimizer\": \"soap\", \"seed\": \"x\"}", "run.seed: must be"},
      {"{\"optimizer\": \"soap\", \"delay\": \"pipedream\"}", "pipedream needs pipeline.stages"},
      {"{\"optimizer\": \"soap\", \"delay\": [1, 0], \"pipeline.stages\": 3}", "run.delay: has 2 values"},
      {"{\"optimizer\": \"soap\", \"imported\": 1}", "pipelag's own"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pl_json *given = parse(cases[i].settings), *document = pl_json_new_object();
    pl_imported *out = NULL;
    pl_err e = {0};
    pl_status st = pl_imported_merge(document, given, "run", &e);
    if (st == PL_OK) st = pl_imported_read(document, "run", &out, &e);
    assert_int_equal(st, PL_BAD);
    assert_says(&e, cases[i].says);
    pl_imported_free(out);
    pl_json_release(document);
    pl_json_release(given);
  }
}

static const char curve_text[] = "step,val/loss,train/loss,seconds\n0,4.5,,0\n50,3.75,3.875,1.5\n100,3.25,3.125,3\n";

static pl_status import_one(void **state, const char *file, const char *settings, const char *dir,
                            pl_import_counts *counts, pl_err *e) {
  pl_status st = PL_OK;
  char path[256], out[256];
  pl_import *m = NULL;
  pl_json *config = parse(settings);
  const char *const paths[] = {in_temp(state, file, path)};
  const pl_import_spec spec = {.paths = paths, .path_count = 1, .config = config, .where = "run"};
  PL_TRY(pl_import_begin(&m, e));
  PL_TRY(pl_import_add(m, &spec, e));
  PL_TRY(pl_import_commit(m, in_temp(state, dir, out), NULL, counts, e));
out:
  pl_import_end(m);
  pl_json_release(config);
  return st;
}

static pl_catalog open_catalog(void **state, const char *name) {
  char path[256];
  pl_catalog c;
  pl_err e = {0};
  if (pl_catalog_open_any(&toys, in_temp(state, name, path), NULL, NULL, &c, &e) != PL_OK) fail_msg("%s", e.text);
  assert_int_equal(c.unreadable, 0);
  return c;
}

static const char soap[] =
    "{\"optimizer\": \"soap\", \"optimizer.lr\": 0.003, \"delay\": 1, \"train.batch_tokens\": 1024}";

static void an_imported_run_is_read_like_any_other(void **state) {
  char path[256];
  pl_err e = {0};
  pl_import_counts counts;
  write_bytes(in_temp(state, "a.csv", path), curve_text, strlen(curve_text));
  if (import_one(state, "a.csv", soap, "out", &counts, &e) != PL_OK) fail_msg("%s", e.text);
  assert_int_equal(counts.added, 1);
  pl_catalog c = open_catalog(state, "out");
  assert_int_equal(c.count, 1);
  assert_string_equal(c.name, "out");
  const pl_catalog_run *r = &c.runs[0];
  assert_true(r->current && r->has_result && r->imported && r->state == PL_RUN_DONE);
  assert_int_equal(r->id, id_of(soap));
  assert_true(pl_run_config_lr(r->config) == 0.003);
  assert_string_equal(r->config->optimizer.type->name, "soap");
  const pl_outcome *o = &r->result.outcome;
  assert_true(o->initial_val_loss == 4.5 && o->final_val_loss == 3.25 && o->best_val_loss == 3.25);
  assert_true(o->final_train_loss == 3.125 && o->seconds == 3);
  assert_int_equal(o->steps, 100);
  assert_int_equal(o->tokens, 102400);
  assert_int_equal(r->config->train.steps, 100); /* for plots */
  assert_int_equal(r->config->train.val_every, 50);
  pl_curve curve;
  assert_int_equal(pl_catalog_curve(r, &curve, &e), PL_OK);
  assert_int_equal(curve.count, 3);
  assert_int_equal(curve.attempts, 1);
  assert_true(curve.rows[1].point.values[PL_SERIES_train_loss] == 3.875 && curve.rows[1].point.tokens == 51200);
  pl_curve_free(&curve);
  pl_catalog_free(&c);
}

static size_t count_results(void **state, const char *dir) {
  char path[256];
  pl_catalog c;
  if (!pl_path_exists(in_temp(state, dir, path))) return 0;
  c = open_catalog(state, dir);
  size_t n = 0;
  for (size_t i = 0; i < c.count; i++) n += c.runs[i].has_result;
  pl_catalog_free(&c);
  return n;
}

static void importing_again_changes_nothing(void **state) {
  char path[256];
  pl_err e = {0};
  pl_import_counts counts;
  write_bytes(in_temp(state, "a.csv", path), curve_text, strlen(curve_text));
  write_bytes(in_temp(state, "moved.csv", path), curve_text, strlen(curve_text));
  assert_int_equal(import_one(state, "a.csv", soap, "out", &counts, &e), PL_OK);
  assert_int_equal(import_one(state, "a.csv", soap, "out", &counts, &e), PL_OK);
  assert_true(counts.added == 0 && counts.known == 1);
  assert_int_equal(import_one(state, "moved.csv", soap, "out", &counts, &e), PL_OK);
  assert_int_equal(counts.known, 1);
  write_bytes(in_temp(state, "a.csv", path), "step,val/loss\n0,4.5\n100,3.2\n", 28);
  assert_int_equal(import_one(state, "a.csv", soap, "out", &counts, &e), PL_BAD);
  assert_says(&e, "was imported from ");
  assert_says(&e, "/a.csv (");
  assert_says(&e, "; now it would be ");
  e = (pl_err){0};
  assert_int_equal(import_one(state, "a.csv", "{\"optimizer\": \"soap\", \"seed\": 1}", "out", &counts, &e), PL_OK);
  pl_catalog c = open_catalog(state, "out");
  assert_int_equal(c.count, 2);
  assert_true(c.runs[0].current && c.runs[1].current && c.runs[0].result.outcome.final_val_loss == 3.25);
  pl_catalog_free(&c);
}

static void nothing_is_half_imported(void **state) {
  char path[256];
  pl_err e = {0};
  pl_import *m = NULL;
  char *name = NULL;
  const pl_import_map map = {{NULL}};
  const char *text = "{\"runs\": [{\"config\": {\"optimizer\": \"a\"}, \"final\": {\"final_val_loss\": 3}},"
                     " {\"config\": {\"optimizer\": \"b\"}, \"file\": \"bad.csv\"}]}";
  write_bytes(in_temp(state, "bad.csv", path), "step,val/loss\n1,x\n", 18);
  write_bytes(in_temp(state, "m.json", path), text, strlen(text));
  assert_int_equal(pl_import_begin(&m, &e), PL_OK);
  assert_int_equal(pl_import_add_manifest(m, path, NULL, &map, &name, &e), PL_BAD);
  assert_says(&e, "bad.csv:2: \"x\" in column \"val/loss\" is no number");
  pl_import_end(m);
  assert_int_equal(count_results(state, "out"), 0);
  text = "{\"runs\": [{\"config\": {\"optimizer\": \"a\"}, \"final\": {\"final_val_loss\": 3}},"
         " {\"config\": {\"optimizer\": \"a\", \"seed\": 0}, \"final\": {\"final_val_loss\": 4}}]}";
  write_bytes(path, text, strlen(text));
  e = (pl_err){0};
  assert_int_equal(pl_import_begin(&m, &e), PL_OK);
  assert_int_equal(pl_import_add_manifest(m, path, NULL, &map, &name, &e), PL_BAD);
  assert_says(&e, "m.json: runs[1]: has the same configuration as ");
  assert_says(&e, "m.json: runs[0]");
  pl_import_end(m);
}

static void a_loss_that_ends_as_nan_has_diverged(void **state) {
  static const struct {
    const char *text;
    pl_run_state state;
  } cases[] = {{"step,val/loss\n0,4\n10,3\n20,nan\n", PL_RUN_DIVERGED},
               {"step,val/loss\n0,4\n10,inf\n20,3\n", PL_RUN_DONE},
               {"step,val/loss\n0,4\n10,3\n20,\n", PL_RUN_DONE},
               {"step,val/loss,train/loss\n0,4,\n10,3,3\n15,,NaN\n", PL_RUN_DIVERGED},
               {"step,val/loss\n0,4\n10,5\n", PL_RUN_DIVERGED}, /* above where it began */
               {"step,val/loss\n5,4\n10,5\n", PL_RUN_DONE}};    /* where it began is not known */
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char path[256], settings[64];
    pl_err e = {0};
    pl_import_counts counts;
    snprintf(settings, sizeof settings, "{\"optimizer\": \"soap\", \"seed\": %zu}", i);
    write_bytes(in_temp(state, "a.csv", path), cases[i].text, strlen(cases[i].text));
    if (import_one(state, "a.csv", settings, "out", &counts, &e) != PL_OK) fail_msg("%s", e.text);
    pl_catalog c = open_catalog(state, "out");
    assert_int_equal(c.runs[i].state, cases[i].state);
    pl_catalog_free(&c);
  }
}

static void assert_same_curves(const pl_catalog_run *a, const pl_catalog_run *b, double tolerance) {
  pl_curve x, y;
  assert_int_equal(pl_catalog_curve(a, &x, NULL), PL_OK);
  assert_int_equal(pl_catalog_curve(b, &y, NULL), PL_OK);
  assert_int_equal(x.count, y.count);
  for (size_t i = 0; i < x.count; i++) {
    assert_int_equal(x.rows[i].point.step, y.rows[i].point.step);
    assert_int_equal(x.rows[i].point.tokens, y.rows[i].point.tokens);
    for (size_t s = 0; s < PL_SERIES_COUNT; s++) {
      double p = x.rows[i].point.values[s], q = y.rows[i].point.values[s];
      if (!(isnan(p) && isnan(q)) && !(fabs(p - q) <= tolerance * fabs(p))) fail_msg("%.17g is not %.17g", p, q);
    }
  }
  pl_curve_free(&x);
  pl_curve_free(&y);
}

/* Through every form and back: the same runs with the same curves, in float32 where the form has no more. */
static void what_is_exported_can_be_imported(void **state) {
  static const struct {
    pl_curve_format format;
    double tolerance;
  } forms[] = {{PL_FORMAT_CSV, 0}, {PL_FORMAT_JSONL, 0}, {PL_FORMAT_TENSORBOARD, 0x1p-24}};
  char path[256], dir[256];
  pl_err e = {0};
  pl_import_counts counts;
  const char *text = "step,val/loss,lr\n0,4.1,\n7,3.3,0.0123456789\n9,,1e-300\n10,3.0000001,0.5\n";
  write_bytes(in_temp(state, "a.csv", path), curve_text, strlen(curve_text));
  assert_int_equal(import_one(state, "a.csv", soap, "out", &counts, &e), PL_OK);
  write_bytes(path, text, strlen(text));
  assert_int_equal(import_one(state, "a.csv",
                              "{\"optimizer\": {\"type\": \"adan\", \"b\": true, \"in\": {\"x\": \"y\"}},"
                              " \"correction\": [\"ef\", \"mine\"], \"delay\": [1, 0]}",
                              "out", &counts, &e),
                   PL_OK);
  pl_catalog c = open_catalog(state, "out");
  for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
    char name[32], again[32];
    pl_import *m = NULL;
    char *title = NULL;
    const pl_import_map map = {{NULL}};
    snprintf(name, sizeof name, "form%zu", f);
    snprintf(again, sizeof again, "again%zu", f);
    if (pl_export(&c, forms[f].format, in_temp(state, name, path), NULL, NULL, &e) != PL_OK) fail_msg("%s", e.text);
    strcat(path, "/import.json");
    assert_int_equal(pl_import_begin(&m, &e), PL_OK);
    if (pl_import_add_manifest(m, path, NULL, &map, &title, &e) != PL_OK) fail_msg("%s", e.text);
    assert_string_equal(title, "out");
    if (pl_import_commit(m, in_temp(state, again, dir), title, &counts, &e) != PL_OK) fail_msg("%s", e.text);
    pl_import_end(m);
    pl_free(title);
    pl_catalog d = open_catalog(state, again);
    assert_int_equal(d.count, 2);
    for (size_t i = 0; i < 2; i++) {
      assert_int_equal(c.runs[i].id, d.runs[i].id);
      assert_true(c.runs[i].result.outcome.final_val_loss == d.runs[i].result.outcome.final_val_loss);
      /* 1e-300 is no float32 */
      if (forms[f].tolerance == 0 || i == 0) assert_same_curves(&c.runs[i], &d.runs[i], forms[f].tolerance);
    }
    pl_catalog_free(&d);
  }
  pl_catalog_free(&c);
}

/* Two stages at three steps. */
static void add_times(void **state, const char *dir, uint64_t id) {
  char path[256], *file;
  pl_journal *j;
  assert_int_equal(pl_run_path(in_temp(state, dir, path), id, "times", &file, NULL), PL_OK);
  assert_int_equal(pl_times_open(file, 2, 1, &j, NULL), PL_OK);
  for (int64_t step = 1; step <= 3; step++) {
    const double s = (double)step;
    const pl_stage_times times[] = {{s, s / 4, s / 8}, {2 * s, s / 16, s / 32}};
    assert_int_equal(pl_times_write(j, step, times, NULL), PL_OK);
  }
  pl_journal_close(j);
  pl_free(file);
}

static void assert_same_times(const pl_catalog_run *a, const pl_catalog_run *b, size_t count) {
  pl_times x, y;
  assert_int_equal(pl_catalog_times(a, &x, NULL), PL_OK);
  assert_int_equal(pl_catalog_times(b, &y, NULL), PL_OK);
  assert_true(x.count == count && y.count == count && x.stages == y.stages && x.attempts == y.attempts);
  for (size_t i = 0; i < count; i++) assert_true(x.steps[i] == y.steps[i] && x.attempts_of[i] == y.attempts_of[i]);
  if (count > 0) assert_memory_equal(x.times, y.times, count * x.stages * sizeof *x.times);
  pl_times_free(&x);
  pl_times_free(&y);
}

static void a_collected_file_is_a_catalog(void **state) {
  char path[256];
  pl_err e = {0};
  pl_import_counts counts;
  write_bytes(in_temp(state, "a.csv", path), curve_text, strlen(curve_text));
  assert_int_equal(import_one(state, "a.csv", soap, "out", &counts, &e), PL_OK);
  write_bytes(path, "step,val/loss\n0,4\n10,nan\n", 25);
  assert_int_equal(import_one(state, "a.csv", "{\"optimizer\": \"adan\"}", "out", &counts, &e), PL_OK);
  add_times(state, "out", id_of(soap));
  pl_catalog c = open_catalog(state, "out");
  if (pl_curves_collect(&c, in_temp(state, "all.h5", path), NULL, NULL, &e) != PL_OK) fail_msg("%s", e.text);
  pl_catalog d = open_catalog(state, "all.h5");
  assert_string_equal(d.name, "out");
  assert_int_equal(d.count, c.count);
  for (size_t i = 0; i < c.count; i++) {
    const pl_catalog_run *a = &c.runs[i], *b = &d.runs[i];
    pl_json *x = NULL, *y = NULL;
    assert_true(a->id == b->id && a->index == b->index && a->current == b->current && a->state == b->state);
    assert_true(a->has_result == b->has_result && b->imported);
    assert_string_equal(a->label, b->label);
    assert_memory_equal(&a->result.outcome.steps, &b->result.outcome.steps, sizeof(int64_t));
    assert_string_equal(a->result.outcome.reason, b->result.outcome.reason);
    assert_string_equal(a->result.ended, b->result.ended);
    assert_int_equal(pl_run_config_id(a->config), pl_run_config_id(b->config));
    assert_int_equal(pl_catalog_meta(a, &x, &e), PL_OK);
    assert_int_equal(pl_catalog_meta(b, &y, &e), PL_OK);
    assert_true(x && pl_json_equal(x, y));
    pl_json_release(x);
    pl_json_release(y);
    assert_same_curves(a, b, 0);
    assert_same_times(a, b, i == 0 ? 3 : 0);
  }
  pl_catalog_free(&d);
  pl_catalog_free(&c);
}

static void other_files_are_no_catalogs(void **state) {
  char path[256], *bytes;
  pl_err e = {0};
  pl_import_counts counts;
  pl_catalog c;
  write_bytes(in_temp(state, "a.csv", path), curve_text, strlen(curve_text));
  assert_int_equal(pl_catalog_open_any(&toys, path, NULL, NULL, &c, &e), PL_BAD);
  assert_says(&e, "a.csv: is no HDF5 file");
  assert_int_equal(import_one(state, "a.csv", soap, "out", &counts, &e), PL_OK);
  e = (pl_err){0};
  char *curves;
  assert_int_equal(pl_run_path(in_temp(state, "out", path), id_of(soap), "curves.h5", &curves, NULL), PL_OK);
  assert_int_equal(pl_catalog_open_any(&toys, curves, NULL, NULL, &c, &e), PL_BAD);
  assert_says(&e, "was not made by `pipelag collect`");
  pl_free(curves);
  c = open_catalog(state, "out");
  assert_int_equal(pl_curves_collect(&c, in_temp(state, "all.h5", path), NULL, NULL, NULL), PL_OK);
  pl_catalog_free(&c);
  size_t length = read_bytes(path, &bytes);
  for (size_t cut = 1; cut < length; cut += length / 16) { /* never a crash, and mostly an error */
    write_bytes(path, bytes, length - cut);
    e = (pl_err){0};
    if (pl_catalog_open_any(&toys, path, NULL, NULL, &c, &e) == PL_OK)
      pl_catalog_free(&c);
    else
      assert_true(e.text[0] != '\0');
  }
  pl_free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_stated_is_the_identity),
      cmocka_unit_test(settings_that_make_no_sense_are_refused),
      cmocka_unit_test_setup_teardown(an_imported_run_is_read_like_any_other, make_temp, remove_temp),
      cmocka_unit_test_setup_teardown(importing_again_changes_nothing, make_temp, remove_temp),
      cmocka_unit_test_setup_teardown(nothing_is_half_imported, make_temp, remove_temp),
      cmocka_unit_test_setup_teardown(a_loss_that_ends_as_nan_has_diverged, make_temp, remove_temp),
      cmocka_unit_test_setup_teardown(what_is_exported_can_be_imported, make_temp, remove_temp),
      cmocka_unit_test_setup_teardown(a_collected_file_is_a_catalog, make_temp, remove_temp),
      cmocka_unit_test_setup_teardown(other_files_are_no_catalogs, make_temp, remove_temp),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
