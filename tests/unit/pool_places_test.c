/* Where the runs of a local pool go: which CPU, in which order, and when a place is free again. */
#include "results_help.h"

#include <dirent.h>
#include <sched.h>

#include "runners/launchers/cores.h"
#include "runners/launchers/cpus.h"
#include "runners/launchers/local.h"
#include "runners/plan.h"
#include "runners/run_one.h"

enum { MOST = 1024 };

static void make_plan(void **state, const char *steps, pl_plan *out) {
  static char sweep[256], dir[256];
  char text[512];
  pl_err e = {0};
  int length =
      snprintf(text, sizeof text,
               "{\"name\": \"places\", \"base\": {\"model\": {\"type\": \"quadratic\", \"dim\": 8, \"noise\": 0.1}, "
               "\"optimizer\": \"sgd\", \"train\": {\"steps\": %s}}, \"seeds\": [0, 1, 2, 3]}",
               steps);
  in_temp(state, "out", dir);
  write_bytes(in_temp(state, "sweep.json", sweep), text, (size_t)length);
  const pl_options o = {.output = dir, .max_runs = 1000};
  if (pl_plan_make(&o, sweep, out, &e) != PL_OK || pl_plan_freeze(out, &e) != PL_OK) fail_msg("%s", e.text);
}

/* On a machine of more CPUs than MOST the rest is left alone. */
static size_t own_cpus(cpu_set_t *allowed) {
  assert_int_equal(sched_getaffinity(0, sizeof *allowed, allowed), 0);
  return (size_t)CPU_COUNT(allowed) < MOST ? (size_t)CPU_COUNT(allowed) : MOST;
}

static void each_cpu_is_held_once(void **state) {
  char path[256];
  cpu_set_t allowed, seen;
  int cpus[MOST], others[MOST];
  in_temp(state, "cpus", path);
  const size_t count = own_cpus(&allowed);
  CPU_ZERO(&seen);
  int first = pl_cores_take(path, &allowed, cpus, count);
  assert_true(first >= 0);
  for (size_t i = 0; i < count; i++) {
    assert_true(cpus[i] >= 0 && CPU_ISSET((size_t)cpus[i], &allowed) && !CPU_ISSET((size_t)cpus[i], &seen));
    CPU_SET((size_t)cpus[i], &seen);
  }
  int second = pl_cores_take(path, &allowed, others, count);
  for (size_t i = 0; i < count; i++) assert_int_equal(others[i], -1);
  close(first);
  int third = pl_cores_take(path, &allowed, others, 1);
  assert_int_equal(others[0], cpus[0]);
  close(second);
  close(third);
}

static void without_the_file_nothing_is_held(void **state) {
  char path[256];
  cpu_set_t allowed;
  int cpus[MOST];
  const size_t count = own_cpus(&allowed);
  assert_int_equal(pl_cores_take(in_temp(state, "missing/cpus", path), &allowed, cpus, count), -1);
  for (size_t i = 0; i < count; i++) assert_int_equal(cpus[i], -1);
}

/* The processes of a pool, waited for until there are `count`. */
static void children_of(pid_t parent, size_t count, pid_t *out) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task/%d/children", parent, parent);
  for (int i = 0; i < 2000; i++, usleep(5000)) {
    size_t found = 0;
    FILE *file = fopen(path, "r");
    while (file && found < count && fscanf(file, "%d", &out[found]) == 1) found++;
    if (file) fclose(file);
    if (found == count) return;
  }
  fail_msg("no %zu processes of pool %d", count, parent);
}

/* A process sets its own CPU after the fork: waited for where that is to come. */
static cpu_set_t cpus_of(pid_t pid, int expected) {
  cpu_set_t set;
  for (int i = 0; i < 2000; i++, usleep(5000)) {
    assert_int_equal(sched_getaffinity(pid, sizeof set, &set), 0);
    if (CPU_COUNT(&set) == expected) break;
  }
  return set;
}

/* Starts a pool of long runs, looks at the CPUs of its processes, ends it. */
static void look_at_pool(pl_plan *p, pl_local_args args, bool pinned) {
  pid_t pids[4];
  cpu_set_t allowed, seen;
  const int count = (int)own_cpus(&allowed);
  fflush(NULL);
  pid_t pool = fork();
  if (pool == 0) {
    pl_local_result r;
    pl_err e = {0};
    _exit(pl_local_run(&args, &r, &e) == PL_OK ? 0 : 1);
  }
  children_of(pool, (size_t)args.slots, pids);
  CPU_ZERO(&seen);
  for (int i = 0; i < args.slots; i++) {
    cpu_set_t set = cpus_of(pids[i], pinned ? 1 : count);
    CPU_AND(&set, &set, &allowed);
    assert_int_equal(CPU_COUNT(&set), pinned ? 1 : count);
    CPU_OR(&seen, &seen, &set);
  }
  assert_int_equal(CPU_COUNT(&seen), pinned ? args.slots : count);
  int status;
  assert_int_equal(kill(pool, SIGTERM), 0);
  assert_int_equal(waitpid(pool, &status, 0), pool);
  assert_int_equal(status, 0);
  for (size_t i = 0; i < p->count; i++) p->jobs[i].state = pl_run_state_of(p->dir, p->jobs[i].id);
}

