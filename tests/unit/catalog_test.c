/* A sweep directory: freezing, extending, two at once, and reading it all back. */
#include "results_help.h"

#include "core/base/clock.h"
#include "results/catalog.h"
#include "results/journal.h"

static pl_json *parse(const char *text) {
  pl_json *document;
  assert_int_equal(pl_json_parse(text, strlen(text), "test", &document, NULL), PL_OK);
  return document;
}

/* Ids that are no neighbours in the table of ids, and some that are. */
static uint64_t id_of(int number) { return number % 3 == 0 ? (uint64_t)number : pl_hash(&number, sizeof number); }

typedef struct freezing {
  const char *dir, *name, *document, *folder;
  int first, last; /* runs first..last */
} freezing;

/* 0 when all went well. */
static pl_status freeze(const freezing *z, pl_err *e) {
  pl_status st = PL_OK;
  pl_freeze *f = NULL;
  pl_json *document = parse(z->document);
  PL_TRY(pl_freeze_begin(z->dir, z->name, document, z->folder ? z->folder : "/tmp", &f, e));
  for (int i = z->first; i <= z->last; i++) {
    char label[64];
    uint64_t index;
    snprintf(label, sizeof label, "optimizer=muon\tdelay=%d\nnote=a\\b", i);
    PL_TRY(pl_freeze_add(f, id_of(i), label, &index, e));
  }
  PL_TRY(pl_freeze_commit(f, e));
out:
  pl_freeze_end(f);
  pl_json_release(document);
  return st;
}

static void freeze_well(const freezing *z) {
  pl_err e = {0};
  if (freeze(z, &e) != PL_OK) fail_msg("%s", e.text);
}

static pl_catalog open_catalog(const char *dir, bool configs) {
  pl_catalog c;
  pl_err e = {0};
  if (pl_catalog_open(&toys, dir, configs, NULL, NULL, &c, &e) != PL_OK) fail_msg("%s", e.text);
  return c;
}

static void what_was_frozen_is_listed(void **state) {
  char dir[256], path[256], label[64];
  in_temp(state, "a/b c", dir);
  freeze_well(&(freezing){dir, "délai τ", "{\"grid\": {\"delay\": [0, 1]}}", NULL, 0, 9});
  pl_catalog c = open_catalog(dir, true);
  assert_string_equal(c.name, "délai τ"); /* though the document does not say it */
  assert_int_equal(c.count, 10);
  assert_int_equal(c.unreadable, 0);
  for (int i = 0; i < 10; i++) {
    const pl_catalog_run *r = &c.runs[i];
    snprintf(label, sizeof label, "optimizer=muon\tdelay=%d\nnote=a\\b", i);
    assert_int_equal(r->index, i);
    assert_int_equal(r->id, id_of(i));
    assert_string_equal(r->label, label);
    assert_true(r->current);
    assert_int_equal(r->state, PL_RUN_PENDING);
    assert_false(r->has_result);
    assert_null(r->document);
  }
  pl_catalog_free(&c);
  assert_false(pl_path_exists(in_temp(state, "a/b c/lock", path)));
  pl_json *location;
  assert_int_equal(pl_json_read(in_temp(state, "a/b c/location.json", path), &location, NULL), PL_OK);
  assert_string_equal(pl_json_get_string(location, "folder", ""), "/tmp");
  pl_json_release(location);
}

/* What was there keeps its index, also when the order of the sweep changes. */
static void indexes_stay_when_the_sweep_changes(void **state) {
  char path[256], *before, *after;
  const char *dir = *state;
  freeze_well(&(freezing){dir, "s", "{\"seeds\": [0]}", NULL, 100, 199});
  size_t length = read_bytes(in_temp(state, "runs.tsv", path), &before);
  freeze_well(&(freezing){dir, "s", "{\"seeds\": [0, 1]}", NULL, 50, 149});
  size_t longer = read_bytes(path, &after);
  assert_true(longer > length);
  assert_memory_equal(before, after, length); /* append-only */
  pl_free(before);
  pl_free(after);
  pl_catalog c = open_catalog(dir, false);
  assert_int_equal(c.count, 150);
  for (int i = 0; i < 150; i++) {
    int number = i < 100 ? 100 + i : i - 50;
    assert_int_equal(c.runs[i].id, id_of(number));
    assert_int_equal(c.runs[i].current, number <= 149);
  }
  pl_catalog_free(&c);
}

