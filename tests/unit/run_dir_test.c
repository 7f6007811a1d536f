/* A run's folder: its state from what lies in it, claims and their takers, the result. */
#include "run_dir_help.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "results/claim.h"
#include "results/journal.h"

enum { RACERS = 20 };
/* Starts a process that claims the run and then waits to be killed. */
static pid_t start_holder(void **state) {
  int ready[2];
  char byte;
  assert_int_equal(pipe(ready), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    bool taken;
    if (pl_run_claim(*state, run_id, &taken, NULL) != PL_OK || !taken) _exit(1);
    if (write(ready[1], "x", 1) == 1) pause();
    _exit(0);
  }
  close(ready[1]);
  assert_int_equal(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  return child;
}

/* The holder is a zombie until it is waited for: it counts as gone all the same. */
static void kill_holder(pid_t child, bool wait_for_it) {
  siginfo_t info;
  assert_int_equal(kill(child, SIGKILL), 0);
  assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | (wait_for_it ? 0 : WNOWAIT)), 0);
}

static void paths_are_short_and_flat(void **state) {
  char expected[256];
  char *path = run_file(state, "config.json");
  snprintf(expected, sizeof expected, "%s/runs/01/0123456789abcdef/config.json", (const char *)*state);
  assert_string_equal(path, expected);
  pl_free(path);
}

static void config_is_written_once_and_reads_back(void **state) {
  pl_run_config config, again;
  pl_err e = {0};
  pl_json *document = toy_run("muon", 0.02, 7, &config), *read;
  uint64_t id = pl_run_config_id(&config);
  assert_int_equal(pl_run_create(*state, id, &config, &e), PL_OK);
  char *path;
  assert_int_equal(pl_run_path(*state, id, "config.json", &path, NULL), PL_OK);
  assert_int_equal(pl_json_read(path, &read, &e), PL_OK);
  assert_int_equal(pl_run_config_from_json(&toys, read, path, &again, &e), PL_OK);
  assert_int_equal(pl_run_config_id(&again), id);
  write_bytes(path, "{}", 2);
  assert_int_equal(pl_run_create(*state, id, &config, &e), PL_OK);
  char *bytes;
  assert_int_equal(read_bytes(path, &bytes), 2);
  pl_free(bytes);
  pl_free(path);
  pl_json_release(read);
  pl_json_release(document);
}

static void states_follow_the_folder(void **state) {
  pl_journal *j;
  assert_state(state, PL_RUN_PENDING);
  make_run(state);
  assert_state(state, PL_RUN_PENDING);
  pid_t holder = start_holder(state);
  assert_state(state, PL_RUN_RUNNING);
  kill_holder(holder, true);
  assert_state(state, PL_RUN_LOST);
  char *claim = run_file(state, "claim"), *journal = run_file(state, "journal"),
       *result = run_file(state, "result.json");
  assert_int_equal(unlink(claim), 0);
  assert_state(state, PL_RUN_PENDING);
  assert_int_equal(pl_journal_open(journal, &j, NULL), PL_OK);
  pl_journal_close(j);
  assert_state(state, PL_RUN_LOST);
  static const pl_run_state settled[] = {PL_RUN_STOPPED, PL_RUN_FAILED, PL_RUN_DIVERGED, PL_RUN_DONE};
  for (size_t i = 0; i < sizeof settled / sizeof *settled; i++) {
    assert_int_equal(pl_run_write_result(*state, run_id, settled[i], NULL, NULL, NULL), PL_OK);
    assert_state(state, settled[i]);
  }
  assert_int_equal(truncate(result, 20), 0);
  assert_state(state, PL_RUN_LOST);
  pl_free(result);
  pl_free(journal);
  pl_free(claim);
}

