/* What a run is shown as, from what its directory and Slurm say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/catalog.h"
#include "runners/launchers/slurm/cancel.h"
#include "runners/launchers/slurm/states.h"

typedef struct known {
  const char *name;
  pl_queue_kind kind;
  pl_attempt_end end;
  const char *retry;
} known;

#define PL_SLURM_STATE(name, kind, end, retry) {#name, PL_QUEUE_##kind, PL_ATTEMPT_##end, retry},
static const known states[] = {
#include "runners/launchers/slurm/slurm_states.def"
};
#undef PL_SLURM_STATE

enum { STATES = sizeof states / sizeof *states };

static pl_sight sight(pl_run_state kept, const char *word) {
  return (pl_sight){.kept = kept, .submitted = true, .asked = true, .word = word};
}

static pl_shown shown(pl_run_state kept, const char *word) {
  const pl_sight s = sight(kept, word);
  return pl_state_merge(&s).shown;
}

static const char *name_of(pl_run_state kept, const char *word) {
  const pl_sight s = sight(kept, word);
  const pl_verdict v = pl_state_merge(&s);
  return pl_verdict_name(&v);
}

/* Whatever Slurm says, with and without an answer: done means a result. */
static void test_done_needs_a_result(void **state) {
  (void)state;
  for (size_t i = 0; i <= STATES + 1; i++)
    for (pl_run_state kept = 0; kept < PL_RUN_STATES; kept++)
      for (int flags = 0; flags < 32; flags++) {
        const pl_sight s = {.kept = kept,
                            .submitted = flags & 1,
                            .young = flags & 2,
                            .asked = flags & 4,
                            .packed = flags & 8,
                            .siblings = flags & 16,
                            .word = i < STATES    ? states[i].name
                                    : i == STATES ? "QUITE_NEW"
                                                  : NULL};
        const pl_verdict v = pl_state_merge(&s);
        assert_int_equal(v.shown == PL_SHOWN_DONE, kept == PL_RUN_DONE);
        assert_int_equal(v.shown == PL_SHOWN_DIVERGED, kept == PL_RUN_DIVERGED);
        assert_non_null(pl_verdict_name(&v));
        assert_non_null(v.why);
      }
}

/* A task that is still there, also one in a state that nobody knows, is never called ended. */
static void test_what_is_there_has_not_ended(void **state) {
  (void)state;
  static const char *const words[] = {"CONFIGURING",   "COMPLETING", "REQUEUED",     "REQUEUE_HOLD",
                                      "RESV_DEL_HOLD", "PENDING",    "SPECIAL_EXIT", "STAGE_OUT",
                                      "SUSPENDED",     "SIGNALING",  "QUITE_NEW",    "REVOKED"};
  static const pl_run_state kept[] = {PL_RUN_PENDING, PL_RUN_RUNNING, PL_RUN_STOPPED, PL_RUN_LOST};
  for (size_t w = 0; w < sizeof words / sizeof *words; w++)
    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++) {
      pl_shown s = shown(kept[k], words[w]);
      assert_true(s == PL_SHOWN_QUEUED || s == PL_SHOWN_RUNNING);
    }
  for (size_t i = 0; i < STATES; i++) {
    if (states[i].kind == PL_QUEUE_WAITING) assert_int_equal(shown(PL_RUN_STOPPED, states[i].name), PL_SHOWN_QUEUED);
    if (states[i].kind == PL_QUEUE_RUNNING) assert_int_equal(shown(PL_RUN_STOPPED, states[i].name), PL_SHOWN_RUNNING);
  }
}

