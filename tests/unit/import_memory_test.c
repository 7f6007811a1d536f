/* Import, export and collected files with the n-th allocation failing: a sentence instead of a crash, and the same
 * steps afterwards succeed on what is there. jansson stops the program where its own memory runs out within a long
 * word, so that pl_alloc alone fails. */
#include "failing_memory.h"
#include "results_help.h"

#include "results/curves.h"
#include "results/export.h"
#include "results/import.h"

static const char csv[] = "step,val/loss,\"a \"\"b\"\"\"\n0,4,x\n10,3,y\n";
static const char jsonl[] = "{\"step\": 10, \"x\": {\"y\": 3.5}, \"lr\": NaN}\n";
static const char manifest[] =
    "{\"name\": \"m\", \"base\": {\"model\": {\"size\": \"1B\"}}, \"runs\": ["
    "{\"file\": [\"a.csv\", \"b.jsonl\"], \"map\": {\"train/loss\": \"x.y\"}, \"config\": {\"optimizer\": \"soap\","
    " \"optimizer.a.b\": 0.5, \"correction\": [\"ef\", {\"type\": \"mine\", \"list\": 1}], \"data.train\": [\"t\"]}},"
    "{\"config\": {\"optimizer\": \"adan\"}, \"final\": {\"final_val_loss\": 2.5, \"reason\": \"\"}}]}";

static pl_status take_in(const char *from, const char *to, pl_err *e) {
  pl_status st = PL_OK;
  pl_import *m = NULL;
  pl_import_counts counts;
  const pl_import_map map = {{NULL}};
  char *name = NULL;
  PL_TRY(pl_import_begin(&m, e));
  PL_TRY(pl_import_add_manifest(m, from, NULL, &map, &name, e));
  PL_TRY(pl_import_commit(m, to, name, &counts, e));
out:
  pl_import_end(m);
  pl_free(name);
  return st;
}

static pl_status read_all(const pl_catalog *c, pl_err *e) {
  pl_status st = PL_OK;
  for (size_t i = 0; i < c->count && st == PL_OK; i++) {
    pl_curve curve = {0};
    pl_json *meta = NULL;
    st = pl_catalog_curve(&c->runs[i], &curve, e);
    if (st == PL_OK) st = pl_catalog_meta(&c->runs[i], &meta, e);
    pl_json_release(meta);
    pl_curve_free(&curve);
  }
  return st;
}

static pl_status give_out(const char *dir, pl_err *e) {
  pl_status st = PL_OK;
  pl_catalog c = {0}, d = {0};
  char file[256], folder[256];
  snprintf(file, sizeof file, "%s.h5", dir);
  snprintf(folder, sizeof folder, "%s.out", dir);
  PL_TRY(pl_catalog_open_any(&toys, dir, NULL, NULL, &c, e));
  for (pl_curve_format f = PL_FORMAT_CSV; f <= PL_FORMAT_TENSORBOARD; f++)
    PL_TRY(pl_export(&c, f, folder, NULL, NULL, e));
  PL_TRY(pl_curves_collect(&c, file, NULL, NULL, e));
  PL_TRY(pl_catalog_open_any(&toys, file, NULL, NULL, &d, e));
  PL_TRY(read_all(&d, e));
out:
  pl_catalog_free(&c);
  pl_catalog_free(&d);
  return st;
}

static void every_allocation_may_fail(void **state) {
  char path[256], from[256], dir[256];
  write_bytes(in_temp(state, "a.csv", path), csv, strlen(csv));
  write_bytes(in_temp(state, "b.jsonl", path), jsonl, strlen(jsonl));
  write_bytes(in_temp(state, "m.json", from), manifest, strlen(manifest));
  bool more = true;
  long n = 0;
  for (; more; n += n < 60 ? 2 : 23) {
    pl_err e = {0};
    char name[32];
    snprintf(name, sizeof name, "out%ld", n);
    in_temp(state, name, dir);
    failed = false;
    left = n;
    pl_status st = take_in(from, dir, &e);
    if (st == PL_OK) st = give_out(dir, &e);
    left = -1;
    more = failed;
    if (st != PL_OK) {
      assert_true(failed);
      assert_true(e.text[0] != '\0');
    }
    e = (pl_err){0};
    if (take_in(from, dir, &e) != PL_OK) fail_msg("after allocation %ld: %s", n, e.text);
    if (give_out(dir, &e) != PL_OK) fail_msg("after allocation %ld: %s", n, e.text);
    pl_catalog c;
    assert_int_equal(pl_catalog_open_any(&toys, dir, NULL, NULL, &c, &e), PL_OK);
    assert_int_equal(c.count, 2);
    assert_true(c.unreadable == 0 && c.runs[0].has_result && c.runs[1].has_result);
    pl_catalog_free(&c);
  }
  assert_true(n > 200);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(every_allocation_may_fail, make_temp, remove_temp),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