/* Another attempt, killed without a word. Clocks tell nothing: they are set back meanwhile. */
static void an_attempt_without_a_result_is_lost(void **state) {
  pl_journal *j;
  char *journal = run_file(state, "journal"), *result = run_file(state, "result.json");
  bool taken;
  make_run(state);
  assert_int_equal(pl_journal_open(journal, &j, NULL), PL_OK);
  pl_journal_close(j);
  assert_int_equal(pl_run_claim(*state, run_id, &taken, NULL), PL_OK);
  assert_int_equal(pl_run_write_result(*state, run_id, PL_RUN_STOPPED, NULL, NULL, NULL), PL_OK);
  assert_state(state, PL_RUN_RUNNING); /* not released yet */
  pl_run_release(*state, run_id);
  assert_state(state, PL_RUN_STOPPED);
  pid_t holder = start_holder(state);
  assert_state(state, PL_RUN_RUNNING);
  kill_holder(holder, true);
  assert_state(state, PL_RUN_STOPPED); /* it had not begun */
  holder = start_holder(state);
  assert_int_equal(pl_journal_open(journal, &j, NULL), PL_OK);
  pl_journal_close(j);
  const struct timespec tomorrow[2] = {{.tv_sec = time(NULL) + 86400}, {.tv_sec = time(NULL) + 86400}};
  assert_int_equal(utimensat(AT_FDCWD, result, tomorrow, 0), 0);
  assert_state(state, PL_RUN_RUNNING);
  kill_holder(holder, true);
  assert_state(state, PL_RUN_LOST);
  assert_int_equal(pl_run_write_result(*state, run_id, PL_RUN_DONE, NULL, NULL, NULL), PL_OK);
  assert_state(state, PL_RUN_DONE); /* whatever became of the claim */
  pl_free(result);
  pl_free(journal);
}

static void a_live_claim_is_kept_and_only_its_owner_releases(void **state) {
  make_run(state);
  bool taken;
  pid_t holder = start_holder(state);
  assert_int_equal(pl_run_claim(*state, run_id, &taken, NULL), PL_OK);
  assert_false(taken);
  pl_run_release(*state, run_id); /* not ours */
  assert_state(state, PL_RUN_RUNNING);
  pl_str who = {0};
  char expected[64];
  pl_run_claimed_by(*state, run_id, &who);
  snprintf(expected, sizeof expected, "process %ld on host ", (long)holder);
  assert_memory_equal(who.text, expected, strlen(expected));
  pl_str_free(&who);
  kill_holder(holder, false);
  assert_state(state, PL_RUN_LOST);
  assert_int_equal(pl_run_claim(*state, run_id, &taken, NULL), PL_OK);
  assert_true(taken);
  assert_int_equal(pl_run_claim(*state, run_id, &taken, NULL), PL_OK);
  assert_false(taken); /* not twice, not even by its owner */
  pl_run_release(*state, run_id);
  assert_state(state, PL_RUN_PENDING);
  assert_int_equal(waitpid(holder, NULL, 0), holder);
}

static void rewrite_claim(const char *path, int field, const char *to) {
  enum { FIELDS = 8 };
  char *text, fields[FIELDS][64], line[FIELDS * 64] = "";
  read_bytes(path, &text);
  const char *at = text;
  for (int i = 0, length; i < FIELDS; i++, at += length) assert_int_equal(sscanf(at, "%63s%n", fields[i], &length), 1);
  snprintf(fields[field], sizeof fields[field], "%s", to);
  for (int i = 0; i < FIELDS; i++) strcat(strcat(line, fields[i]), i < FIELDS - 1 ? " " : "\n");
  write_bytes(path, line, strlen(line));
  pl_free(text);
}

/* Our own claim with one field changed, as other processes and machines would have written it. */
static void only_what_is_known_to_be_gone_is_dead(void **state) {
  enum { HOST, BOOT, SPACE, PID, START };
  static const struct {
    int field;
    const char *value;
    pl_claim_state expected;
  } cases[] = {{HOST, "another-host", PL_CLAIM_LIVE},
               {SPACE, "pid:[1]", PL_CLAIM_LIVE},
               {BOOT, "another-boot", PL_CLAIM_DEAD},
               {START, "1", PL_CLAIM_DEAD}, /* the pid was given to another process */
               {PID, "999999999", PL_CLAIM_DEAD}};
  char path[256];
  in_temp(state, "claim", path);
  assert_int_equal(pl_claim_look(path), PL_CLAIM_NONE);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    bool taken;
    assert_int_equal(pl_claim_take(path, &taken, NULL), PL_OK);
    assert_true(taken);
    assert_int_equal(pl_claim_look(path), PL_CLAIM_LIVE);
    rewrite_claim(path, cases[i].field, cases[i].value);
    assert_int_equal(pl_claim_look(path), cases[i].expected);
    assert_int_equal(unlink(path), 0);
  }
  write_bytes(path, "", 0); /* what a power cut leaves */
  assert_int_equal(pl_claim_look(path), PL_CLAIM_DEAD);
}

