/* The local pool and single runs on a real result directory: what is left when runs crash, fail or were done before. */
#include "results_help.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "results/catalog.h"
#include "runners/launchers/cpus.h"
#include "runners/launchers/local.h"
#include "runners/plan.h"
#include "runners/progress.h"
#include "runners/run_one.h"

static const volatile sig_atomic_t go_on = 0;

/* A plan for a sweep of a quadratic in the folder of the test, frozen. */
static void make_plan(void **state, const char *steps, const char *seeds, pl_plan *out) {
  static char sweep[256], dir[256];
  char text[512];
  pl_err e = {0};
  int length =
      snprintf(text, sizeof text,
               "{\"name\": \"pool\", \"base\": {\"model\": {\"type\": \"quadratic\", \"dim\": 8, \"noise\": 0.1}, "
               "\"optimizer\": \"sgd\", \"train\": {\"steps\": %s, \"log_every\": 7, \"checkpoint_every\": 50}}, "
               "\"seeds\": %s}",
               steps, seeds);
  in_temp(state, "out", dir);
  write_bytes(in_temp(state, "sweep.json", sweep), text, (size_t)length);
  const pl_options o = {.output = dir, .max_runs = 1000};
  if (pl_plan_make(&o, sweep, out, &e) != PL_OK || pl_plan_freeze(out, &e) != PL_OK) fail_msg("%s", e.text);
}

static pl_local_result run_plan(pl_plan *p, int slots, bool fail_fast) {
  pl_local_result r;
  pl_err e = {0};
  const pl_local_args args = {.dir = p->dir,
                              .data_root = p->data_root,
                              .jobs = p->jobs,
                              .count = p->count,
                              .slots = slots,
                              .fail_fast = fail_fast,
                              .quiet = true};
  if (pl_local_run(&args, &r, &e) != PL_OK) fail_msg("%s", e.text);
  return r;
}

static pl_result result_of(const pl_plan *p, size_t job) {
  pl_result r;
  pl_err e = {0};
  if (pl_run_read_result(p->dir, p->jobs[job].id, &r, &e) != PL_OK) fail_msg("no result: %s", e.text);
  return r;
}

static char *file_of(const pl_plan *p, size_t job, const char *file) {
  char *path;
  assert_int_equal(pl_run_path(p->dir, p->jobs[job].id, file, &path, NULL), PL_OK);
  return path;
}

/* Parents that ignore SIGCHLD hand that down; without care no child would ever be seen to end. */
static void an_ignored_sigchld_is_no_hindrance(void **state) {
  pl_plan p;
  make_plan(state, "20", "[0, 1, 2, 3, 4, 5]", &p);
  signal(SIGCHLD, SIG_IGN);
  pl_local_result r = run_plan(&p, 4, false);
  signal(SIGCHLD, SIG_DFL);
  assert_int_equal(r.done, 6);
  assert_int_equal(r.not_started, 0);
  for (size_t i = 0; i < 6; i++) assert_int_equal(result_of(&p, i).state, PL_RUN_DONE);
  pl_plan_free(&p);
}

/* The first child of a process, waited for. */
static pid_t child_of(pid_t parent) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task/%d/children", parent, parent);
  for (int i = 0; i < 2000; i++, usleep(5000)) {
    int child = 0;
    FILE *file = fopen(path, "r");
    bool found = file && fscanf(file, "%d", &child) == 1;
    if (file) fclose(file);
    if (found) return child;
  }
  fail_msg("no child of %d", parent);
  return 0;
}

static bool is_manifest(const char *name) {
  size_t length = strlen(name);
  return length > 5 && strcmp(name + length - 5, ".ckpt") == 0 && !strstr(name, ".stage-");
}

static void wait_for_file(const char *path) {
  for (int i = 0; i < 2000 && !pl_path_exists(path); i++) usleep(5000);
  assert_true(pl_path_exists(path));
}

/* The parent says what became of a killed run; run again it goes on from its checkpoint, and meta.json knows the step
 * although the curve has a point at every seventh only. */
