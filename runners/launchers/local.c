#include "runners/launchers/local.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/curves_image.h"
#include "results/journal.h"
#include "runners/launchers/cores.h"
#include "runners/launchers/cpus.h"
#include "runners/progress.h"
#include "runners/run_one.h"
#include "runners/signals.h"

enum { EXIT_ELSEWHERE = PL_NOTHING, POLL_NANOSECONDS = 200000000, TAIL_LINES = 5 };

typedef volatile sig_atomic_t trained_flag;

/* A run that was started and has not ended. */
typedef struct slot {
  pid_t pid;    /* 0: free */
  size_t place; /* where it trains */
  int reason;   /* pipe from which a failed run's sentence is read */
  pl_job *job;
  char *journal;
  int64_t first_step, step;
} slot;

typedef struct pool {
  const pl_local_args *args;
  size_t places;  /* runs that train at the same time */
  size_t threads; /* of the run that has most */
  int *cpus;      /* of the places; -1: not pinned */
  size_t *last;   /* of the places: slot of the run that was started there last */
  int cores;      /* holds these CPUs, or -1 */
  slot *slots;    /* twice the places: those that wait for the disk have room beside those that train */
  size_t slot_count, running;
  trained_flag *trained; /* [slot_count], shared with the children: only files are left to be written */
  pl_job **queue;        /* open jobs, longest first */
  size_t queued, next;
  double total_cost, ended_cost;
  double tokens_ended, started;
  bool stopping;             /* the runs were told to stop */
  bool crowded, was_crowded; /* no process could be started beside those that run */
  sigset_t before;           /* signals that were blocked before the pool began */
  pl_origin origin;
  pl_h5 *blank; /* every child has its own copy */
  pl_progress progress;
  pl_local_result *result;
} pool;

static int by_cost(const void *a, const void *b) {
  const pl_job *x = *(pl_job *const *)a, *y = *(pl_job *const *)b;
  if (x->cost != y->cost) return x->cost < y->cost ? 1 : -1;
  return x->index < y->index ? -1 : x->index > y->index;
}

static pl_status make_queue(pool *p, pl_err *e) {
  const pl_local_args *a = p->args;
  pl_status st = pl_alloc(a->count, sizeof *p->queue, "the queue", &p->queue, e);
  if (st != PL_OK) return st;
  for (size_t i = 0; i < a->count; i++) {
    if (!pl_job_is_open(&a->jobs[i])) continue;
    p->queue[p->queued++] = &a->jobs[i];
    p->total_cost += a->jobs[i].cost;
    if (a->jobs[i].threads > (int64_t)p->threads) p->threads = (size_t)a->jobs[i].threads;
  }
  qsort(p->queue, p->queued, sizeof *p->queue, by_cost);
  return PL_OK;
}

/* Each place on a CPU of its own, unless others can be meant to have some of the CPUs that are allowed: where more are
 * allowed than may be kept busy, nobody says which. */
static void choose_cpus(pool *p, const cpu_set_t *allowed, size_t usable) {
  const size_t count = (size_t)CPU_COUNT(allowed);
  for (size_t i = 0; i < p->places; i++) p->cpus[i] = -1;
  if (!p->args->no_pin && p->threads == 1 && usable == count && p->places <= count)
    p->cores = pl_cores_take(p->args->cores != NULL ? p->args->cores : PL_CORES_FILE, allowed, p->cpus, p->places);
}

/* As many as there are usable CPUs, or groups of them for runs of several threads. */
static pl_status make_places(pool *p, pl_err *e) {
  cpu_set_t allowed;
  pl_status st = PL_OK;
  const size_t usable = pl_cpus_usable(&allowed);
  p->places = p->args->slots > 0 ? (size_t)p->args->slots : usable / p->threads;
  if (p->places == 0) p->places = 1;
  if (p->places > p->queued && p->queued > 0) p->places = p->queued;
  p->slot_count = 2 * p->places;
  PL_TRY(pl_alloc(p->places, sizeof *p->cpus, "the pool", &p->cpus, e));
  PL_TRY(pl_alloc(p->places, sizeof *p->last, "the pool", &p->last, e));
  PL_TRY(pl_alloc(p->slot_count, sizeof *p->slots, "the pool", &p->slots, e));
  void *shared =
      mmap(NULL, p->slot_count * sizeof *p->trained, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) PL_TRY(pl_fail(e, PL_FAIL, "the pool cannot be made: %s", strerror(errno)));
  p->trained = shared;
  choose_cpus(p, &allowed, usable);
out:
  return st;
}