/* What a killed process was writing goes at the next claim; what live ones write, and all else, stays. */
static void the_next_claim_removes_leftovers(void **state) {
  make_run(state);
  pid_t gone = fork();
  if (gone == 0) _exit(0);
  assert_int_equal(waitpid(gone, NULL, 0), gone);
  static const struct {
    const char *name; /* with a place for a pid */
    bool by_dead, is_claim, stays;
  } files[] = {{"result.json.tmp.%ld", true, false, false}, {"curves.h5.tmp.%ld", true, false, false},
               {"meta.json.tmp.%ld", false, false, true},   {"notes.tmp.%ldx", true, false, true},
               {"claim.tmp.%ld", true, true, false},        {"claim.0123456789abcdef%.0ld", true, true, true},
               {"claim.tmp.%ld", false, false, true},       {"log.1.txt%.0ld", true, false, true}};
  enum { FILES = sizeof files / sizeof *files };
  char names[FILES][64], *paths[FILES], claim[256];
  bool taken;
  assert_int_equal(pl_claim_take(in_temp(state, "claim", claim), &taken, NULL), PL_OK);
  rewrite_claim(claim, 3, "999999999");
  char *dead;
  size_t length = read_bytes(claim, &dead);
  for (size_t i = 0; i < FILES; i++) {
    long pid = files[i].by_dead ? (long)gone : (long)getppid();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(names[i], sizeof names[i], files[i].name, strstr(files[i].name, ".0ld") ? 0L : pid);
#pragma GCC diagnostic pop
    paths[i] = run_file(state, names[i]);
    write_bytes(paths[i], files[i].is_claim ? dead : "half", files[i].is_claim ? length : 4);
  }
  assert_int_equal(pl_run_claim(*state, run_id, &taken, NULL), PL_OK);
  assert_true(taken);
  for (size_t i = 0; i < FILES; i++) {
    if (pl_path_exists(paths[i]) != files[i].stays) fail_msg("%s", names[i]);
    pl_free(paths[i]);
  }
  assert_state(state, PL_RUN_RUNNING);
  pl_run_release(*state, run_id);
  pl_free(dead);
}

typedef struct racing {
  const char *dir;
  atomic_int *tried; /* shared by all racers */
} racing;

/* 1 when it won. Nobody ends before all have tried, so that the winner's claim stays a live one. */
static int race(void *self, int number) {
  const racing *r = self;
  bool taken = false;
  (void)number;
  pl_status st = pl_run_claim(r->dir, run_id, &taken, NULL);
  atomic_fetch_add(r->tried, 1);
  while (atomic_load(r->tried) < RACERS) usleep(2000);
  return st == PL_OK ? taken : 100;
}