static void test_ends_are_told_apart(void **state) {
  (void)state;
  assert_string_equal(name_of(PL_RUN_LOST, "TIMEOUT"), "timeout");
  assert_string_equal(name_of(PL_RUN_STOPPED, "TIMEOUT"), "timeout");
  assert_string_equal(name_of(PL_RUN_LOST, "DEADLINE"), "timeout");
  assert_string_equal(name_of(PL_RUN_LOST, "OUT_OF_MEMORY"), "out of memory");
  assert_string_equal(name_of(PL_RUN_FAILED, "OUT_OF_MEMORY"), "out of memory");
  assert_string_equal(name_of(PL_RUN_LOST, "NODE_FAIL"), "node failure");
  assert_string_equal(name_of(PL_RUN_PENDING, "BOOT_FAIL"), "node failure");
  assert_string_equal(name_of(PL_RUN_STOPPED, "PREEMPTED"), "preempted");
  assert_string_equal(name_of(PL_RUN_LOST, "CANCELLED"), "cancelled by Slurm");
  assert_string_equal(name_of(PL_RUN_CANCELLED, "CANCELLED"), "cancelled");
  assert_string_equal(name_of(PL_RUN_LOST, "FAILED"), "failed");
  assert_string_equal(name_of(PL_RUN_FAILED, "FAILED"), "failed");
  assert_string_equal(name_of(PL_RUN_STOPPED, "FAILED"), "stopped"); /* a checkpoint and exit code 75 */
  assert_string_equal(name_of(PL_RUN_LOST, "COMPLETED"), "lost");
  assert_string_equal(name_of(PL_RUN_PENDING, "COMPLETED"), "lost");
  assert_int_equal(shown(PL_RUN_LOST, "TIMEOUT"), PL_SHOWN_LOST);
  assert_int_equal(shown(PL_RUN_STOPPED, "TIMEOUT"), PL_SHOWN_STOPPED);
  assert_int_equal(shown(PL_RUN_LOST, "OUT_OF_MEMORY"), PL_SHOWN_FAILED);
  assert_int_equal(shown(PL_RUN_STOPPED, "CANCELLED"), PL_SHOWN_CANCELLED);
}

static void test_killed_and_out_of_memory(void **state) {
  (void)state;
  static const pl_run_state kept[] = {PL_RUN_PENDING, PL_RUN_STOPPED, PL_RUN_LOST};
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
    pl_sight s = sight(kept[i], "FAILED");
    s.signalled = true;
    pl_verdict v = pl_state_merge(&s);
    assert_string_equal(pl_verdict_name(&v), "killed");
    assert_int_equal(v.shown, PL_SHOWN_LOST);
    s.memory = true;
    v = pl_state_merge(&s);
    assert_string_equal(pl_verdict_name(&v), "out of memory");
    assert_int_equal(v.shown, PL_SHOWN_FAILED);
  }
}

static void test_without_a_task(void **state) {
  (void)state;
  pl_sight s = sight(PL_RUN_PENDING, NULL);
  assert_int_equal(pl_state_merge(&s).shown, PL_SHOWN_LOST);
  s.siblings = true; /* a waiting task of an array leaves no trace */
  assert_int_equal(pl_state_merge(&s).end, PL_ATTEMPT_CANCELLED);
  s.siblings = false;
  s.young = true;
  assert_int_equal(pl_state_merge(&s).shown, PL_SHOWN_QUEUED);
  s = sight(PL_RUN_LOST, NULL);
  assert_int_equal(pl_state_merge(&s).shown, PL_SHOWN_LOST);
  s = sight(PL_RUN_STOPPED, NULL);
  assert_int_equal(pl_state_merge(&s).shown, PL_SHOWN_STOPPED);
  s = sight(PL_RUN_PENDING, NULL);
  s.asked = false; /* nothing is known, so nothing is called lost */
  assert_int_equal(pl_state_merge(&s).shown, PL_SHOWN_QUEUED);
  s.submitted = false;
  assert_int_equal(pl_state_merge(&s).shown, PL_SHOWN_PENDING);
}

static void test_one_of_a_pack(void **state) {
  (void)state;
  pl_sight s = sight(PL_RUN_FAILED, "RUNNING");
  assert_int_equal(pl_state_merge(&s).shown, PL_SHOWN_RUNNING);
  s.packed = true;
  assert_int_equal(pl_state_merge(&s).shown, PL_SHOWN_FAILED);
}

static bool has_row(const char *text, const known *k) {
  char row[64];
  snprintf(row, sizeof row, "\n| `%s` |", k->name);
  const char *line = strstr(text, row);
  if (line == NULL) return false;
  const char *end = strchr(line + 1, '\n'), *retry = strstr(line, k->retry);
  return end != NULL && retry != NULL && retry < end;
}

static void test_documentation_has_every_state(void **state) {
  (void)state;
  char *text;
  size_t length;
  pl_err e = {0};
  assert_int_equal(pl_file_read(PL_TESTS "/../docs/slurm.md", 1 << 20, &text, &length, &e), PL_OK);
  for (size_t i = 0; i < STATES; i++)
    if (!has_row(text, &states[i])) fail_msg("docs/slurm.md lacks %s with \"%s\"", states[i].name, states[i].retry);
  const known absent = {.name = "QUITE_NEW", .retry = "submits it again"};
  assert_false(has_row(text, &absent));
  pl_free(text);
}

