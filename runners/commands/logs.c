/* pipelag logs DIR RUN: all attempts' logs of a run, oldest first; -f goes on until it has ended. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "runners/command.h"
#include "runners/launchers/slurm/states.h"

enum { BLOCK = 1 << 16, LOOK_MILLISECONDS = 500 };

/* How far the logs were printed. */
typedef struct reader {
  const char *dir;
  uint64_t id;
  int64_t attempt; /* that is being printed; from 1 */
  off_t done;      /* bytes of its log */
  bool any;
} reader;

static pl_status copy_rest(const char *path, off_t *done, pl_err *e) {
  char block[BLOCK];
  ssize_t got = 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return pl_fail(e, PL_FAIL, "%s: cannot be opened", path);
  while ((got = pread(fd, block, sizeof block, *done)) > 0) {
    if (fwrite(block, 1, (size_t)got, stdout) != (size_t)got) break;
    *done += got;
  }
  close(fd);
  return got == 0 ? PL_OK : pl_fail(e, PL_FAIL, "%s: cannot be read to its end or printed", path);
}

static pl_status log_path(const reader *r, int64_t attempt, char **out, pl_err *e) {
  char name[64];
  snprintf(name, sizeof name, "log.%" PRId64 ".txt", attempt);
  return pl_run_path(r->dir, r->id, name, out, e);
}

/* Prints what is new of one attempt; *later tells that there is another one, so that this one has ended. */
static pl_status print_attempt(reader *r, bool *later, pl_err *e) {
  char *path = NULL, *next = NULL;
  pl_status st = PL_OK;
  PL_TRY(log_path(r, r->attempt, &path, e));
  PL_TRY(log_path(r, r->attempt + 1, &next, e));
  *later = pl_path_exists(next);
  if (!pl_path_exists(path)) goto out;
  if (r->done == 0) printf("== attempt %" PRId64 " ==\n", r->attempt);
  r->any = true;
  st = copy_rest(path, &r->done, e);
out:
  pl_free(next);
  pl_free(path);
  return st;
}

static pl_status print_new(reader *r, pl_err *e) {
  bool later = false;
  pl_status st = print_attempt(r, &later, e);
  while (st == PL_OK && later) {
    r->attempt++;
    r->done = 0;
    st = print_attempt(r, &later, e);
  }
  if (fflush(stdout) != 0 && st == PL_OK) st = pl_fail(e, PL_FAIL, "standard output could not be written");
  return st;
}

/* Asks Slurm only when no process of this run is to be seen. */
static pl_status has_ended(const reader *r, size_t index, bool *ended, pl_err *e) {
  pl_states s;
  *ended = false;
  if (pl_run_state_of(r->dir, r->id) == PL_RUN_RUNNING) return PL_OK;
  pl_status st = pl_states_read(r->dir, &s, e);
  if (st != PL_OK) return st;
  pl_shown shown = s.runs[index].verdict.shown;
  *ended = shown != PL_SHOWN_RUNNING && shown != PL_SHOWN_QUEUED;
  pl_states_free(&s);
  return PL_OK;
}

static pl_status follow(reader *r, size_t index, pl_err *e) {
  const struct timespec pause = {.tv_nsec = LOOK_MILLISECONDS * 1000000L};
  bool ended = false;
  pl_status st = has_ended(r, index, &ended, e);
  while (st == PL_OK && !ended) {
    nanosleep(&pause, NULL);
    st = print_new(r, e);
    if (st == PL_OK) st = has_ended(r, index, &ended, e);
  }
  return st == PL_OK ? print_new(r, e) : st;
}

/* What Slurm itself wrote down for the run's task: why it never got as far as a log of its own. */
static pl_status print_slurm(const pl_states *s, const pl_shown_run *run, bool *any, pl_err *e) {
  char *path = NULL;
  off_t done = 0;
  if (run->submission == NULL) return PL_OK;
  pl_status st = pl_task_output_path(s->dir, run->submission, run->task, &path, e);
  if (st == PL_OK && pl_path_exists(path)) {
    printf("== Slurm: %s ==\n", path);
    *any = true;
    st = copy_rest(path, &done, e);
  }
  pl_free(path);
  return st;
}

static pl_status run(const pl_options *o, pl_err *e) {
  pl_states s;
  size_t index = 0;
  pl_status st = pl_states_read(o->args[0], &s, e);
  if (st != PL_OK) return st;
  PL_TRY(pl_states_find(&s, o->args[1], &index, e));
  reader r = {.dir = s.dir, .id = s.runs[index].id, .attempt = 1};
  PL_TRY(print_new(&r, e));
  if (o->follow) PL_TRY(follow(&r, index, e));
  if (!r.any) PL_TRY(print_slurm(&s, &s.runs[index], &r.any, e));
  if (!r.any)
    st = pl_fail(e, PL_NOTHING, "%s: run %s has no log yet (%s)", s.dir, o->args[1],
                 pl_verdict_name(&s.runs[index].verdict));
out:
  pl_states_free(&s);
  return st;
}

const pl_command pl_command_logs = {.name = "logs",
                                    .arguments = "DIR RUN",
                                    .summary = "Print the logs of a run (index or beginning of its id); -f follows",
                                    .options = "F",
                                    .min_args = 2,
                                    .max_args = 2,
                                    .run = run};