static void free_places(pool *p) {
  if (p->trained != NULL) munmap((void *)(uintptr_t)p->trained, p->slot_count * sizeof *p->trained);
  if (p->cores >= 0) close(p->cores);
  pl_free(p->slots);
  pl_free(p->last);
  pl_free(p->cpus);
  pl_h5_free(p->blank);
}

/* The device of place `number` out of "2,5" or of any other names, in turn. */
static void choose_device(size_t number) {
  const char *list = getenv("CUDA_VISIBLE_DEVICES");
  char own[256];
  if (list == NULL || list[0] == '\0') return;
  size_t count = 1;
  for (const char *c = list; *c != '\0'; c++) count += *c == ',';
  for (number %= count; number > 0; number--) list = strchr(list, ',') + 1;
  int length = snprintf(own, sizeof own, "%.*s", (int)strcspn(list, ","), list);
  if (length > 0 && (size_t)length < sizeof own) setenv("CUDA_VISIBLE_DEVICES", own, 1);
}

typedef struct notice {
  pid_t parent;
  trained_flag *trained;
} notice;

/* In the child. What the parent waits for is the signal of an ended child. */
static void tell_trained(void *self) {
  const notice *n = self;
  *n->trained = 1;
  kill(n->parent, SIGCHLD);
}

static _Noreturn void child(const pool *p, const slot *s, pid_t parent, int reason) {
  setpgid(0, 0); /* the terminal's Ctrl-C goes to the parent alone, which passes it on once */
  pl_signals_install(true);
  if (p->args->under_slurm) pl_signals_be_patient();
  sigprocmask(SIG_SETMASK, &p->before, NULL);
  pl_signals_let_through();
  prctl(PR_SET_PDEATHSIG, SIGTERM); /* a killed parent leaves checkpointed runs, not orphans */
  if (getppid() != parent) _exit(PL_STOPPED);
  if (p->cpus[s->place] >= 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)p->cpus[s->place], &set);
    sched_setaffinity(0, sizeof set, &set);
  }
  choose_device(s->place);
  const notice trained = {.parent = parent, .trained = &p->trained[s - p->slots]};
  pl_run_one_args args = {.sweep_dir = p->args->dir,
                          .data_root = p->args->data_root,
                          .id = s->job->id,
                          .own_log = true,
                          .wait = p->args->under_slurm,
                          .max_attempts = p->args->max_attempts,
                          .blank = p->blank,
                          .origin = &p->origin,
                          .note = p->args->note,
                          .stop = pl_signals_stop(),
                          .trained = tell_trained,
                          .trained_self = (void *)(uintptr_t)&trained};
  pl_run_one_result result;
  pl_err e = {0};
  pl_status st = pl_run_one(&args, &result, &e);
  if (st != PL_OK) (void)!write(reason, e.text, strlen(e.text));
  bool stopped = result.state == PL_RUN_STOPPED || result.state == PL_RUN_CANCELLED;
  int code = st != PL_OK ? PL_FAIL : result.elsewhere ? EXIT_ELSEWHERE : stopped ? PL_STOPPED : 0;
  _exit(code);
}

static void free_slot(slot *s) {
  if (s->journal == NULL) return;
  close(s->reason);
  pl_free(s->journal);
  s->journal = NULL;
  s->pid = 0;
}