static void each_changed_sweep_has_a_frozen_copy(void **state) {
  static const char *const documents[] = {"{\"seeds\": [0]}", "{\"seeds\": [0]}", "{\"seeds\": [1]}",
                                          "{\"seeds\": [1.0], \"name\": \"s\"}", "{\"seeds\": [0]}"};
  static const int files[] = {1, 1, 2, 2, 3};
  char path[256], name[32];
  for (int i = 0; i < 5; i++) {
    freeze_well(&(freezing){*state, "s", documents[i], NULL, 0, 1});
    for (int n = 0; n < 4; n++) {
      snprintf(name, sizeof name, n ? "sweep.%d.json" : "sweep.json", n);
      assert_int_equal(pl_path_exists(in_temp(state, name, path)), n < files[i]);
    }
  }
  pl_json *last;
  assert_int_equal(pl_json_read(in_temp(state, "sweep.2.json", path), &last, NULL), PL_OK);
  assert_int_equal(pl_json_int(pl_json_at(pl_json_get(last, "seeds"), 0)), 0);
  assert_string_equal(pl_json_get_string(last, "name", ""), "s");
  pl_json_release(last);
}

static void another_sweep_is_refused(void **state) {
  char path[256], *before, *after;
  pl_err e = {0};
  freeze_well(&(freezing){*state, "one", "{}", NULL, 0, 3});
  size_t length = read_bytes(in_temp(state, "runs.tsv", path), &before);
  assert_int_equal(freeze(&(freezing){*state, "two", "{}", NULL, 4, 9}, &e), PL_BAD);
  assert_says(&e, *state);
  assert_says(&e, "belongs to the sweep \"one\", not to \"two\"");
  assert_int_equal(read_bytes(path, &after), length);
  assert_memory_equal(before, after, length);
  assert_false(pl_path_exists(in_temp(state, "lock", path)));
  pl_free(before);
  pl_free(after);
}

static void without_commit_nothing_changes(void **state) {
  char dir[256], path[256];
  uint64_t index;
  pl_freeze *f;
  pl_json *document = parse("{}");
  in_temp(state, "new", dir);
  assert_int_equal(pl_freeze_begin(dir, "s", document, "/tmp", &f, NULL), PL_OK);
  assert_true(pl_path_exists(in_temp(state, "new/lock", path)));
  assert_int_equal(pl_freeze_add(f, 5, "five", &index, NULL), PL_OK);
  pl_freeze_end(f);
  assert_false(pl_path_exists(dir));
  freeze_well(&(freezing){dir, "s", "{}", NULL, 0, 0});
  assert_int_equal(pl_freeze_begin(dir, "s", document, "/tmp", &f, NULL), PL_OK);
  assert_int_equal(pl_freeze_add(f, 5, "five", &index, NULL), PL_OK);
  assert_int_equal(index, 1);
  assert_int_equal(pl_freeze_add(f, id_of(0), "known", &index, NULL), PL_OK);
  assert_int_equal(index, 0);
  assert_int_equal(pl_freeze_add(f, 5, "five", &index, NULL), PL_OK);
  assert_int_equal(index, 1);
  pl_freeze_end(f);
  pl_catalog c = open_catalog(dir, false);
  assert_int_equal(c.count, 1);
  pl_catalog_free(&c);
  pl_json_release(document);
}

enum { FREEZERS = 8, EACH = 30 };

/* Every process freezes runs that it shares with its neighbours. */
static int freeze_some(void *self, int number) {
  pl_err e = {0};
  return freeze(&(freezing){self, "s", "{}", NULL, 10 * number, 10 * number + EACH - 1}, &e) != PL_OK;
}

static void many_that_freeze_at_once_lose_nothing(void **state) {
  enum { RUNS = 10 * (FREEZERS - 1) + EACH };
  int seen[RUNS] = {0};
  assert_int_equal(fork_all(FREEZERS, freeze_some, *state), 0);
  pl_catalog c = open_catalog(*state, false);
  assert_int_equal(c.count, RUNS);
  for (size_t i = 0; i < c.count; i++)
    for (int number = 0; number < RUNS; number++) seen[number] += c.runs[i].id == id_of(number);
  for (int number = 0; number < RUNS; number++) assert_int_equal(seen[number], 1);
  pl_catalog_free(&c);
}

static int die_in_freeze(void *self, int number) {
  pl_freeze *f;
  pl_json *document = parse("{}");
  (void)number;
  return pl_freeze_begin(self, "s", document, "/tmp", &f, NULL) != PL_OK;
}

static void the_lock_of_a_dead_process_does_not_stop_others(void **state) {
  char path[256];
  assert_int_equal(fork_all(1, die_in_freeze, *state), 0);
  assert_true(pl_path_exists(in_temp(state, "lock", path)));
  double begin = pl_clock_seconds();
  freeze_well(&(freezing){*state, "s", "{}", NULL, 0, 3});
  assert_true(pl_clock_seconds() - begin < 10);
}