/* A directory of 12 runs with one submission, and a squeue and a scancel of our own in front of PATH. */
typedef struct place {
  char root[64], dir[96], bin[96];
  char *path; /* PATH as it was */
  pl_submission sub;
} place;

static void write_file(const char *folder, const char *name, const char *text) {
  char *path;
  pl_err e = {0};
  assert_int_equal(pl_path_join(folder, name, &path, &e), PL_OK);
  assert_int_equal(pl_file_replace(path, text, strlen(text), &e), PL_OK);
  assert_int_equal(chmod(path, 0755), 0);
  pl_free(path);
}

static uint64_t id_of(size_t i) { return 0x1000000000000000u + 77 * i * i; }

static void make_dir(place *p) {
  pl_err e = {0};
  pl_freeze *freeze;
  uint64_t index;
  pl_json *document = pl_json_new_object();
  assert_true(pl_json_set(document, "name", pl_json_new_string("s")));
  assert_int_equal(pl_freeze_begin(p->dir, "s", document, p->root, &freeze, &e), PL_OK);
  for (size_t i = 0; i < 12; i++) assert_int_equal(pl_freeze_add(freeze, id_of(i), "x=1", &index, &e), PL_OK);
  assert_int_equal(pl_freeze_commit(freeze, &e), PL_OK);
  pl_freeze_end(freeze);
  pl_json_release(document);
  for (size_t i = 0; i < 12; i++) {
    char *folder;
    assert_int_equal(pl_run_path(p->dir, id_of(i), "", &folder, &e), PL_OK);
    assert_int_equal(pl_make_folders(folder, &e), PL_OK);
    pl_free(folder);
  }
}

/* Two runs a task: 0 to 11 in tasks 0 to 5. */
static void make_submission(place *p) {
  pl_err e = {0};
  assert_int_equal(pl_strdup("/data", &p->sub.data_root, &e), PL_OK);
  assert_int_equal(pl_strdup("/bin/pipelag", &p->sub.program, &e), PL_OK);
  assert_int_equal(pl_alloc(12, sizeof *p->sub.rows, "rows", &p->sub.rows, &e), PL_OK);
  for (p->sub.count = 0; p->sub.count < 12; p->sub.count++)
    p->sub.rows[p->sub.count] =
        (pl_submission_row){.task = (int64_t)p->sub.count / 2, .index = p->sub.count, .id = id_of(p->sub.count)};
  assert_int_equal(pl_submission_create(p->dir, &p->sub, &e), PL_OK);
  assert_int_equal(pl_submission_answer(p->dir, &p->sub, PL_SENT_YES, "40", NULL, &e), PL_OK);
}

/* Task 0 runs, 1 and 3 to 5 wait, 2 was cancelled. A line of somebody else's job is left out. */
static void make_commands(place *p) {
  char script[2048];
  int length = snprintf(script, sizeof script,
                        "#!/bin/sh\nN=%s\ncat <<EOF\n"
                        "$N|40|0|41|RUNNING|None|0|0|n1|\n$N|40|1|40|PENDING|JobArrayTaskLimit|0|0||\n"
                        "$N|40|2|42|CANCELLED|None|15|0|n2|\n$N|40|3-5|40|PENDING|Resources|0|0||\n"
                        "other|777|3-9%%2|777|PENDING|Priority|0|0||\nEOF\n",
                        p->sub.token);
  assert_true(length > 0 && (size_t)length < sizeof script);
  write_file(p->bin, "squeue", script);
  write_file(p->bin, "sacct", "#!/bin/sh\necho 'Slurm accounting storage is disabled' >&2\nexit 1\n");
  snprintf(script, sizeof script, "#!/bin/sh\necho \"$@\" >>'%s/told'\n", p->root);
  write_file(p->bin, "scancel", script);
}

static int set_up(void **state) {
  static place p;
  char path[8192];
  pl_err e = {0};
  p = (place){.root = "/tmp/pl-states-XXXXXX"};
  if (mkdtemp(p.root) == NULL) return -1;
  snprintf(p.dir, sizeof p.dir, "%s/out", p.root);
  snprintf(p.bin, sizeof p.bin, "%s/bin", p.root);
  if (pl_make_folders(p.bin, &e) != PL_OK) return -1;
  make_dir(&p);
  make_submission(&p);
  make_commands(&p);
  p.path = strdup(getenv("PATH"));
  snprintf(path, sizeof path, "%s:%s", p.bin, p.path);
  setenv("PATH", path, 1);
  *state = &p;
  return 0;
}