static pl_status start(pool *p, slot *s, size_t place, pl_job *job, pl_err *e) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return pl_fail(e, PL_FAIL, "a pipe from run %" PRIu64 " cannot be made: %s", job->index, strerror(errno));
  pl_status st = pl_run_path(p->args->dir, job->id, "journal", &s->journal, e);
  if (st == PL_OK) {
    *s = (slot){.place = place, .reason = ends[0], .job = job, .journal = s->journal};
    p->trained[s - p->slots] = 0;
    s->first_step = pl_journal_last_step(s->journal);
    if (s->first_step < 0) s->first_step = 0;
    s->step = s->first_step;
    fflush(NULL);
    pid_t parent = getpid();
    sigset_t before;
    pl_signals_hold(&before);
    s->pid = fork();
    if (s->pid == 0) child(p, s, parent, ends[1]);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (s->pid < 0)
      st = pl_fail(e, PL_FAIL, "a process for run %" PRIu64 " cannot be started: %s", job->index, strerror(errno));
  } else {
    close(ends[0]);
  }
  close(ends[1]);
  if (st != PL_OK) {
    free_slot(s);
    return st;
  }
  p->running++;
  return PL_OK;
}

/* The last lines of the run's newest log, indented, but not the sentence that is shown already. */
static void show_tail(pool *p, const slot *s, const char *sentence) {
  char name[64], *path = NULL, *text = NULL;
  size_t length = 0;
  snprintf(name, sizeof name, "log.%" PRId64 ".txt", pl_journal_last_attempt(s->journal));
  if (pl_run_path(p->args->dir, s->job->id, name, &path, NULL) == PL_OK &&
      pl_file_read(path, (size_t)64 << 20, &text, &length, NULL) == PL_OK) {
    while (length > 0 && text[length - 1] == '\n') text[--length] = '\0';
    size_t from = length;
    for (int lines = 0; from > 0; from--)
      if (text[from - 1] == '\n' && ++lines == TAIL_LINES) break;
    for (char *line = text + from, *save = NULL; (line = strtok_r(line, "\n", &save)) != NULL; line = NULL)
      if (strcmp(line, sentence) != 0) pl_progress_line(&p->progress, "    | %s", line);
  }
  pl_free(text);
  pl_free(path);
}

/* A process that ended by a signal wrote no result, so the parent does, under the claim: another process may have taken
 * the run over by now. */
static void record_crash(const pool *p, const pl_job *job, pl_run_state state, const char *sentence) {
  const char *dir = p->args->dir;
  bool taken = false;
  if (pl_run_claim(dir, job->id, &taken, NULL) != PL_OK || !taken) return;
  (void)!pl_run_write_result(dir, job->id, state, NULL, sentence, NULL);
  pl_run_release(dir, job->id);
}

static void describe_crash(int signal_number, char *out, size_t size) {
  snprintf(out, size, "its process ended by signal %d (%s)%s", signal_number, strsignal(signal_number),
           signal_number == SIGKILL ? "; somebody killed it, or the system when memory ran out" : "");
}

static void say_end(pool *p, const pl_job *job, const char *what, double loss) {
  char shown[48] = "";
  if (!isnan(loss)) snprintf(shown, sizeof shown, fabs(loss) < 0.01 ? ", val loss %.3g" : ", val loss %.4f", loss);
  pl_progress_line(&p->progress, "run %" PRIu64 " %s%s: %s", job->index, what, shown, job->label);
}

/* A run that came to its end; false when its folder does not say so. */
static bool count_settled(pool *p, pl_job *job) {
  pl_result result;
  if (pl_run_read_result(p->args->dir, job->id, &result, NULL) != PL_OK) return false;
  if (result.state != PL_RUN_DONE && result.state != PL_RUN_DIVERGED) return false;
  bool diverged = result.state == PL_RUN_DIVERGED;
  job->state = result.state;
  *(diverged ? &p->result->diverged : &p->result->done) += 1;
  say_end(p, job, diverged ? "diverged" : "done", result.outcome.final_val_loss);
  return true;
}

static void count_stopped(pool *p, pl_job *job) {
  job->state = PL_RUN_STOPPED;
  p->result->stopped++;
  say_end(p, job, "stopped", (double)NAN);
}

