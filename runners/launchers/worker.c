#include "runners/launchers/worker.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runners/run_one.h"
#include "runners/signals.h"

enum { MOST_RUNS = 256 }; /* of a process */

typedef struct order {
  size_t job, place;
} order;

typedef struct notice {
  pid_t parent;
  pl_trained_flag *trained;
} notice;

/* In the worker. What the parent waits for is the signal of an ended child. */
static void tell_trained(void *self) {
  const notice *n = self;
  *n->trained = 1;
  kill(n->parent, SIGCHLD);
}

static void prepare(const pl_workshop *shop, pid_t parent) {
  setpgid(0, 0); /* the terminal's Ctrl-C goes to the parent alone, which passes it on once */
  pl_signals_install(true);
  if (shop->args->under_slurm) pl_signals_be_patient();
  sigprocmask(SIG_SETMASK, &shop->before, NULL);
  pl_signals_let_through();
  prctl(PR_SET_PDEATHSIG, SIGTERM); /* a killed parent leaves checkpointed runs, not orphans */
  if (getppid() != parent) _exit(PL_STOPPED);
}

static void go_to(const pl_workshop *shop, size_t place) {
  if (shop->cpus[place] >= 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)shop->cpus[place], &set);
    sched_setaffinity(0, sizeof set, &set);
  }
  pl_gpus_choose(shop->gpus, place);
}

static pl_worker_report train(const pl_workshop *shop, const pl_job *job, pl_h5 *blank, notice *n) {
  pl_run_one_args args = {.sweep_dir = shop->args->dir,
                          .data_root = shop->args->data_root,
                          .id = job->id,
                          .own_log = true,
                          .wait = shop->args->under_slurm,
                          .max_attempts = shop->args->max_attempts,
                          .blank = blank,
                          .origin = shop->origin,
                          .note = shop->args->note,
                          .stop = pl_signals_stop(),
                          .trained = tell_trained,
                          .trained_self = n};
  pl_worker_report report = {.code = PL_OK};
  pl_run_one_result result;
  pl_err e = {0};
  if (pl_run_one(&args, &result, &e) != PL_OK)
    report.code = PL_FAIL;
  else if (result.elsewhere)
    report.code = PL_WORKER_ELSEWHERE;
  else if (result.state == PL_RUN_STOPPED || result.state == PL_RUN_CANCELLED)
    report.code = PL_STOPPED;
  memcpy(report.sentence, e.text, sizeof e.text);
  return report;
}

/* False: there will be none any more. */
static bool next_order(int line, order *o) {
  while (*pl_signals_stop() == 0) {
    const ssize_t got = recv(line, o, sizeof *o, 0);
    if (got == (ssize_t)sizeof *o) return true;
    if (got >= 0 || errno != EINTR) break;
  }
  return false;
}

static _Noreturn void work(const pl_workshop *shop, int line, pid_t parent, pl_trained_flag *trained) {
  notice n = {.parent = parent, .trained = trained};
  pl_h5 *blank = shop->blank;
  order o;
  prepare(shop, parent);
  for (size_t runs = 0; next_order(line, &o); runs++) {
    const pl_job *job = &shop->args->jobs[o.job];
    go_to(shop, o.place);
    pl_worker_report report = train(shop, job, blank, &n);
    report.last = report.code != PL_OK || job->on_gpu || runs + 1 == MOST_RUNS;
    blank = NULL;
    if (send(line, &report, sizeof report, MSG_NOSIGNAL) != (ssize_t)sizeof report) _exit(report.code);
    kill(parent, SIGCHLD);
    if (report.last) break;
  }
  _exit(0);
}

pl_status pl_worker_start(const pl_workshop *shop, const pl_worker *others, size_t count, pl_worker *w, pl_err *e) {
  int ends[2];
  sigset_t before;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return pl_fail(e, PL_FAIL, "a socket to a process cannot be made: %s", strerror(errno));
  const pid_t parent = getpid();
  fflush(NULL);
  pl_signals_hold(&before);
  const pid_t pid = fork();
  if (pid == 0) {
    for (size_t i = 0; i < count; i++)
      if (others[i].pid != 0) close(others[i].line);
    close(ends[0]);
    work(shop, ends[1], parent, w->trained);
  }
  const int reason = errno;
  sigprocmask(SIG_SETMASK, &before, NULL);
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return pl_fail(e, PL_FAIL, "a process for runs cannot be started: %s", strerror(reason));
  }
  w->pid = pid;
  w->line = ends[0];
  return PL_OK;
}

bool pl_worker_order(pl_worker *w, size_t job, size_t place) {
  const order o = {.job = job, .place = place};
  *w->trained = 0;
  return send(w->line, &o, sizeof o, MSG_NOSIGNAL) == (ssize_t)sizeof o;
}

bool pl_worker_reported(pl_worker *w, pl_worker_report *out) {
  return recv(w->line, out, sizeof *out, MSG_DONTWAIT) == (ssize_t)sizeof *out;
}

void pl_worker_dismiss(pl_worker *w) { shutdown(w->line, SHUT_WR); }
