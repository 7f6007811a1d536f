/* Claims that are held for long: the counter, who watches it, who lost it; and that never two hold one. The races are
 * run again by tests/integration/claim_test.sh, under a shim that lies about files. */
#include "results_help.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "core/base/clock.h"
#include "core/base/hash.h"
#include "results/claim.h"

static pl_owner owner_in(const char *path) {
  char line[PL_CLAIM_LINE];
  pl_owner o;
  assert_true(pl_claim_read(path, line));
  assert_true(pl_owner_parse(line, &o));
  return o;
}

static void take(const char *path) {
  bool taken;
  assert_int_equal(pl_claim_take(path, &taken, NULL), PL_OK);
  assert_true(taken);
}

/* A claim as a process of another host would have written it. */
static void write_foreign(const char *path, const char *job, unsigned long long counter) {
  char line[PL_CLAIM_LINE];
  pl_owner o = pl_owner_self();
  strcpy(o.host, "another-host");
  strcpy(o.nonce, "0123456789abcdef");
  strcpy(o.job, job);
  o.counter = counter;
  pl_owner_print(&o, line);
  write_bytes(path, line, strlen(line));
}

static void a_line_says_who(void **state) {
  char path[256];
  static const char *const names[] = {"SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID",
                                      "SLURM_RESTART_COUNT"};
  static const struct {
    const char *values[5], *job;
  } cases[] = {{{NULL, NULL, NULL, NULL, NULL}, "-"},
               {{"hpc", "77", NULL, NULL, NULL}, "hpc:77/0"},
               {{"hpc", "15", "12", "3", "2"}, "hpc:12_3/2"},
               {{"h pc", "15", "12", "3", "2"}, "-"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (size_t k = 0; k < 5; k++) {
      if (cases[i].values[k])
        setenv(names[k], cases[i].values[k], 1);
      else
        unsetenv(names[k]);
    }
    take(in_temp(state, "claim", path));
    pl_owner o = owner_in(path);
    assert_string_equal(o.job, cases[i].job);
    assert_int_equal(strlen(o.nonce), 16);
    assert_true(pl_owner_is_self(&o) && o.counter == 0);
    pl_claim_end(path);
    assert_int_equal(pl_claim_look(path), PL_CLAIM_NONE);
    assert_true(pl_path_exists(path));
    take(path);
    pl_claim_release(path);
    assert_false(pl_path_exists(path));
  }
  for (size_t k = 0; k < 5; k++) unsetenv(names[k]);
}

/* The line keeps its length, and what is before the counter its bytes. */
static void the_counter_goes_on(void **state) {
  char path[256], before[PL_CLAIM_LINE], after[PL_CLAIM_LINE];
  take(in_temp(state, "claim", path));
  assert_true(pl_claim_read(path, before));
  for (unsigned i = 1; i <= 3; i++) {
    assert_true(pl_claim_beat(path));
    assert_true(owner_in(path).counter == i);
  }
  assert_true(pl_claim_read(path, after));
  assert_int_equal(strlen(after), strlen(before));
  assert_memory_equal(after, before, pl_owner_length(before));
  assert_false(pl_claim_is_lost(path));
  write_foreign(path, "-", 7);
  assert_true(pl_claim_is_lost(path));
  assert_false(pl_claim_beat(path));
  assert_true(owner_in(path).counter == 7); /* not ours to write in */
  pl_claim_release(path);
  assert_int_equal(pl_claim_look(path), PL_CLAIM_LIVE);
  assert_int_equal(unlink(path), 0);
  assert_true(pl_claim_is_lost(path));
}

/* Whoever took over first made the successor's name: the owner sees it even while PATH still reads as before. */
static void a_successor_is_a_loss(void **state) {
  char path[256], line[PL_CLAIM_LINE], hex[PL_ID_SIZE], next[300];
  take(in_temp(state, "claim", path));
  assert_true(pl_claim_read(path, line));
  pl_hash_hex(pl_hash_join(pl_hash(line, pl_owner_length(line)), 0), hex);
  snprintf(next, sizeof next, "%s.%s", path, hex);
  write_foreign(next, "-", 0);
  assert_true(pl_claim_is_lost(path));
}

static void a_holder_that_stands_still_is_watched(void **state) {
  char path[256];
  pl_claim_watch w = {0};
  setenv("PIPELAG_CLAIM_SECONDS", "0.3", 1);
  write_foreign(in_temp(state, "claim", path), "-", 1);
  assert_int_equal(pl_claim_watch_on(path, &w), PL_CLAIM_UNSURE);
  assert_int_equal(pl_claim_watch_on(path, &w), PL_CLAIM_UNSURE);
  write_foreign(path, "-", 2);
  assert_int_equal(pl_claim_watch_on(path, &w), PL_CLAIM_MOVES);
  double began = pl_clock_seconds();
  while (pl_claim_watch_on(path, &w) == PL_CLAIM_UNSURE) usleep(10000);
  assert_true(pl_clock_seconds() - began > 0.29);
  assert_int_equal(pl_claim_watch_on(path, &w), PL_CLAIM_STILL);
  bool taken;
  const pl_claim_rules rules = {.stood_still = w.line};
  write_foreign(path, "-", 3); /* it came back at the last moment */
  assert_int_equal(pl_claim_take_by(path, &rules, &taken, NULL), PL_OK);
  assert_false(taken);
  write_foreign(path, "-", 2);
  assert_int_equal(pl_claim_take_by(path, &rules, &taken, NULL), PL_OK);
  assert_true(taken);
  unsetenv("PIPELAG_CLAIM_SECONDS");
  assert_true(pl_claim_seconds() == 300);
}

static bool is_gone(const char *job) { return strcmp(job, "hpc:12_3/0") == 0; }
static bool never_asked(const char *job) {
  fail_msg("asked about %s", job);
  return true;
}

static void slurm_is_asked_about_its_jobs_alone(void **state) {
  static const struct {
    const char *job;
    bool (*rule)(const char *job);
    bool taken;
  } cases[] = {{"hpc:12_3/0", is_gone, true},
               {"hpc:12_3/1", is_gone, false},
               {"hpc:12_3/0", NULL, false},
               {"-", never_asked, false}};
  char path[256];
  in_temp(state, "claim", path);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    bool taken;
    const pl_claim_rules rules = {.job_is_gone = cases[i].rule};
    write_foreign(path, cases[i].job, 0);
    assert_int_equal(pl_claim_take_by(path, &rules, &taken, NULL), PL_OK);
    assert_int_equal(taken, cases[i].taken);
    if (taken) pl_claim_release(path);
    unlink(path);
  }
}