static void count_failed(pool *p, const slot *s, const char *sentence) {
  s->job->state = PL_RUN_FAILED;
  p->result->failed++;
  say_end(p, s->job, "FAILED", (double)NAN);
  pl_progress_line(&p->progress, "  %s", sentence[0] != '\0' ? sentence : "it left no result");
  show_tail(p, s, sentence);
}

static void count_end(pool *p, const slot *s, int status) {
  char sentence[PL_ERR_TEXT] = "";
  pl_job *job = s->job;
  if (WIFSIGNALED(status)) { /* maybe after its result was written */
    if (count_settled(p, job)) return;
    describe_crash(WTERMSIG(status), sentence, sizeof sentence);
    record_crash(p, job, p->stopping ? PL_RUN_STOPPED : PL_RUN_FAILED, sentence);
    if (p->stopping)
      count_stopped(p, job);
    else
      count_failed(p, s, sentence);
    return;
  }
  switch (WEXITSTATUS(status)) {
  case PL_OK:
    if (count_settled(p, job)) return;
    break;
  case PL_STOPPED:
    count_stopped(p, job);
    return;
  case EXIT_ELSEWHERE:
    job->state = PL_RUN_RUNNING;
    p->result->elsewhere++;
    say_end(p, job, "is being run by another process", (double)NAN);
    return;
  }
  ssize_t length = read(s->reason, sentence, sizeof sentence - 1);
  sentence[length > 0 ? length : 0] = '\0';
  count_failed(p, s, sentence);
}

/* The work that a run had left when it was started. */
static double cost_left(const slot *s) {
  return s->job->cost * (double)(s->job->steps - s->first_step) / (double)s->job->steps;
}

static void reap(pool *p) {
  int status = 0;
  pid_t pid = 0;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    for (size_t i = 0; i < p->slot_count; i++) {
      slot *s = &p->slots[i];
      if (s->pid != pid) continue;
      count_end(p, s, status);
      int64_t step = pl_journal_last_step(s->journal);
      if (step > s->step) s->step = step;
      p->ended_cost += cost_left(s);
      p->tokens_ended += (double)(s->step - s->first_step) * (double)s->job->batch_tokens;
      free_slot(s);
      p->running--;
      p->crowded = false;
    }
  }
}

/* On a signal, and on a failure that is to stop the rest. */
static void pass_stop_on(pool *p) {
  p->result->signal = (int)*pl_signals_stop();
  bool asked = p->result->signal != 0 || (p->args->fail_fast && p->result->failed > 0);
  if (!asked || p->stopping) return;
  p->stopping = true;
  if (p->running > 0)
    pl_progress_line(&p->progress, "stopping: %zu runs finish their update and checkpoint%s", p->running,
                     p->result->signal != 0 && !p->args->under_slurm ? " (once more to end now)" : "");
  for (size_t i = 0; i < p->slot_count; i++)
    if (p->slots[i].pid > 0) kill(p->slots[i].pid, SIGTERM);
}

static void show(pool *p) {
  double cost = p->ended_cost, tokens = p->tokens_ended;
  if (p->args->under_slurm || !pl_progress_due(&p->progress)) return;
  for (size_t i = 0; i < p->slot_count; i++) {
    slot *s = &p->slots[i];
    if (s->pid == 0) continue;
    int64_t step = pl_journal_last_step(s->journal);
    if (step > s->step) s->step = step;
    cost += s->job->cost * (double)(s->step - s->first_step) / (double)s->job->steps;
    tokens += (double)(s->step - s->first_step) * (double)s->job->batch_tokens;
  }
  const pl_local_result *r = p->result;
  char text[160], rate[16], failed[32] = "";
  pl_format_count(tokens / (pl_clock_seconds() - p->started + 1e-9), rate);
  size_t ended = r->done + r->diverged + r->failed + r->elsewhere + r->stopped;
  if (r->failed > 0) snprintf(failed, sizeof failed, ", %zu failed", r->failed);
  snprintf(text, sizeof text, "%zu/%zu runs, %zu running%s, %s tokens/s", ended, p->queued, p->running, failed, rate);
  pl_progress_show(&p->progress, p->total_cost > 0 ? cost / p->total_cost : 0, text);
}