static int winners(void **state) {
  racing r = {.dir = *state};
  r.tried = mmap(NULL, sizeof *r.tried, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(r.tried, MAP_FAILED);
  int won = fork_all(RACERS, race, &r);
  munmap(r.tried, sizeof *r.tried);
  return won;
}

static void one_of_many_takers_wins(void **state) {
  make_run(state);
  for (int round = 0; round < 3; round++) /* from the second on there is a dead claim to take over */
    assert_int_equal(winners(state), 1);
}

/* Takes over, releases, takes again ... : more than one holder at a time would be seen by the O_EXCL file. */
static int take_turns(void *self, int number) {
  char *guard;
  int wrong = 0;
  (void)number;
  if (pl_run_path(self, run_id, "guard", &guard, NULL) != PL_OK) return 100;
  for (int turn = 0; turn < 20; turn++) {
    bool taken;
    if (pl_run_claim(self, run_id, &taken, NULL) != PL_OK) return 100;
    if (!taken) continue;
    wrong += mkdir(guard, 0777) != 0;
    wrong += rmdir(guard) != 0;
    if (turn % 3 == 2) break; /* leaves a dead claim */
    pl_run_release(self, run_id);
  }
  pl_free(guard);
  return wrong;
}

static void never_two_holders_at_once(void **state) {
  make_run(state);
  for (int round = 0; round < 3; round++) assert_int_equal(fork_all(RACERS, take_turns, *state), 0);
}

/* A taker that died between its decision and the renaming. */
static void a_taker_that_died_is_followed(void **state) {
  make_run(state);
  kill_holder(start_holder(state), true);
  char *claim = run_file(state, "claim"), *text, hex[PL_ID_SIZE], next[512];
  read_bytes(claim, &text);
  pl_hash_hex(pl_hash_join(pl_hash(text, pl_owner_length(text)), 0), hex);
  snprintf(next, sizeof next, "%s.%s", claim, hex);
  rewrite_claim(claim, 4, "17"); /* some other dead process */
  assert_int_equal(rename(claim, next), 0);
  write_bytes(claim, text, strlen(text));
  assert_state(state, PL_RUN_LOST);
  assert_int_equal(winners(state), 1);
  rewrite_claim(next, 3, "1"); /* as if it lived: it counts, not the dead one that PATH still names */
  rewrite_claim(next, 0, "another-host");
  write_bytes(claim, text, strlen(text));
  assert_state(state, PL_RUN_RUNNING);
  bool taken;
  assert_int_equal(pl_run_claim(*state, run_id, &taken, NULL), PL_OK);
  assert_false(taken);
  pl_free(text);
  pl_free(claim);
}

static void result_reads_back(void **state) {
  make_run(state);
  pl_outcome o = {.end = PL_END_DIVERGED,
                  .steps = 1200,
                  .tokens = 1228800,
                  .first_bad_step = 17,
                  .skipped = 3,
                  .initial_val_loss = 5.5458,
                  .final_val_loss = (double)INFINITY,
                  .best_val_loss = 1.6409999999999998,
                  .final_train_loss = 1.25e-8,
                  .val_loss_y = (double)NAN,
                  .seconds = 12.5,
                  .tokens_per_second = 98304,
                  .resumed_from = 60,
                  .reason = "loss is not finite at update 17"};
  pl_result r;
  pl_err e = {0};
  assert_int_equal(pl_run_read_result(*state, run_id, &r, &e), PL_NOTHING);
  assert_string_equal(e.text, "");
  char *journal = run_file(state, "journal"), *path = run_file(state, "result.json");
  for (int attempt = 1; attempt <= 2; attempt++) {
    pl_journal *j;
    assert_int_equal(pl_journal_open(journal, &j, NULL), PL_OK);
    pl_journal_close(j);
  }
  assert_int_equal(pl_run_write_result(*state, run_id, PL_RUN_DIVERGED, &o, NULL, &e), PL_OK);
  assert_int_equal(pl_run_read_result(*state, run_id, &r, &e), PL_OK);
  assert_int_equal(r.state, PL_RUN_DIVERGED);
  assert_int_equal(r.attempts, 2);
  assert_string_equal(r.error, "");
  assert_true(isnan(r.outcome.val_loss_y));
  r.outcome.val_loss_y = o.val_loss_y;
  assert_int_equal(r.outcome.end, o.end);
  assert_int_equal(r.outcome.steps, o.steps);
  assert_int_equal(r.outcome.tokens, o.tokens);
  assert_int_equal(r.outcome.first_bad_step, o.first_bad_step);
  assert_int_equal(r.outcome.skipped, o.skipped);
  assert_int_equal(r.outcome.resumed_from, o.resumed_from);
  assert_memory_equal(&r.outcome.initial_val_loss, &o.initial_val_loss, 4 * sizeof(double));
  assert_true(r.outcome.seconds == o.seconds && r.outcome.tokens_per_second == o.tokens_per_second);
  assert_string_equal(r.outcome.reason, o.reason);
  assert_int_equal(pl_run_write_result(*state, run_id, PL_RUN_FAILED, NULL, "corpus/\xff.txt: is missing", &e), PL_OK);
  assert_int_equal(pl_run_read_result(*state, run_id, &r, &e), PL_OK);
  assert_int_equal(r.state, PL_RUN_FAILED);
  assert_string_equal(r.error, "corpus/\xef\xbf\xbd.txt: is missing");
  assert_true(isnan(r.outcome.final_val_loss) && r.outcome.first_bad_step == -1 && r.outcome.resumed_from == -1);
  static const char *const broken[] = {"", "{\"state\": \"done\"", "{\"state\": \"finished\"}", "[]"};
  for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
    write_bytes(path, broken[i], strlen(broken[i]));
    e = (pl_err){0};
    assert_int_equal(pl_run_read_result(*state, run_id, &r, &e), PL_FAIL);
    assert_int_equal(e.status, PL_FAIL);
    assert_says(&e, path);
  }
  pl_free(path);
  pl_free(journal);
}