static void other_folders_and_damaged_lists_are_named(void **state) {
  char path[256];
  pl_catalog c;
  pl_err e = {0};
  assert_int_equal(pl_catalog_open(&toys, *state, false, NULL, NULL, &c, &e), PL_BAD);
  assert_says(&e, *state);
  assert_says(&e, "is no result directory of pipelag");
  freeze_well(&(freezing){*state, "s", "{}", NULL, 0, 3});
  static const char *const lists[] = {"index\tid\tlabel\n0\t0000000000000007\ta\n2\t0000000000000008\tb\n",
                                      "index\tid\tlabel\n0\t0000000000000007\ta\n1\t00000000000008\tb\n",
                                      "index\tid\tlabel\n0\t0000000000000007\ta\n1\t0000000000000008\tb"};
  for (int i = 0; i < 3; i++) {
    write_bytes(in_temp(state, "runs.tsv", path), lists[i], strlen(lists[i]));
    e = (pl_err){0};
    assert_int_equal(pl_catalog_open(&toys, *state, false, NULL, NULL, &c, &e), PL_FAIL);
    assert_says(&e, "runs.tsv:3: is damaged");
    e = (pl_err){0};
    assert_int_equal(freeze(&(freezing){*state, "s", "{}", NULL, 5, 6}, &e), PL_FAIL);
    assert_says(&e, "runs.tsv:3: is damaged");
  }
}

static void count_line(void *self, const char *line) {
  int *lines = self;
  (*lines)++;
  assert_non_null(strstr(line, "run "));
  assert_true(strlen(line) > 24); /* says more than the id */
}

static void write_in_run(const char *dir, uint64_t id, const char *file, const char *text) {
  char *path;
  assert_int_equal(pl_run_path(dir, id, file, &path, NULL), PL_OK);
  write_bytes(path, text, strlen(text));
  pl_free(path);
}

/* Runs 0 and 1 are done, 2's result and 3's config are damaged, 4 is pending. */
static void bad_runs_are_named_and_the_others_are_there(void **state) {
  uint64_t ids[5], index;
  pl_freeze *f;
  pl_err e = {0};
  pl_json *document = parse("{}");
  assert_int_equal(pl_freeze_begin(*state, "s", document, "/tmp", &f, &e), PL_OK);
  pl_json_release(document);
  for (int i = 0; i < 5; i++) {
    pl_run_config config;
    pl_outcome o = {.end = PL_END_DONE, .final_val_loss = 1.5 + i, .steps = 100 + i};
    pl_json *run = toy_run(i % 2 ? "adamw" : "muon", 0.01 * (i + 1), i, &config);
    ids[i] = pl_run_config_id(&config);
    assert_int_equal(pl_freeze_add(f, ids[i], "run", &index, &e), PL_OK);
    if (i < 4) assert_int_equal(pl_run_create(*state, ids[i], &config, &e), PL_OK);
    if (i < 4) assert_int_equal(pl_run_write_result(*state, ids[i], PL_RUN_DONE, &o, NULL, &e), PL_OK);
    pl_json_release(run);
  }
  assert_int_equal(pl_freeze_commit(f, &e), PL_OK);
  pl_freeze_end(f);
  write_in_run(*state, ids[2], "result.json", "{\"state\": ");
  write_in_run(*state, ids[3], "config.json", "{\"optimizer\": \"mourn\"}");
  int lines = 0;
  pl_catalog c;
  assert_int_equal(pl_catalog_open(&toys, *state, true, count_line, &lines, &c, &e), PL_OK);
  assert_int_equal(lines, 2);
  assert_int_equal(c.unreadable, 2);
  static const pl_run_state states[] = {PL_RUN_DONE, PL_RUN_DONE, PL_RUN_LOST, PL_RUN_DONE, PL_RUN_PENDING};
  for (int i = 0; i < 5; i++) {
    assert_int_equal(c.runs[i].state, states[i]);
    assert_int_equal(c.runs[i].has_result, i < 2);
    if (i >= 2) continue;
    assert_int_equal(c.runs[i].result.outcome.steps, 100 + i);
    assert_true(c.runs[i].result.outcome.final_val_loss == 1.5 + i);
    assert_non_null(c.runs[i].document);
    assert_int_equal(pl_run_config_id(c.runs[i].config), ids[i]);
  }
  pl_catalog_free(&c);
  c = open_catalog(*state, false); /* without configs the third is fine */
  assert_int_equal(c.unreadable, 1);
  assert_null(c.runs[0].document);
  assert_true(c.runs[3].has_result);
  pl_catalog_free(&c);
}