static bool may_start(const pool *p) {
  return p->next < p->queued && !p->stopping && !p->crowded && *pl_signals_stop() == 0;
}

static bool is_free(const pool *p, size_t place) {
  const size_t last = p->last[place];
  return p->slots[last].pid == 0 || p->slots[last].place != place || p->trained[last];
}

/* p->slot_count when all of those that have trained still wait. */
static size_t free_slot_of(const pool *p) {
  size_t i = 0;
  while (i < p->slot_count && p->slots[i].pid != 0) i++;
  return i;
}

/* Fills the free places. Where the system refuses one more process, those that run go on with fewer beside them. */
static pl_status fill(pool *p, pl_err *e) {
  for (size_t place = 0; place < p->places && may_start(p); place++) {
    pl_err refused = {0};
    if (!is_free(p, place)) continue;
    const size_t free_slot = free_slot_of(p);
    if (free_slot == p->slot_count) break;
    slot *s = &p->slots[free_slot];
    if (start(p, s, place, p->queue[p->next], &refused) != PL_OK) {
      if (p->running == 0) return pl_fail(e, refused.status, "%s", refused.text);
      if (!p->was_crowded) pl_progress_line(&p->progress, "%s; going on with %zu at a time", refused.text, p->running);
      p->crowded = p->was_crowded = true;
      break;
    }
    p->last[place] = free_slot;
    p->total_cost -= s->job->cost - cost_left(s);
    p->next++;
  }
  return PL_OK;
}

/* Until a run ended, a signal came, or it is time for the bar. */
static void wait_for_something(void) {
  const struct timespec longest = {.tv_nsec = POLL_NANOSECONDS};
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  sigtimedwait(&ended, NULL, &longest);
}

static pl_status loop(pool *p, pl_err *e) {
  pl_status st = PL_OK;
  for (;;) {
    if (st == PL_OK) st = fill(p, e);
    if (p->running == 0) return st;
    wait_for_something();
    pass_stop_on(p);
    reap(p);
    show(p);
    pass_stop_on(p);
  }
}

/* A blocked SIGCHLD waits for sigtimedwait; an ignored one, which parents may hand down, would hide how runs ended. */
static void block_sigchld(sigset_t *before) {
  const struct sigaction usual = {.sa_handler = SIG_DFL};
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  sigaction(SIGCHLD, &usual, NULL);
  sigprocmask(SIG_BLOCK, &ended, before);
}

/* What the children would each do for themselves: their copies of this process have it done. */
static void warm_up(pool *p) {
  const pl_curve empty = {0};
  char *bytes = NULL;
  size_t count;
  pl_origin_read(&p->origin);
  if (pl_curves_image(&empty, NULL, 0, &bytes, &count, NULL) == PL_OK) pl_free(bytes);
  if (pl_h5_create(&p->blank, NULL) != PL_OK) p->blank = NULL;
}

pl_status pl_local_run(const pl_local_args *args, pl_local_result *out, pl_err *e) {
  *out = (pl_local_result){0};
  pool p = {.args = args,
            .result = out,
            .cores = -1,
            .threads = 1,
            .progress = pl_progress_begin(args->quiet),
            .started = pl_clock_seconds()};
  pl_status st = PL_OK;
  if (!args->under_slurm) pl_signals_install(false);
  block_sigchld(&p.before);
  warm_up(&p);
  PL_TRY(make_queue(&p, e));
  PL_TRY(make_places(&p, e));
  st = loop(&p, e);
  out->signal = (int)*pl_signals_stop();
  out->not_started = p.queued - p.next;
out:
  sigprocmask(SIG_SETMASK, &p.before, NULL);
  pl_progress_end(&p.progress);
  pl_free(p.queue);
  free_places(&p);
  return st;
}
