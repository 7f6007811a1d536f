#include "runners/launchers/local.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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
#include "runners/launchers/gpus.h"
#include "runners/launchers/worker.h"
#include "runners/progress.h"
#include "runners/signals.h"

enum { POLL_NANOSECONDS = 200000000, TAIL_LINES = 5 };

/* A run that was started and has not ended, in the worker of the same number. */
typedef struct slot {
  pl_job *job;  /* NULL: free */
  size_t place; /* where it trains */
  char *journal;
  int64_t first_step, step;
} slot;

typedef struct pool {
  const pl_local_args *args;
  size_t places;      /* runs that train at the same time */
  size_t threads;     /* of the run that has most */
  int *cpus;          /* of the places; -1: not pinned */
  bool on_gpus;       /* some run asks for one */
  pl_gpus gpus;       /* then, which there are; else those that are listed for whoever may use them */
  size_t *last;       /* of the places: slot of the run that was started there last */
  int cores;          /* holds these CPUs, or -1 */
  slot *slots;        /* twice the places: those that wait for the disk have room beside those that train */
  pl_worker *workers; /* [slot_count] */
  bool *ending;       /* [slot_count] takes no more orders */
  size_t slot_count, running;
  pl_trained_flag *trained; /* [slot_count], shared with the workers */
  pl_job **queue;           /* open jobs, longest first */
  size_t queued, next;
  double total_cost, ended_cost;
  double tokens_ended, started;
  bool stopping;             /* the runs were told to stop */
  bool crowded, was_crowded; /* no process could be started beside those that run */
  pl_origin origin;
  pl_h5 *blank;
  pl_workshop shop;
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
    p->on_gpus |= a->jobs[i].on_gpu;
  }
  qsort(p->queue, p->queued, sizeof *p->queue, by_cost);
  return PL_OK;
}

/* Each place on a CPU of its own, unless others can be meant to have some of the CPUs that are allowed: where more are
 * allowed than may be kept busy, nobody says which. The driver of a GPU has threads beside the run's. */
static void choose_cpus(pool *p, const cpu_set_t *allowed, size_t usable) {
  const size_t count = (size_t)CPU_COUNT(allowed);
  for (size_t i = 0; i < p->places; i++) p->cpus[i] = -1;
  if (!p->args->no_pin && !p->on_gpus && p->threads == 1 && usable == count && p->places <= count)
    p->cores = pl_cores_take(p->args->cores != NULL ? p->args->cores : PL_CORES_FILE, allowed, p->cpus, p->places);
}

/* As many as there are usable CPUs, or groups of them for runs of several threads; as there are GPUs for runs on them.
 * Where there is none these runs say so themselves. */
static pl_status make_places(pool *p, pl_err *e) {
  cpu_set_t allowed;
  pl_status st = PL_OK;
  const size_t usable = pl_cpus_usable(&allowed);
  st = p->on_gpus ? pl_gpus_find(&p->gpus, NULL) : pl_gpus_listed(&p->gpus, NULL);
  if (st != PL_OK) pl_gpus_free(&p->gpus);
  p->places = p->args->slots > 0 ? (size_t)p->args->slots : p->on_gpus ? p->gpus.count : usable / p->threads;
  if (p->places == 0) p->places = 1;
  if (p->places > p->queued && p->queued > 0) p->places = p->queued;
  p->slot_count = 2 * p->places;
  PL_TRY(pl_alloc(p->places, sizeof *p->cpus, "the pool", &p->cpus, e));
  PL_TRY(pl_alloc(p->places, sizeof *p->last, "the pool", &p->last, e));
  PL_TRY(pl_alloc(p->slot_count, sizeof *p->slots, "the pool", &p->slots, e));
  PL_TRY(pl_alloc(p->slot_count, sizeof *p->workers, "the pool", &p->workers, e));
  PL_TRY(pl_alloc(p->slot_count, sizeof *p->ending, "the pool", &p->ending, e));
  void *shared =
      mmap(NULL, p->slot_count * sizeof *p->trained, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) PL_TRY(pl_fail(e, PL_FAIL, "the pool cannot be made: %s", strerror(errno)));
  p->trained = shared;
  for (size_t i = 0; i < p->slot_count; i++) p->workers[i].trained = &p->trained[i];
  choose_cpus(p, &allowed, usable);
  p->shop.args = p->args;
  p->shop.cpus = p->cpus;
  p->shop.gpus = &p->gpus;
  p->shop.blank = p->blank;
  p->shop.origin = &p->origin;
out:
  return st;
}

