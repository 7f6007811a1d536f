/* pipelag task DIR SUBMISSION INDEX: what a job script starts, the runs of one array task. A run of several processes
 * is started once more with the same arguments on all of them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "results/json_file.h"
#include "runners/command.h"
#include "runners/launchers/local.h"
#include "runners/launchers/ranks_run.h"
#include "runners/launchers/slurm/call.h"
#include "runners/launchers/slurm/submission.h"
#include "runners/program.h"
#include "runners/ranks.h"
#include "runners/signals.h"

enum { USUAL_RESTARTS = 3, REQUEUE_SECONDS = 30 };

typedef struct task {
  const char *dir;
  int64_t index;
  pl_submission submission;
  pl_job *jobs;
  size_t count;
  size_t states[PL_RUN_STATES]; /* of the jobs, in the end */
} task;

/* Length and labels are for messages and the order only; what is wrong with a config the run itself finds. */
static pl_status fill_job(const task *t, const pl_submission_row *row, pl_job *job, pl_err *e) {
  pl_status st = PL_OK;
  char *path = NULL;
  pl_json *config = NULL;
  *job = (pl_job){.index = row->index, .id = row->id, .state = pl_run_state_of(t->dir, row->id)};
  PL_TRY(pl_alloc(1, PL_ID_SIZE, "a run's name", &job->label, e));
  pl_hash_hex(row->id, job->label);
  PL_TRY(pl_run_path(t->dir, row->id, "config.json", &path, e));
  const pl_json *train = pl_json_file_read(path, &config, NULL) == PL_OK ? pl_json_get(config, "train") : NULL;
  job->steps = pl_json_get_int(train, "steps", 1);
  job->batch_tokens = pl_json_get_int(train, "batch_tokens", 1);
  job->threads = pl_json_get_int(config, "threads", 1);
  job->on_gpu = strcmp(pl_json_get_string(config, "device", "cpu"), "cuda") == 0;
  if (job->steps < 1) job->steps = 1;
  job->cost = (double)job->steps * (double)job->batch_tokens;
out:
  pl_json_release(config);
  pl_free(path);
  return st;
}

/* Whether a holder lives is for the claim to find out. What failed in an earlier start of this task stays so: that
 * others of its runs are to go on is no reason to try it again. */
static void open_job(pl_job *job) {
  const char *restarts = getenv("SLURM_RESTART_COUNT");
  bool again = restarts != NULL && strcmp(restarts, "0") != 0;
  if (job->state == PL_RUN_RUNNING) job->state = PL_RUN_LOST;
  if (job->state == PL_RUN_FAILED && !again) job->state = PL_RUN_STOPPED;
}

static pl_status find_jobs(task *t, pl_err *e) {
  const pl_submission *s = &t->submission;
  pl_status st = PL_OK;
  size_t rows = 0;
  for (size_t i = 0; i < s->count; i++) rows += s->rows[i].task == t->index;
  if (rows == 0)
    return pl_fail(e, PL_BAD, "%s: submission %" PRId64 " has no task %" PRId64, t->dir, s->number, t->index);
  PL_TRY(pl_alloc(rows, sizeof *t->jobs, "the runs of a task", &t->jobs, e));
  for (size_t i = 0; i < s->count; i++) {
    if (s->rows[i].task != t->index) continue;
    pl_job *job = &t->jobs[t->count++];
    PL_TRY(fill_job(t, &s->rows[i], job, e));
    open_job(job);
  }
out:
  return st;
}

/* *note is released by pl_free; NULL when the program is the one that was submitted. */
static pl_status compare_program(const task *t, char **note, pl_err *e) {
  pl_str difference = {0}, text = {0};
  pl_status st = PL_OK;
  const pl_json *libraries = pl_json_get(t->submission.document, "libraries");
  PL_TRY(pl_program_compare(t->submission.binary_hash, libraries, &difference, e));
  if (difference.length == 0) goto out;
  pl_str_printf(&text, "the program differs from the one submitted: %s", difference.text);
  PL_TRY(pl_str_check(&text, e));
  *note = text.text;
out:
  if (st != PL_OK) pl_str_free(&text);
  pl_str_free(&difference);
  return st;
}