static int tear_down(void **state) {
  place *p = *state;
  char command[128];
  setenv("PATH", p->path, 1);
  free(p->path);
  pl_submission_free(&p->sub);
  snprintf(command, sizeof command, "rm -rf '%s'", p->root);
  return system(command);
}

static void test_reading(void **state) {
  place *p = *state;
  pl_states s;
  pl_err e = {0};
  pl_run_mark(p->dir, id_of(0), PL_RUN_RUNNING);
  pl_run_mark(p->dir, id_of(1), PL_RUN_DONE);
  pl_run_mark(p->dir, id_of(4), PL_RUN_DONE);
  pl_run_mark(p->dir, id_of(6), PL_RUN_STOPPED);
  assert_int_equal(pl_states_read(p->dir, &s, &e), PL_OK);
  static const char *const expected[12] = {"running", "done",   "queued", "queued", "done",   "cancelled by Slurm",
                                           "queued",  "queued", "queued", "queued", "queued", "queued"};
  assert_int_equal(s.count, 12);
  assert_true(s.asked);
  for (size_t i = 0; i < 12; i++) assert_string_equal(pl_verdict_name(&s.runs[i].verdict), expected[i]);
  assert_string_equal(s.runs[2].queued->reason, "JobArrayTaskLimit");
  size_t index;
  assert_int_equal(pl_states_find(&s, "7", &index, &e), PL_OK);
  assert_int_equal(index, 7);
  assert_int_equal(pl_states_find(&s, "1000000000000", &index, &e), PL_NOTHING);
  pl_states_free(&s);
}

static char *told(const place *p) {
  char *path, *text = NULL;
  size_t length;
  pl_err e = {0};
  assert_int_equal(pl_path_join(p->root, "told", &path, &e), PL_OK);
  if (pl_path_exists(path)) assert_int_equal(pl_file_read(path, 4096, &text, &length, &e), PL_OK);
  unlink(path);
  pl_free(path);
  return text;
}

/* Runs 0, 2, 3, 7 to 10 of 12: task 0 has a run that is done, 1 and 4 go as a whole, 3 and 5 keep a run. */
static void test_scancel_takes_whole_tasks(void **state) {
  place *p = *state;
  pl_states s;
  pl_err e = {0};
  pl_slurm_cancelled out;
  bool chosen[12] = {[0] = true, [2] = true, [3] = true, [7] = true, [8] = true, [9] = true, [10] = true};
  pl_run_mark(p->dir, id_of(1), PL_RUN_DONE);
  assert_int_equal(pl_states_read(p->dir, &s, &e), PL_OK);
  assert_int_equal(pl_slurm_cancel(&s, chosen, &out, &e), PL_OK);
  assert_int_equal(out.tasks, 3);
  assert_int_equal(out.shared, 2);
  char *text = told(p);
  assert_string_equal(text, "40_[0-1,4]\n");
  pl_free(text);
  for (size_t i = 0; i < 12; i++) chosen[i] = false;
  assert_int_equal(pl_slurm_cancel(&s, chosen, &out, &e), PL_OK);
  assert_null(told(p));
  pl_states_free(&s);
}

static void test_slurm_out_of_order(void **state) {
  place *p = *state;
  pl_states s;
  pl_err e = {0};
  write_file(p->bin, "squeue", "#!/bin/sh\necho 'slurm_load_jobs error: no controller' >&2\nexit 1\n");
  pl_run_mark(p->dir, id_of(1), PL_RUN_DONE);
  assert_int_equal(pl_states_read(p->dir, &s, &e), PL_OK);
  assert_false(s.asked);
  assert_non_null(strstr(s.note, "no controller"));
  assert_string_equal(pl_verdict_name(&s.runs[0].verdict), "queued");
  assert_string_equal(pl_verdict_name(&s.runs[1].verdict), "done");
  pl_states_free(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_done_needs_a_result),
                                     cmocka_unit_test(test_what_is_there_has_not_ended),
                                     cmocka_unit_test(test_ends_are_told_apart),
                                     cmocka_unit_test(test_killed_and_out_of_memory),
                                     cmocka_unit_test(test_without_a_task),
                                     cmocka_unit_test(test_one_of_a_pack),
                                     cmocka_unit_test(test_documentation_has_every_state),
                                     cmocka_unit_test_setup_teardown(test_reading, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(test_scancel_takes_whole_tasks, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(test_slurm_out_of_order, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