static void a_killed_run_is_failed_and_goes_on(void **state) {
  pl_plan p;
  make_plan(state, "2000000", "[0]", &p);
  fflush(NULL);
  pid_t pool = fork();
  if (pool == 0) {
    pl_local_result r = run_plan(&p, 1, false);
    _exit(r.failed == 1 && r.done == 0 && p.jobs[0].state == PL_RUN_FAILED ? 0 : 1);
  }
  char *checkpoint = file_of(&p, 0, "ckpt"), *meta = file_of(&p, 0, "meta.json"), *leftover;
  wait_for_file(meta);
  for (bool any = false; !any; usleep(2000)) {
    DIR *folder = opendir(checkpoint);
    for (struct dirent *d = folder ? readdir(folder) : NULL; d; d = readdir(folder))
      any = any || is_manifest(d->d_name);
    if (folder) closedir(folder);
  }
  pid_t run = child_of(pool);
  char name[64];
  snprintf(name, sizeof name, "curves.h5.tmp.%d", run);
  leftover = file_of(&p, 0, name);
  write_bytes(leftover, "half", 4);
  int status;
  assert_int_equal(kill(run, SIGKILL), 0);
  assert_int_equal(waitpid(pool, &status, 0), pool);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  pl_result r = result_of(&p, 0);
  assert_int_equal(r.state, PL_RUN_FAILED);
  assert_int_equal(r.attempts, 1);
  assert_non_null(strstr(r.error, "its process ended by signal 9"));
  assert_true(isnan(r.outcome.final_val_loss) && isnan(r.outcome.initial_val_loss)); /* no figures that look real */
  assert_int_equal(pl_run_state_of(p.dir, p.jobs[0].id), PL_RUN_FAILED);

  /* Stopped at once, which is enough to see where it began. */
  static const volatile sig_atomic_t stop = SIGTERM;
  pl_run_one_result out;
  pl_err e = {0};
  const pl_run_one_args args = {.sweep_dir = p.dir, .id = p.jobs[0].id, .stop = &stop};
  if (pl_run_one(&args, &out, &e) != PL_OK) fail_msg("%s", e.text);
  assert_int_equal(out.state, PL_RUN_STOPPED);
  assert_true(out.outcome.resumed_from >= 50 && out.outcome.resumed_from % 50 == 0);
  assert_false(pl_path_exists(leftover));
  pl_free(leftover);
  pl_free(meta);
  pl_free(checkpoint);
  pl_plan_free(&p);
}

static void stop_at_33(void *self, int64_t step, int64_t steps, double train_loss, double val_loss) {
  (void)steps, (void)train_loss, (void)val_loss;
  if (step == 33) *(volatile sig_atomic_t *)self = SIGTERM;
}

static void the_start_is_known_between_points(void **state) {
  pl_plan p;
  pl_err e = {0};
  volatile sig_atomic_t stop = 0;
  pl_run_one_result out;
  make_plan(state, "60", "[0]", &p);
  const pl_run_one_args first = {.sweep_dir = p.dir,
                                 .id = p.jobs[0].id,
                                 .stop = &stop,
                                 .progress = stop_at_33,
                                 .progress_self = (void *)(uintptr_t)&stop};
  assert_int_equal(pl_run_one(&first, &out, &e), PL_OK);
  assert_int_equal(out.state, PL_RUN_STOPPED);
  assert_int_equal(out.outcome.steps, 33); /* the next point is 35 */
  const pl_run_one_args second = {.sweep_dir = p.dir, .id = p.jobs[0].id, .stop = &go_on};
  assert_int_equal(pl_run_one(&second, &out, &e), PL_OK);
  assert_int_equal(out.state, PL_RUN_DONE);
  char *path = file_of(&p, 0, "meta.json");
  pl_json *meta;
  assert_int_equal(pl_json_read(path, &meta, &e), PL_OK);
  const pl_json *attempts = pl_json_get(meta, "attempts");
  const pl_json *last = pl_json_at(attempts, pl_json_size(attempts) - 1);
  assert_int_equal(pl_json_get_int(last, "start_step", -1), 33);
  pl_json_release(meta);
  pl_free(path);
  pl_plan_free(&p);
}

/* The newest change of any file of a run, and how many there are. */
static struct timespec newest(const char *folder, size_t *count) {
  struct timespec out = {0};
  DIR *entries = opendir(folder);
  assert_non_null(entries);
  *count = 0;
  for (struct dirent *d = readdir(entries); d; d = readdir(entries), ++*count) {
    struct stat info;
    assert_int_equal(fstatat(dirfd(entries), d->d_name, &info, 0), 0);
    if (strcmp(d->d_name, "..") == 0) continue;
    if (info.st_mtim.tv_sec > out.tv_sec || (info.st_mtim.tv_sec == out.tv_sec && info.st_mtim.tv_nsec > out.tv_nsec))
      out = info.st_mtim;
  }
  closedir(entries);
  return out;
}

static void a_done_run_is_never_touched_again(void **state) {
  pl_plan p;
  pl_run_one_result out;
  pl_err e = {0};
  size_t files, files_after;
  make_plan(state, "20", "[0]", &p);
  assert_int_equal(run_plan(&p, 1, false).done, 1);
  char *folder = file_of(&p, 0, "");
  struct timespec before = newest(folder, &files);
  usleep(20000);
  const pl_run_one_args args = {.sweep_dir = p.dir, .id = p.jobs[0].id, .stop = &go_on};
  assert_int_equal(pl_run_one(&args, &out, &e), PL_OK);
  assert_int_equal(out.state, PL_RUN_DONE);
  assert_int_equal(out.outcome.steps, 20);
  struct timespec after = newest(folder, &files_after);
  assert_int_equal(files_after, files);
  assert_true(before.tv_sec == after.tv_sec && before.tv_nsec == after.tv_nsec);
  pl_free(folder);
  pl_plan_free(&p);
}