static void count_states(task *t) {
  memset(t->states, 0, sizeof t->states);
  for (size_t i = 0; i < t->count; i++) {
    pl_run_state *s = &t->jobs[i].state;
    bool open = *s != PL_RUN_DONE && *s != PL_RUN_DIVERGED && *s != PL_RUN_RUNNING;
    if (open && pl_run_is_cancelled(t->dir, t->jobs[i].id)) *s = PL_RUN_CANCELLED;
    t->states[*s]++;
  }
}

static int64_t max_attempts(const task *t) {
  int64_t restarts = pl_json_get_int(t->submission.document, "max_restarts", USUAL_RESTARTS);
  return (restarts < 0 ? 0 : restarts) + 1;
}

static int64_t resource(const task *t, const char *key) {
  return pl_json_get_int(pl_json_get(t->submission.document, "resources"), key, 1);
}

static pl_status train_alone(task *t, const char *note, pl_local_result *r, pl_err *e) {
  const pl_local_args args = {.dir = t->dir,
                              .data_root = t->submission.data_root,
                              .jobs = t->jobs,
                              .count = t->count,
                              .under_slurm = true,
                              .max_attempts = max_attempts(t),
                              .note = note};
  return pl_local_run(&args, r, e);
}

static pl_status start_processes(task *t, pl_local_result *r, pl_err *e) {
  const pl_json *resources = pl_json_get(t->submission.document, "resources");
  const pl_ranks_run_args args = {.dir = t->dir,
                                  .submission = t->submission.number,
                                  .task = t->index,
                                  .processes = resource(t, "tasks"),
                                  .cpus = resource(t, "cpus"),
                                  .mpirun = strcmp(pl_json_get_string(resources, "mpi", "pmix"), "mpirun") == 0};
  pl_status st = PL_OK;
  if (pl_job_is_open(t->jobs) && *pl_signals_stop() == 0) st = pl_ranks_run(&args, t->jobs, e);
  *r = (pl_local_result){.signal = (int)*pl_signals_stop()};
  return st;
}

static pl_status train(task *t, const char *note, pl_local_result *r, pl_err *e) {
  char host[256] = "?";
  gethostname(host, sizeof host - 1);
  const char *node = getenv("SLURMD_NODENAME"); /* several nodes of a test share a host */
  printf("submission %" PRId64 ", task %" PRId64 ": %zu runs, on %s\n", t->submission.number, t->index, t->count,
         node != NULL ? node : host);
  if (note != NULL) printf("%s\n", note);
  fflush(stdout);
  return resource(t, "tasks") > 1 ? start_processes(t, r, e) : train_alone(t, note, r, e);
}

/* Only after Slurm's warning, and only this task: SLURM_JOB_ID can be the id of the whole array. */
static void requeue(const task *t) {
  const char *array = getenv("SLURM_ARRAY_JOB_ID"), *index = getenv("SLURM_ARRAY_TASK_ID");
  char name[64], sentence[256];
  pl_call c;
  pl_err e = {0};
  if (*pl_signals_stop() != SIGUSR1 || pl_signals_latest() != SIGUSR1 || t->states[PL_RUN_CANCELLED] > 0) return;
  if (strcmp(pl_json_get_string(t->submission.document, "requeue", "auto"), "auto") != 0) return;
  if (array == NULL || index == NULL) return;
  snprintf(name, sizeof name, "%s_%s", array, index);
  printf("requeueing task %s\n", name);
  fflush(stdout);
  const char *const argv[] = {"scontrol", "requeue", name, NULL};
  if (pl_call_run(argv, NULL, REQUEUE_SECONDS, &c, &e) != PL_OK) {
    printf("it cannot be requeued: %s\n", e.text);
    return;
  }
  if (c.exit_code != 0) printf("it cannot be requeued: %s\n", pl_call_sentence(&c, sentence));
  pl_call_free(&c);
}

