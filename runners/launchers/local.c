#include "runners/launchers/local.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/journal.h"
#include "runners/progress.h"
#include "runners/run_one.h"
#include "runners/signals.h"

enum { EXIT_ELSEWHERE = PL_NOTHING, POLL_MICROSECONDS = 50000, TAIL_LINES = 5 };

/* One place of the pool. */
typedef struct slot {
  pid_t pid; /* 0: free */
  int cpu;   /* -1: not pinned */
  pl_job *job;
  char *journal;
  int64_t first_step, step;
} slot;

typedef struct pool {
  const pl_local_args *args;
  slot *slots;
  size_t slot_count, running;
  pl_job **queue; /* open jobs, longest first */
  size_t queued, next;
  double total_cost, ended_cost;
  double tokens_ended, started;
  int forwarded; /* signals already passed on */
  pl_progress progress;
  pl_local_result *result;
} pool;

static int by_cost(const void *a, const void *b) {
  const pl_job *x = *(pl_job *const *)a, *y = *(pl_job *const *)b;
  if (x->cost != y->cost) return x->cost < y->cost ? 1 : -1;
  return x->index < y->index ? -1 : x->index > y->index;
}

static pl_status make_queue(pool *p, pl_err *e) {
  pl_plan *plan = p->args->plan;
  pl_status st = pl_alloc(plan->count, sizeof *p->queue, "the queue", &p->queue, e);
  if (st != PL_OK) return st;
  for (size_t i = 0; i < plan->count; i++) {
    if (!pl_job_is_open(&plan->jobs[i])) continue;
    p->queue[p->queued++] = &plan->jobs[i];
    p->total_cost += plan->jobs[i].cost;
  }
  qsort(p->queue, p->queued, sizeof *p->queue, by_cost);
  return PL_OK;
}

/* One slot per allowed CPU, each pinned to its own; more slots than CPUs are not pinned. */
static pl_status make_slots(pool *p, pl_err *e) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) CPU_SET(0, &allowed);
  size_t cpus = (size_t)CPU_COUNT(&allowed);
  p->slot_count = p->args->slots > 0 ? (size_t)p->args->slots : cpus;
  if (p->slot_count > p->queued && p->queued > 0) p->slot_count = p->queued;
  pl_status st = pl_alloc(p->slot_count, sizeof *p->slots, "the pool", &p->slots, e);
  if (st != PL_OK) return st;
  size_t cpu = 0;
  for (size_t i = 0; i < p->slot_count; i++) {
    p->slots[i].cpu = -1;
    if (p->slot_count > cpus) continue;
    while (!CPU_ISSET(cpu, &allowed)) cpu++;
    p->slots[i].cpu = (int)cpu++;
  }
  return PL_OK;
}

static _Noreturn void child(const pool *p, const slot *s, pid_t parent) {
  pl_signals_reset();
  setpgid(0, 0); /* the terminal's Ctrl-C goes to the parent alone, which passes it on once */
  pl_signals_install(true);
  prctl(PR_SET_PDEATHSIG, SIGTERM); /* a killed parent leaves checkpointed runs, not orphans */
  if (getppid() != parent) _exit(PL_STOPPED);
  if (s->cpu >= 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)s->cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
  }
  pl_run_one_args args = {.sweep_dir = p->args->plan->dir,
                          .data_root = p->args->plan->data_root,
                          .id = s->job->id,
                          .own_log = true,
                          .stop = pl_signals_stop()};
  pl_run_one_result result;
  pl_err e = {0};
  pl_status st = pl_run_one(&args, &result, &e);
  int code = st != PL_OK                      ? PL_FAIL
             : result.elsewhere               ? EXIT_ELSEWHERE
             : result.state == PL_RUN_STOPPED ? PL_STOPPED
                                              : 0;
  _exit(code);
}

static pl_status start(pool *p, slot *s, pl_job *job, pl_err *e) {
  s->job = job;
  pl_status st = pl_run_path(p->args->plan->dir, job->id, "journal", &s->journal, e);
  if (st != PL_OK) return st;
  s->first_step = pl_journal_last_step(s->journal);
  if (s->first_step < 0) s->first_step = 0;
  s->step = s->first_step;
  fflush(NULL);
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid == 0) child(p, s, parent);
  if (pid < 0) {
    pl_free(s->journal);
    s->journal = NULL;
    return pl_fail(e, PL_FAIL, "a process for run %" PRIu64 " cannot be started: %s", job->index, strerror(errno));
  }
  s->pid = pid;
  p->running++;
  return PL_OK;
}

/* The last lines of the run's newest log, indented. */
static void show_tail(pool *p, const pl_job *job) {
  pl_err ignored = {0};
  pl_result result;
  char name[64], *path = NULL, *text = NULL;
  size_t length = 0;
  if (pl_run_read_result(p->args->plan->dir, job->id, &result, &ignored) != PL_OK) return;
  pl_progress_line(&p->progress, "  %s", result.error);
  snprintf(name, sizeof name, "log.%" PRId64 ".txt", result.attempts);
  if (pl_run_path(p->args->plan->dir, job->id, name, &path, &ignored) == PL_OK &&
      pl_file_read(path, (size_t)64 << 20, &text, &length, &ignored) == PL_OK) {
    while (length > 0 && text[length - 1] == '\n') text[--length] = '\0';
    size_t from = length;
    for (int lines = 0; from > 0 && lines < TAIL_LINES; from--)
      if (text[from - 1] == '\n' && ++lines == TAIL_LINES) break;
    for (char *line = text + from, *save = NULL; (line = strtok_r(line, "\n", &save)) != NULL; line = NULL)
      pl_progress_line(&p->progress, "    | %s", line);
  }
  pl_free(text);
  pl_free(path);
}