static void free_places(pool *p) {
  if (p->trained != NULL) munmap((void *)(uintptr_t)p->trained, p->slot_count * sizeof *p->trained);
  if (p->cores >= 0) close(p->cores);
  pl_free(p->slots);
  pl_free(p->workers);
  pl_free(p->ending);
  pl_free(p->last);
  pl_free(p->cpus);
  pl_gpus_free(&p->gpus);
  pl_h5_free(p->blank);
}

static bool is_idle(const pool *p, size_t i) {
  return p->slots[i].job == NULL && p->workers[i].pid != 0 && !p->ending[i];
}

/* Slot i must be free; a worker that is there takes the run. */
static pl_status start(pool *p, size_t i, size_t place, pl_job *job, pl_err *e) {
  pl_status st = PL_OK;
  slot *s = &p->slots[i];
  if (p->workers[i].pid == 0) PL_TRY(pl_worker_start(&p->shop, p->workers, p->slot_count, &p->workers[i], e));
  *s = (slot){.place = place};
  PL_TRY(pl_run_path(p->args->dir, job->id, "journal", &s->journal, e));
  s->first_step = pl_journal_last_step(s->journal);
  if (s->first_step < 0) s->first_step = 0;
  s->step = s->first_step;
  s->job = job;
  p->running++;
  (void)pl_worker_order(&p->workers[i], (size_t)(job - p->args->jobs), place); /* one that is gone is found by reap */
out:
  return st;
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

static void count_report(pool *p, const slot *s, const pl_worker_report *report) {
  pl_job *job = s->job;
  switch (report->code) {
  case PL_OK:
    if (count_settled(p, job)) return;
    break;
  case PL_STOPPED:
    count_stopped(p, job);
    return;
  case PL_WORKER_ELSEWHERE:
    job->state = PL_RUN_RUNNING;
    p->result->elsewhere++;
    say_end(p, job, "is being run by another process", (double)NAN);
    return;
  }
  count_failed(p, s, report->sentence);
}

/* A process that ended without a report on its run, maybe after the result was written. */
static void count_crash(pool *p, const slot *s, int status) {
  char sentence[PL_ERR_TEXT] = "";
  pl_job *job = s->job;
  if (count_settled(p, job)) return;
  if (!WIFSIGNALED(status)) { /* by a signal before it began */
    count_stopped(p, job);
    return;
  }
  describe_crash(WTERMSIG(status), sentence, sizeof sentence);
  record_crash(p, job, p->stopping ? PL_RUN_STOPPED : PL_RUN_FAILED, sentence);
  if (p->stopping)
    count_stopped(p, job);
  else
    count_failed(p, s, sentence);
}

/* The work that a run had left when it was started. */
static double cost_left(const slot *s) {
  return s->job->cost * (double)(s->job->steps - s->first_step) / (double)s->job->steps;
}

/* The run of a slot has ended and is counted. */
static void clear(pool *p, slot *s) {
  int64_t step = pl_journal_last_step(s->journal);
  if (step > s->step) s->step = step;
  p->ended_cost += cost_left(s);
  p->tokens_ended += (double)(s->step - s->first_step) * (double)s->job->batch_tokens;
  pl_free(s->journal);
  *s = (slot){0};
  p->running--;
  p->crowded = false;
}

static void read_report(pool *p, size_t i) {
  slot *s = &p->slots[i];
  pl_worker_report report;
  if (s->job == NULL || !pl_worker_reported(&p->workers[i], &report)) return;
  p->ending[i] = report.last;
  count_report(p, s, &report);
  clear(p, s);
}

static void bury(pool *p, size_t i, int status) {
  read_report(p, i);
  if (p->slots[i].job != NULL) {
    count_crash(p, &p->slots[i], status);
    clear(p, &p->slots[i]);
  }
  close(p->workers[i].line);
  p->workers[i].pid = 0;
  p->ending[i] = false;
}

static void reap(pool *p) {
  int status = 0;
  pid_t pid = 0;
  for (size_t i = 0; i < p->slot_count; i++) read_report(p, i);
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
    for (size_t i = 0; i < p->slot_count; i++)
      if (p->workers[i].pid == pid) bury(p, i, status);
}

/* Those that have nothing to do end. */
static void dismiss_all(pool *p) {
  for (size_t i = 0; i < p->slot_count; i++)
    if (p->workers[i].pid != 0) pl_worker_dismiss(&p->workers[i]);
  for (size_t i = 0; i < p->slot_count; i++) {
    int status = 0;
    if (p->workers[i].pid != 0 && waitpid(p->workers[i].pid, &status, 0) == p->workers[i].pid) bury(p, i, status);
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
    if (p->workers[i].pid != 0) kill(p->workers[i].pid, SIGTERM);
}

static void show(pool *p) {
  double cost = p->ended_cost, tokens = p->tokens_ended;
  if (p->args->under_slurm || !pl_progress_due(&p->progress)) return;
  for (size_t i = 0; i < p->slot_count; i++) {
    slot *s = &p->slots[i];
    if (s->job == NULL) continue;
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
  return p->slots[last].job == NULL || p->slots[last].place != place || p->trained[last];
}

/* One whose worker waits for orders, else one without a worker; p->slot_count when there is neither. */
static size_t free_slot_of(const pool *p) {
  size_t bare = p->slot_count;
  for (size_t i = 0; i < p->slot_count; i++) {
    if (is_idle(p, i)) return i;
    if (p->workers[i].pid == 0 && bare == p->slot_count) bare = i;
  }
  return bare;
}

/* Fills the free places. Where the system refuses one more process, those that run go on with fewer beside them. */
static pl_status fill(pool *p, pl_err *e) {
  for (size_t place = 0; place < p->places && may_start(p); place++) {
    pl_err refused = {0};
    if (!is_free(p, place)) continue;
    const size_t i = free_slot_of(p);
    if (i == p->slot_count) break;
    if (start(p, i, place, p->queue[p->next], &refused) != PL_OK) {
      if (p->running == 0) return pl_fail(e, refused.status, "%s", refused.text);
      if (!p->was_crowded) pl_progress_line(&p->progress, "%s; going on with %zu at a time", refused.text, p->running);
      p->crowded = p->was_crowded = true;
      break;
    }
    p->last[place] = i;
    p->total_cost -= p->slots[i].job->cost - cost_left(&p->slots[i]);
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

/* Nothing runs, but what is left will as soon as a process that takes no more orders is gone. */
static bool waits_for_an_end(const pool *p) {
  bool ending = false;
  for (size_t i = 0; i < p->slot_count; i++) ending |= p->ending[i];
  return ending && may_start(p);
}

static pl_status loop(pool *p, pl_err *e) {
  pl_status st = PL_OK;
  for (;;) {
    if (st == PL_OK) st = fill(p, e);
    if (p->running == 0 && (st != PL_OK || !waits_for_an_end(p))) return st;
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
  block_sigchld(&p.shop.before);
  warm_up(&p);
  PL_TRY(make_queue(&p, e));
  PL_TRY(make_places(&p, e));
  st = loop(&p, e);
  dismiss_all(&p);
  out->signal = (int)*pl_signals_stop();
  out->not_started = p.queued - p.next;
out:
  sigprocmask(SIG_SETMASK, &p.shop.before, NULL);
  pl_progress_end(&p.progress);
  pl_free(p.queue);
  free_places(&p);
  return st;
}