/* The sweep's DIR/state/<state>/<id>. */
static bool is_marked(void **state, pl_run_state s) {
  char path[256];
  snprintf(path, sizeof path, "%s/state/%s/0123456789abcdef", (const char *)*state, pl_run_state_name(s));
  return pl_path_exists(path);
}

static void markers_move(void **state) {
  make_run(state);
  bool taken;
  assert_int_equal(pl_run_claim(*state, run_id, &taken, NULL), PL_OK);
  assert_true(is_marked(state, PL_RUN_RUNNING));
  assert_int_equal(pl_run_write_result(*state, run_id, PL_RUN_DONE, NULL, NULL, NULL), PL_OK);
  for (pl_run_state s = 0; s < PL_RUN_STATES; s++) assert_int_equal(is_marked(state, s), s == PL_RUN_DONE);
}

static int write_without_room(void *self, int number) {
  const struct rlimit none = {64, RLIM_INFINITY};
  pl_err e = {0};
  (void)number;
  signal(SIGXFSZ, SIG_IGN);
  if (setrlimit(RLIMIT_FSIZE, &none) != 0) return 1;
  if (pl_run_write_result(self, run_id, PL_RUN_DONE, NULL, NULL, &e) != PL_FAIL) return 2;
  return strstr(e.text, "result.json") ? 0 : 3;
}

static void what_cannot_be_written_is_a_sentence(void **state) {
  char below[256];
  pl_run_config config;
  pl_err e = {0};
  pl_json *document = toy_run("muon", 0.02, 7, &config);
  write_bytes(in_temp(state, "file", below), "x", 1);
  assert_int_equal(pl_run_create(below, run_id, &config, &e), PL_FAIL);
  assert_says(&e, below);
  e = (pl_err){0};
  bool taken = true;
  assert_int_equal(pl_run_claim(below, run_id, &taken, &e), PL_FAIL);
  assert_false(taken);
  assert_says(&e, "claim");
  make_run(state);
  assert_int_equal(pl_run_write_result(*state, run_id, PL_RUN_STOPPED, NULL, NULL, NULL), PL_OK);
  assert_int_equal(fork_all(1, write_without_room, *state), 0);
  assert_state(state, PL_RUN_STOPPED); /* the old result is whole */
  pl_json_release(document);
}

#define IN_TEMP(test) cmocka_unit_test_setup_teardown(test, make_temp, remove_temp)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_TEMP(paths_are_short_and_flat),
      IN_TEMP(config_is_written_once_and_reads_back),
      IN_TEMP(states_follow_the_folder),
      IN_TEMP(an_attempt_without_a_result_is_lost),
      IN_TEMP(the_next_claim_removes_leftovers),
      IN_TEMP(a_live_claim_is_kept_and_only_its_owner_releases),
      IN_TEMP(only_what_is_known_to_be_gone_is_dead),
      IN_TEMP(one_of_many_takers_wins),
      IN_TEMP(never_two_holders_at_once),
      IN_TEMP(a_taker_that_died_is_followed),
      IN_TEMP(result_reads_back),
      IN_TEMP(markers_move),
      IN_TEMP(what_cannot_be_written_is_a_sentence),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