/* A process that ended by a signal wrote no result; the parent does it. */
static void record_crash(const pool *p, const pl_job *job, int signal_number) {
  char text[160];
  pl_outcome nothing = {.end = PL_END_STOPPED, .first_bad_step = -1, .resumed_from = -1};
  pl_err ignored = {0};
  snprintf(text, sizeof text, "its process ended by signal %d (%s)", signal_number, strsignal(signal_number));
  (void)!pl_run_write_result(p->args->plan->dir, job->id, PL_RUN_FAILED, &nothing, text, &ignored);
}

static void say_end(pool *p, const pl_job *job, const char *what, double loss) {
  if (loss == loss)
    pl_progress_line(&p->progress, "run %" PRIu64 " %s, val loss %.4f: %s", job->index, what, loss, job->label);
  else
    pl_progress_line(&p->progress, "run %" PRIu64 " %s: %s", job->index, what, job->label);
}

static void count_end(pool *p, slot *s, int status) {
  pl_local_result *r = p->result;
  pl_job *job = s->job;
  bool crashed = WIFSIGNALED(status);
  int code = crashed ? -1 : WEXITSTATUS(status);
  double loss = (double)NAN;
  if (code == 0) {
    pl_result result;
    pl_err ignored = {0};
    bool diverged = false;
    if (pl_run_read_result(p->args->plan->dir, job->id, &result, &ignored) == PL_OK) {
      loss = result.outcome.final_val_loss;
      diverged = result.state == PL_RUN_DIVERGED;
    }
    job->state = diverged ? PL_RUN_DIVERGED : PL_RUN_DONE;
    *(diverged ? &r->diverged : &r->done) += 1;
    say_end(p, job, diverged ? "diverged" : "done", loss);
  } else if (code == PL_STOPPED || (crashed && r->signal != 0)) {
    job->state = PL_RUN_STOPPED;
    r->stopped++;
    say_end(p, job, "stopped", loss);
  } else if (code == EXIT_ELSEWHERE) {
    job->state = PL_RUN_RUNNING;
    r->elsewhere++;
    say_end(p, job, "is being run by another process", loss);
  } else {
    if (crashed) record_crash(p, job, WTERMSIG(status));
    job->state = PL_RUN_FAILED;
    r->failed++;
    say_end(p, job, "FAILED", loss);
    show_tail(p, job);
  }
}

static void reap(pool *p) {
  int status = 0;
  pid_t pid = 0;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    for (size_t i = 0; i < p->slot_count; i++) {
      slot *s = &p->slots[i];
      if (s->pid != pid) continue;
      count_end(p, s, status);
      p->ended_cost += s->job->cost;
      p->tokens_ended += (double)(s->job->steps - s->first_step) * (double)s->job->batch_tokens;
      pl_free(s->journal);
      s->journal = NULL;
      s->pid = 0;
      p->running--;
    }
  }
}

static void pass_signal_on(pool *p) {
  int asked = (int)*pl_signals_stop();
  if (asked == 0 || p->forwarded > 0) return;
  p->forwarded++;
  p->result->signal = asked;
  pl_progress_line(&p->progress, "stopping: %zu runs finish their update and checkpoint (once more to end now)",
                   p->running);
  for (size_t i = 0; i < p->slot_count; i++)
    if (p->slots[i].pid > 0) kill(p->slots[i].pid, SIGTERM);
}

static void show(pool *p) {
  double cost = p->ended_cost, tokens = p->tokens_ended;
  for (size_t i = 0; i < p->slot_count; i++) {
    slot *s = &p->slots[i];
    if (s->pid == 0) continue;
    int64_t step = pl_journal_last_step(s->journal);
    if (step > s->step) s->step = step;
    cost += s->job->cost * (double)s->step / (double)s->job->steps;
    tokens += (double)(s->step - s->first_step) * (double)s->job->batch_tokens;
  }
  const pl_local_result *r = p->result;
  char text[160], rate[16];
  pl_format_count(tokens / (pl_clock_seconds() - p->started + 1e-9), rate);
  size_t ended = r->done + r->diverged + r->failed + r->elsewhere + r->stopped;
  snprintf(text, sizeof text, "%zu/%zu runs, %zu running, %zu failed, %s tokens/s", ended, p->queued, p->running,
           r->failed, rate);
  pl_progress_show(&p->progress, p->total_cost > 0 ? cost / p->total_cost : 0, text);
}

static bool may_start(const pool *p) {
  return p->next < p->queued && *pl_signals_stop() == 0 && !(p->args->fail_fast && p->result->failed > 0);
}

static pl_status loop(pool *p, pl_err *e) {
  pl_status st = PL_OK;
  while (p->running > 0 || (st == PL_OK && may_start(p))) {
    for (size_t i = 0; i < p->slot_count && st == PL_OK && may_start(p); i++)
      if (p->slots[i].pid == 0) st = start(p, &p->slots[i], p->queue[p->next++], e);
    usleep(POLL_MICROSECONDS);
    pass_signal_on(p);
    reap(p);
    show(p);
  }
  return st;
}

pl_status pl_local_run(const pl_local_args *args, pl_local_result *out, pl_err *e) {
  *out = (pl_local_result){0};
  pool p = {.args = args, .result = out, .progress = pl_progress_begin(args->quiet), .started = pl_clock_seconds()};
  pl_status st = PL_OK;
  pl_signals_install(false);
  PL_TRY(make_queue(&p, e));
  PL_TRY(make_slots(&p, e));
  st = loop(&p, e);
  out->signal = (int)*pl_signals_stop();
  out->not_started = p.queued - p.next;
out:
  pl_progress_end(&p.progress);
  pl_free(p.queue);
  pl_free(p.slots);
  return st;
}