/* 1000 runs; about 20 microseconds each are expected, the limit leaves room for a busy machine. */
/* What an earlier attempt left is not the outcome of the one that is under way. */
static void a_failed_run_that_runs_again_is_running(void **state) {
  const char *dir = *state;
  pl_err e = {0};
  bool taken;
  freeze_well(&(freezing){dir, "s", "{}", NULL, 0, 1});
  char *folder;
  assert_int_equal(pl_run_path(dir, id_of(0), "", &folder, &e), PL_OK);
  assert_int_equal(pl_make_folders(folder, &e), PL_OK);
  pl_free(folder);
  assert_int_equal(pl_run_write_result(dir, id_of(0), PL_RUN_FAILED, NULL, "no room", &e), PL_OK);
  pl_catalog c = open_catalog(dir, false);
  assert_true(c.runs[0].state == PL_RUN_FAILED && c.runs[0].has_result);
  pl_catalog_free(&c);
  assert_int_equal(pl_run_claim(dir, id_of(0), &taken, &e), PL_OK);
  c = open_catalog(dir, false);
  assert_true(c.runs[0].state == PL_RUN_RUNNING && !c.runs[0].has_result);
  assert_int_equal(c.unreadable, 0);
  pl_catalog_free(&c);
  pl_run_release(dir, id_of(0));
}

static void a_thousand_runs_are_opened_quickly(void **state) {
  char text[256];
  freeze_well(&(freezing){*state, "s", "{}", NULL, 0, 999});
  for (int i = 0; i < 1000; i++) {
    char *folder;
    assert_int_equal(pl_run_path(*state, id_of(i), "", &folder, NULL), PL_OK);
    assert_int_equal(pl_make_folders(folder, NULL), PL_OK);
    pl_free(folder);
    snprintf(text, sizeof text, "{\"state\": \"done\", \"steps\": %d, \"final_val_loss\": 1.%03d}", i, i);
    write_in_run(*state, id_of(i), "result.json", text);
  }
  double begin = pl_clock_seconds();
  pl_catalog c = open_catalog(*state, false);
  double seconds = pl_clock_seconds() - begin;
  for (int i = 0; i < 1000; i++) assert_int_equal(c.runs[i].result.outcome.steps, i);
  pl_catalog_free(&c);
  assert_true(seconds < 2);
}

static int freeze_without_room(void *self, int number) {
  const struct rlimit none = {1000, RLIM_INFINITY};
  pl_err e = {0};
  (void)number;
  signal(SIGXFSZ, SIG_IGN);
  if (setrlimit(RLIMIT_FSIZE, &none) != 0) return 1;
  if (freeze(&(freezing){self, "s", "{\"seeds\": [9]}", NULL, 0, 99}, &e) != PL_FAIL) return 2;
  return strstr(e.text, "runs.tsv") ? 0 : 3;
}

static void what_cannot_be_written_is_a_sentence(void **state) {
  char path[256];
  pl_err e = {0};
  write_bytes(in_temp(state, "file", path), "x", 1);
  assert_int_equal(freeze(&(freezing){in_temp(state, "file/dir", path), "s", "{}", NULL, 0, 3}, &e), PL_FAIL);
  assert_says(&e, "cannot make this folder");
  e = (pl_err){0};
  assert_int_equal(freeze(&(freezing){*state, "s", "{}", "/nowhere/at/all", 0, 3}, &e), PL_FAIL);
  assert_says(&e, "/nowhere/at/all");
  e = (pl_err){0};
  assert_int_equal(freeze(&(freezing){*state, "s", "{}", NULL, 0, 3}, &e), PL_BAD);
  assert_says(&e, "was not made by pipelag");
  assert_int_equal(unlink(in_temp(state, "file", path)), 0);
  freeze_well(&(freezing){*state, "s", "{}", NULL, 0, 3});
  assert_int_equal(fork_all(1, freeze_without_room, *state), 0);
  pl_catalog c = open_catalog(*state, false); /* what was there is still whole */
  assert_int_equal(c.count, 4);
  pl_catalog_free(&c);
}

#define IN_TEMP(test) cmocka_unit_test_setup_teardown(test, make_temp, remove_temp)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_TEMP(what_was_frozen_is_listed),
      IN_TEMP(indexes_stay_when_the_sweep_changes),
      IN_TEMP(each_changed_sweep_has_a_frozen_copy),
      IN_TEMP(another_sweep_is_refused),
      IN_TEMP(without_commit_nothing_changes),
      IN_TEMP(many_that_freeze_at_once_lose_nothing),
      IN_TEMP(the_lock_of_a_dead_process_does_not_stop_others),
      IN_TEMP(other_folders_and_damaged_lists_are_named),
      IN_TEMP(bad_runs_are_named_and_the_others_are_there),
      IN_TEMP(a_failed_run_that_runs_again_is_running),
      IN_TEMP(a_thousand_runs_are_opened_quickly),
      IN_TEMP(what_cannot_be_written_is_a_sentence),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