enum { RACERS = 12 };

typedef struct arena {
  char claim[256], guard[256];
  double end; /* clock */
} arena;

/* One turn: 0 not taken, 1 taken, 100 not alone. A third of the holders die. */
static int turn(const arena *a, unsigned number) {
  bool taken;
  if (pl_claim_take(a->claim, &taken, NULL) != PL_OK) return 100;
  if (!taken) return 0;
  bool alone = mkdir(a->guard, 0777) == 0;
  usleep(1000);
  alone = rmdir(a->guard) == 0 && alone && !pl_claim_is_lost(a->claim);
  pl_claim_tidy(a->claim);
  if (number % 3 == 1) pl_claim_end(a->claim);
  if (number % 3 == 2) (getenv("SHIM_STALE") ? pl_claim_end : pl_claim_release)(a->claim);
  return alone ? 1 : 100;
}

/* Turns in processes of their own, which know what their parent has read. */
static int take_turns(void *self, int number) {
  const arena *a = self;
  int got = 0;
  for (unsigned i = (unsigned)number; pl_clock_seconds() < a->end; i++) {
    char line[PL_CLAIM_LINE];
    (void)pl_claim_read(a->claim, line);
    pid_t child = fork();
    if (child == 0) _exit(turn(a, i));
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 100;
    if (WEXITSTATUS(status) == 100) return 100;
    got += WEXITSTATUS(status);
  }
  return got > 0; /* everybody had a turn */
}

/* Again where the machine was too busy for two to have a turn. */
static void never_two_at_once(void **state) {
  int had_one = 0;
  for (int i = 0; i < 20 && had_one < 2; i++) {
    arena a = {.end = pl_clock_seconds() + 1.5};
    in_temp(state, "claim", a.claim);
    in_temp(state, "guard", a.guard);
    had_one = fork_all(RACERS, take_turns, &a);
    if (had_one > RACERS) fail_msg("two held the claim at once");
  }
  assert_true(had_one >= 2);
}

#define IN_TEMP(test) cmocka_unit_test_setup_teardown(test, make_temp, remove_temp)

int main(void) {
  const struct CMUnitTest races[] = {IN_TEMP(never_two_at_once)};
  const struct CMUnitTest tests[] = {IN_TEMP(a_line_says_who), IN_TEMP(the_counter_goes_on),
                                     IN_TEMP(a_successor_is_a_loss), IN_TEMP(a_holder_that_stands_still_is_watched),
                                     IN_TEMP(slurm_is_asked_about_its_jobs_alone)};
  int failed = getenv("PL_RACES_ONLY") ? 0 : cmocka_run_group_tests(tests, NULL, NULL);
  return failed + cmocka_run_group_tests(races, NULL, NULL);
}