static void a_failed_run_has_no_figures_and_can_stop_the_rest(void **state) {
  pl_plan p;
  make_plan(state, "20", "[0, 1, 2, 3]", &p);
  char *config = file_of(&p, 0, "config.json");
  write_bytes(config, "{", 1);
  pl_local_result r = run_plan(&p, 1, true);
  assert_true(r.failed == 1 && r.done == 0 && r.not_started == 3);
  pl_result failed = result_of(&p, 0);
  assert_int_equal(failed.state, PL_RUN_FAILED);
  assert_non_null(strstr(failed.error, "config.json"));
  assert_true(isnan(failed.outcome.final_val_loss) && isnan(failed.outcome.best_val_loss));
  r = run_plan(&p, 2, false);
  assert_true(r.failed == 1 && r.done == 3 && r.not_started == 0);
  pl_free(config);
  pl_plan_free(&p);
}

/* Four at once on two devices: each process sees one, by the name that it had. */
static void devices_are_given_in_turn(void **state) {
  static const char *const lists[] = {"2,5", "GPU-8a5,MIG-GPU-1/3/0", "7", NULL};
  pl_plan p;
  make_plan(state, "20", "[0, 1, 2, 3]", &p);
  for (size_t k = 0; lists[k]; k++) {
    int seen[2] = {0};
    setenv("CUDA_VISIBLE_DEVICES", lists[k], 1);
    for (size_t i = 0; i < p.count; i++) {
      char *result = file_of(&p, i, "result.json");
      unlink(result);
      pl_free(result);
      p.jobs[i].state = PL_RUN_PENDING;
    }
    assert_int_equal(run_plan(&p, 4, false).done, 4);
    for (size_t i = 0; i < p.count; i++) {
      char *path = file_of(&p, i, "meta.json");
      pl_json *meta;
      assert_int_equal(pl_json_read(path, &meta, NULL), PL_OK);
      const pl_json *attempts = pl_json_get(meta, "attempts"), *last = pl_json_at(attempts, pl_json_size(attempts) - 1);
      const char *device = pl_json_get_string(pl_json_get(last, "env"), "CUDA_VISIBLE_DEVICES", "");
      size_t first = strcspn(lists[k], ",");
      bool is_first = strlen(device) == first && strncmp(device, lists[k], first) == 0;
      if (!is_first && (!strchr(lists[k], ',') || strcmp(device, strchr(lists[k], ',') + 1) != 0))
        fail_msg("%s", device);
      seen[is_first ? 0 : 1]++;
      pl_json_release(meta);
      pl_free(path);
    }
    assert_int_equal(seen[0], strchr(lists[k], ',') ? 2 : 4);
  }
  unsetenv("CUDA_VISIBLE_DEVICES");
  pl_plan_free(&p);
}

static void die_at(void *self, int64_t step, int64_t steps, double train_loss, double val_loss) {
  (void)steps, (void)train_loss, (void)val_loss;
  if (step == *(const int64_t *)self) raise(SIGKILL);
}

/* One attempt in a process of its own, killed at `step`; its exit status, -1 when it was killed. */
static int attempt(const pl_plan *p, int64_t step, pl_err *e) {
  int ends[2], status;
  assert_int_equal(pipe(ends), 0);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    pl_run_one_result out;
    const pl_run_one_args args = {.sweep_dir = p->dir,
                                  .id = p->jobs[0].id,
                                  .stop = &go_on,
                                  .max_attempts = 4,
                                  .progress = die_at,
                                  .progress_self = &step};
    int st = pl_run_one(&args, &out, e);
    (void)!write(ends[1], e, sizeof *e);
    _exit(st);
  }
  close(ends[1]);
  *e = (pl_err){0};
  (void)!read(ends[0], e, sizeof *e);
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Four attempts that end before their first checkpoint are enough; with a checkpoint each there may be any number. */
static void attempts_without_progress_end(void **state) {
  pl_plan p;
  pl_err e = {0};
  make_plan(state, "700", "[0]", &p); /* a checkpoint at every 50th */
  for (int i = 0; i < 4; i++) assert_int_equal(attempt(&p, 30, &e), -1);
  assert_int_equal(attempt(&p, 30, &e), PL_FAIL);
  assert_string_equal(e.text, "no progress in 4 attempts (at step 0); retry after finding out why");
  pl_result r = result_of(&p, 0);
  assert_int_equal(r.state, PL_RUN_FAILED);
  assert_string_equal(r.error, e.text);
  assert_int_equal(r.attempts, 4);
  assert_int_equal(pl_run_revive(p.dir, p.jobs[0].id, &e), PL_OK);
  for (int64_t step = 60; step < 700; step += 50) assert_int_equal(attempt(&p, step, &e), -1);
  for (int i = 0; i < 4; i++) assert_int_equal(attempt(&p, 670, &e), -1);
  assert_int_equal(attempt(&p, 670, &e), PL_FAIL);
  assert_string_equal(e.text, "no progress in 4 attempts (at step 650); retry after finding out why");
  assert_int_equal(pl_run_revive(p.dir, p.jobs[0].id, &e), PL_OK);
  assert_int_equal(attempt(&p, -1, &e), PL_OK);
  assert_int_equal(result_of(&p, 0).state, PL_RUN_DONE);
  char *counted = file_of(&p, 0, "restarts");
  assert_false(pl_path_exists(counted));
  pl_free(counted);
  pl_plan_free(&p);
}