static pl_status finish(task *t, const pl_local_result *r) {
  count_states(t);
  const size_t *n = t->states;
  size_t left = n[PL_RUN_STOPPED] + n[PL_RUN_PENDING] + n[PL_RUN_LOST];
  printf("%zu done, %zu diverged, %zu failed, %zu cancelled, %zu left, %zu elsewhere\n", n[PL_RUN_DONE],
         n[PL_RUN_DIVERGED], n[PL_RUN_FAILED], n[PL_RUN_CANCELLED], left, n[PL_RUN_RUNNING]);
  fflush(stdout);
  if (left > 0) requeue(t);
  if (left > 0 || (r->signal != 0 && n[PL_RUN_CANCELLED] > 0)) return PL_STOPPED;
  return n[PL_RUN_FAILED] > 0 ? PL_FAIL : PL_OK;
}

static pl_status read_number(const char *what, const char *text, int64_t least, int64_t *out, pl_err *e) {
  if (pl_parse_int(text, out) && *out >= least) return PL_OK;
  return pl_fail(e, PL_BAD, "%s: saw \"%.100s\"; allowed: a whole number from %" PRId64, what, text, least);
}

/* *note is released by pl_free. */
static pl_status open_task(const pl_options *o, task *t, char **note, pl_err *e) {
  int64_t number;
  pl_status st = PL_OK;
  t->dir = o->args[0];
  PL_TRY(read_number("SUBMISSION", o->args[1], 1, &number, e));
  PL_TRY(read_number("INDEX", o->args[2], 0, &t->index, e));
  PL_TRY(pl_submission_read(t->dir, number, &t->submission, e));
  PL_TRY(find_jobs(t, e));
  PL_TRY(compare_program(t, note, e));
out:
  return st;
}

static void close_task(task *t) {
  for (size_t i = 0; i < t->count; i++) pl_free(t->jobs[i].label);
  pl_free(t->jobs);
  pl_submission_free(&t->submission);
}

static pl_status run_task(const pl_options *o, pl_err *e) {
  task t = {0};
  pl_local_result r;
  char *note = NULL;
  pl_status st = PL_OK;
  PL_TRY(open_task(o, &t, &note, e));
  PL_TRY(train(&t, note, &r, e));
  st = finish(&t, &r);
out:
  pl_free(note);
  close_task(&t);
  return st;
}

/* Of rank 0. How the run ended whoever started the processes reads from its folder. */
static pl_status lead(const task *t, const char *note, pl_world *world, pl_err *e) {
  pl_run_one_result r;
  const pl_run_one_args args = {.sweep_dir = t->dir,
                                .data_root = t->submission.data_root,
                                .id = t->jobs[0].id,
                                .wait = true,
                                .max_attempts = max_attempts(t),
                                .note = note,
                                .stop = pl_signals_stop(),
                                .world = world};
  return pl_run_one(&args, &r, e);
}

/* One of the processes of a run. */
static pl_status run_together(const pl_options *o, pl_world *world, pl_err *e) {
  task t = {0};
  char *note = NULL;
  pl_run_one_result r;
  pl_signals_install(true);
  pl_signals_be_patient();
  pl_status st = world->rank == 0 ? open_task(o, &t, &note, e) : PL_OK;
  if (st == PL_OK && t.count > 1)
    st = pl_fail(e, PL_BAD, "%s: task %" PRId64 " has %zu runs; allowed: one that several processes train", t.dir,
                 t.index, t.count);
  PL_TRY(world->type->agree(world, st, e));
  st = world->rank == 0 ? lead(&t, note, world, e) : pl_run_follow(world, pl_signals_stop(), &r, e);
  if (st != PL_OK) pl_ranks_end(world, PL_FAIL, e);
out:
  pl_free(note);
  close_task(&t);
  return st;
}

static pl_status run(const pl_options *o, pl_err *e) {
  pl_world *world = NULL;
  pl_signals_install(false);
  pl_signals_be_patient();
  if (!pl_world_launched()) return run_task(o, e);
  pl_status st = pl_world_open(&world, e);
  if (st != PL_OK) return st;
  st = world->size > 1 ? run_together(o, world, e) : run_task(o, e);
  pl_ranks_close(world, e);
  return st;
}

const pl_command pl_command_task = {.name = "task",
                                    .arguments = "DIR SUBMISSION INDEX",
                                    .summary = "Train the runs of one array task; job scripts start it",
                                    .options = "",
                                    .min_args = 3,
                                    .max_args = 3,
                                    .together = true,
                                    .run = run};
