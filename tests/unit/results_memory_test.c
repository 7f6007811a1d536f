/* The life of a result directory with the n-th allocation failing, for n = 0, 1, 2, ...: a sentence instead of a crash,
 * and the same steps afterwards succeed on what is there. */
#include "failing_memory.h"
#include "results_help.h"

#include "results/catalog.h"
#include "results/curves.h"
#include "results/journal.h"
#include "results/provenance.h"

static pl_status freeze(const char *dir, const pl_json *document, uint64_t id, pl_err *e) {
  pl_status st = PL_OK;
  pl_freeze *f = NULL;
  uint64_t index;
  PL_TRY(pl_freeze_begin(dir, "s", document, "/", &f, e));
  PL_TRY(pl_freeze_add(f, id, "delay=0", &index, e));
  PL_TRY(pl_freeze_commit(f, e));
out:
  pl_freeze_end(f);
  return st;
}

static pl_status log_two_points(const char *path, pl_err *e) {
  pl_status st = PL_OK;
  pl_journal *j = NULL;
  uint64_t length;
  PL_TRY(pl_journal_open(path, &j, e));
  for (int64_t step = 0; step < 2; step++) {
    pl_point p = point_at(step, 1);
    PL_TRY(pl_journal_write(j, &p, e));
  }
  PL_TRY(pl_journal_sync(j, &length, e));
out:
  pl_journal_close(j);
  return st;
}

static pl_status write_curves(const char *dir, uint64_t id, const char *journal, const pl_json *document, pl_err *e) {
  pl_status st = PL_OK;
  pl_curve curve = {0};
  char *path = NULL;
  PL_TRY(pl_run_path(dir, id, "curves.h5", &path, e));
  PL_TRY(pl_curve_read(journal, &curve, e));
  PL_TRY(pl_curves_write(path, &curve, document, id, e));
out:
  pl_curve_free(&curve);
  pl_free(path);
  return st;
}

static pl_status look_back(const pl_registries *r, const char *dir, pl_err *e) {
  pl_status st = PL_OK;
  pl_catalog c = {0};
  pl_str path = {0};
  pl_str_printf(&path, "%s/sweep.h5", dir);
  PL_TRY(pl_str_check(&path, e));
  PL_TRY(pl_catalog_open(r, dir, true, NULL, NULL, &c, e));
  PL_TRY(pl_curves_collect(&c, path.text, NULL, NULL, e));
out:
  pl_catalog_free(&c);
  pl_str_free(&path);
  return st;
}

typedef struct life {
  pl_registries registries;
  const char *dir;
  pl_json *document;
  pl_run_config config;
  uint64_t id;
} life;

static pl_status live(const life *l, pl_err *e) {
  pl_status st = PL_OK;
  char *folder = NULL, *journal = NULL, *difference = NULL;
  bool taken = false;
  const pl_attempt attempt = {.attempt = 1, .device_kernel = "k", .threads = 1};
  const pl_outcome outcome = {.steps = 1, .final_val_loss = 1.5, .first_bad_step = -1, .resumed_from = -1};
  PL_TRY(freeze(l->dir, l->document, l->id, e));
  PL_TRY(pl_run_create(l->dir, l->id, &l->config, e));
  PL_TRY(pl_run_path(l->dir, l->id, "", &folder, e));
  PL_TRY(pl_run_path(l->dir, l->id, "journal", &journal, e));
  PL_TRY(pl_run_claim(l->dir, l->id, &taken, e));
  PL_TRY(log_two_points(journal, e));
  PL_TRY(pl_provenance_add(folder, &attempt, &difference, e));
  PL_TRY(write_curves(l->dir, l->id, journal, l->document, e));
  PL_TRY(pl_run_write_result(l->dir, l->id, PL_RUN_DONE, &outcome, NULL, e));
  PL_TRY(look_back(&l->registries, l->dir, e));
out:
  if (taken) pl_run_release(l->dir, l->id);
  pl_free(difference);
  pl_free(journal);
  pl_free(folder);
  return st;
}

static void every_allocation_may_fail(void **state) {
  life l = {.registries = toys};
  pl_err e = {0};
  l.document = toy_run("muon", 0.01, 0, &l.config);
  l.id = pl_run_config_id(&l.config);
  long n = 0;
  for (;; n += n < 60 ? 1 : 3) {
    char name[32], dir[256];
    snprintf(name, sizeof name, "d%ld", n);
    l.dir = in_temp(state, name, dir);
    e = (pl_err){0};
    left = n;
    failed = false;
    pl_status st = live(&l, &e);
    left = -1;
    if (!failed) break;
    if (st != PL_OK) assert_true(st == PL_FAIL && e.text[0] != '\0');
    e = (pl_err){0};
    if (live(&l, &e) != PL_OK) fail_msg("after the failure of allocation %ld: %s", n, e.text);
    pl_result result;
    assert_int_equal(pl_run_read_result(l.dir, l.id, &result, &e), PL_OK);
    assert_true(result.outcome.final_val_loss == 1.5);
  }
  assert_true(n > 100);
  pl_json_release(l.document);
}

static pl_status record_times(const char *path, pl_times *out, pl_err *e) {
  pl_status st = PL_OK;
  pl_journal *j = NULL;
  const pl_stage_times times[] = {{1, 2, 3}, {4, 5, 6}};
  *out = (pl_times){0};
  PL_TRY(pl_times_open(path, 2, 1, &j, e));
  for (int64_t step = 1; step < 3; step++) PL_TRY(pl_times_write(j, step, times, e));
  PL_TRY(pl_times_read(path, out, e));
out:
  pl_journal_close(j);
  return st;
}

static void times_may_lack_memory(void **state) {
  char path[256];
  in_temp(state, "times", path);
  for (long n = 0;; n++) {
    pl_times t;
    pl_err e = {0};
    left = n;
    failed = false;
    pl_status st = record_times(path, &t, &e);
    left = -1;
    if (st == PL_OK) assert_true(!failed && t.count == 2 && t.damaged == 0);
    pl_times_free(&t);
    if (!failed) break;
    assert_true(st == PL_FAIL && e.text[0] != '\0');
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(every_allocation_may_fail, make_temp, remove_temp),
                                     cmocka_unit_test_setup_teardown(times_may_lack_memory, make_temp, remove_temp)};
  let_json_fail();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