static void runs_have_a_cpu_each_where_all_fit(void **state) {
  pl_plan p;
  char path[256];
  cpu_set_t allowed;
  int held;
  make_plan(state, "100000000", &p);
  const size_t usable = pl_cpus_usable(&allowed), count = own_cpus(&allowed);
  const bool alone = usable == count; /* otherwise a quota gives some of them to others */
  pl_local_args args = {.dir = p.dir,
                        .data_root = p.data_root,
                        .jobs = p.jobs,
                        .count = p.count,
                        .slots = count < 4 ? (int)count : 4,
                        .cores = in_temp(state, "cpus", path),
                        .quiet = true};
  look_at_pool(&p, args, alone);
  args.slots = 1;
  look_at_pool(&p, args, alone);
  args.no_pin = true;
  look_at_pool(&p, args, count == 1 && alone);
  args.no_pin = false;
  p.jobs[3].threads = 2; /* they would share the CPU of one */
  look_at_pool(&p, args, count == 1 && alone);
  p.jobs[3].threads = 1;
  if (count < 4) { /* more runs than CPUs */
    args.slots = 4;
    look_at_pool(&p, args, false);
  }
  if (alone && count > 1) { /* another pool has one of them: the only run gets another one */
    int holder = pl_cores_take(path, &allowed, &held, 1);
    args.slots = 1;
    look_at_pool(&p, args, true);
    close(holder);
  }
  pl_plan_free(&p);
}

/* The first one that is started fails and stops the rest, again and again. */
static void the_longest_is_first_and_equals_stay_in_order(void **state) {
  static const double costs[] = {1, 3, 2, 3};
  static const size_t order[] = {1, 3, 2, 0};
  pl_plan p;
  make_plan(state, "20", &p);
  for (size_t i = 0; i < 4; i++) {
    char *config;
    assert_int_equal(pl_run_path(p.dir, p.jobs[i].id, "config.json", &config, NULL), PL_OK);
    write_bytes(config, "{", 1);
    pl_free(config);
    p.jobs[i].cost = costs[i];
  }
  for (size_t k = 0; k < 4; k++) {
    pl_local_result r;
    pl_err e = {0};
    const pl_local_args args = {.dir = p.dir,
                                .data_root = p.data_root,
                                .jobs = p.jobs,
                                .count = p.count,
                                .slots = 1,
                                .no_pin = true,
                                .fail_fast = true,
                                .quiet = true};
    assert_int_equal(pl_local_run(&args, &r, &e), PL_OK);
    assert_int_equal(r.failed, 1);
    assert_int_equal(r.not_started, 3 - k);
    for (size_t i = 0; i < 4; i++) assert_int_equal(p.jobs[i].state == PL_RUN_FAILED, i == order[k]);
    p.jobs[order[k]].state = PL_RUN_DONE; /* not again */
  }
  pl_plan_free(&p);
}

typedef struct seen {
  const pl_plan *plan;
  int calls;
  bool result, claimed;
} seen;

static void on_trained(void *self) {
  seen *s = self;
  pl_result r;
  s->calls++;
  s->result = pl_run_read_result(s->plan->dir, s->plan->jobs[0].id, &r, NULL) == PL_OK;
  s->claimed = pl_run_state_of(s->plan->dir, s->plan->jobs[0].id) == PL_RUN_RUNNING;
}

/* A place is given up when all updates are made, before the run counts as done. */
static void a_run_says_when_it_has_trained(void **state) {
  static const volatile sig_atomic_t go_on = 0;
  pl_plan p;
  pl_run_one_result out;
  pl_err e = {0};
  seen s = {.plan = &p};
  make_plan(state, "20", &p);
  const pl_run_one_args args = {
      .sweep_dir = p.dir, .id = p.jobs[0].id, .stop = &go_on, .trained = on_trained, .trained_self = &s};
  if (pl_run_one(&args, &out, &e) != PL_OK) fail_msg("%s", e.text);
  assert_int_equal(out.state, PL_RUN_DONE);
  assert_int_equal(s.calls, 1);
  assert_true(s.claimed && !s.result);
  if (pl_run_one(&args, &out, &e) != PL_OK) fail_msg("%s", e.text); /* nothing to do */
  assert_int_equal(s.calls, 1);
  pl_plan_free(&p);
}

#define IN_TEMP(test) cmocka_unit_test_setup_teardown(test, make_temp, remove_temp)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_TEMP(each_cpu_is_held_once),
      IN_TEMP(without_the_file_nothing_is_held),
      IN_TEMP(runs_have_a_cpu_each_where_all_fit),
      IN_TEMP(the_longest_is_first_and_equals_stay_in_order),
      IN_TEMP(a_run_says_when_it_has_trained),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