static void the_tightest_quota_counts(void **state) {
  char path[256];
  static const struct {
    const char *folder, *quota;
  } groups[] = {{"cg", NULL}, {"cg/a", "max 100000\n"}, {"cg/a/b", "250000 100000\n"}, {"cg/a/b/c", "800000 100000\n"}};
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
    char folder[64];
    assert_int_equal(mkdir(in_temp(state, groups[i].folder, path), 0777), 0);
    snprintf(folder, sizeof folder, "%s/cpu.max", groups[i].folder);
    if (groups[i].quota) write_bytes(in_temp(state, folder, path), groups[i].quota, strlen(groups[i].quota));
  }
  in_temp(state, "cg", path);
  assert_true(isinf(pl_cpus_quota(path, "/")));
  assert_true(isinf(pl_cpus_quota(path, "/a")));
  assert_true(pl_cpus_quota(path, "/a/b") == 2.5);
  assert_true(pl_cpus_quota(path, "/a/b/c") == 2.5);
  assert_true(pl_cpus_quota(path, "/a/b/c/gone") == 2.5);
  cpu_set_t allowed;
  size_t usable = pl_cpus_usable(&allowed);
  assert_true(usable >= 1 && usable <= (size_t)CPU_COUNT(&allowed));
}

/* Draws the bar on a terminal of so many columns, in a process of its own; what arrived there. */
static void draw_on(unsigned short columns, const char *words, char *out, size_t size) {
  int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
  int end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  const struct winsize window = {.ws_row = 24, .ws_col = columns};
  assert_true(end >= 0 && ioctl(end, TIOCSWINSZ, &window) == 0);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    dup2(end, STDERR_FILENO);
    pl_progress p = pl_progress_begin(false);
    p.last -= 100;
    p.started -= 100;
    pl_progress_show(&p, 0.5, words);
    _exit(0);
  }
  assert_int_equal(waitpid(child, NULL, 0), child);
  ssize_t got = read(terminal, out, size - 1);
  assert_true(got > 0);
  out[got] = '\0';
  close(end);
  close(terminal);
}

/* The remaining time is what people look for: it is there on a terminal of 80 columns, the bar gives way. */
static void the_bar_leaves_room_for_the_words(void **state) {
  (void)state;
  static const char words[] = "12/57 runs, 2 running, 1 failed, 222k tokens/s";
  char shown[512];
  for (unsigned short columns = 60; columns <= 160; columns = (unsigned short)(columns + 20)) {
    draw_on(columns, words, shown, sizeof shown);
    char *end = strstr(shown, "\033[K");
    assert_non_null(end);
    if (!strstr(shown, "50% 12/57") || !strstr(shown, "222k tokens/s, 01:40 left")) {
      if (columns >= 80) fail_msg("%u columns: %s", columns, shown);
      continue;
    }
    assert_int_equal(strstr(shown, "[#") != NULL, columns >= 80);
    assert_true(end - shown - 1 < columns); /* without the return before it */
  }
}

#define IN_TEMP(test) cmocka_unit_test_setup_teardown(test, make_temp, remove_temp)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_TEMP(an_ignored_sigchld_is_no_hindrance),
      IN_TEMP(a_killed_run_is_failed_and_goes_on),
      IN_TEMP(the_start_is_known_between_points),
      IN_TEMP(a_done_run_is_never_touched_again),
      IN_TEMP(a_failed_run_has_no_figures_and_can_stop_the_rest),
      IN_TEMP(devices_are_given_in_turn),
      IN_TEMP(attempts_without_progress_end),
      IN_TEMP(the_tightest_quota_counts),
      cmocka_unit_test(the_bar_leaves_room_for_the_words),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
