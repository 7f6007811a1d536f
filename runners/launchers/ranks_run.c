#include "runners/launchers/ranks_run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "results/journal.h"
#include "results/run_dir.h"
#include "runners/signals.h"

extern char **environ;

enum { LINE = 512, WORD = 64, POLL_MILLISECONDS = 200, MOST_STARTS = 3 };

/* The launcher while it runs: what it says is passed on line by line. */
typedef struct launcher {
  const char *name;
  pid_t pid;
  int says; /* pipe of its standard error */
  char line[LINE];
  size_t length;
  char cause[LINE]; /* the first line that tells most of why it went wrong; "" so far */
  int weight;       /* of it */
  bool told;        /* to stop */
  int status;
} launcher;

static pl_status start(const char *const *argv, launcher *l, pl_err *e) {
  const struct sigaction usual = {.sa_handler = SIG_DFL};
  posix_spawn_file_actions_t actions;
  int ends[2];
  sigaction(SIGCHLD, &usual, NULL); /* where it is ignored, nobody learns how a child ended */
  *l = (launcher){.name = argv[0]};
  if (pipe2(ends, O_CLOEXEC) != 0)
    return pl_fail(e, PL_FAIL, "a pipe from %s cannot be made: %s", l->name, strerror(errno));
  l->says = ends[0];
  int error = posix_spawn_file_actions_init(&actions);
  if (error == 0) {
    error = posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    char **arguments = (char **)(uintptr_t)argv; /* posix_spawnp does not write into them */
    if (error == 0) error = posix_spawnp(&l->pid, argv[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
  }
  close(ends[1]);
  if (error == 0) return PL_OK;
  close(l->says);
  return pl_fail(e, PL_BAD, "%s: cannot be started: %s", l->name, strerror(error));
}

/* srun does not take the number of CPUs over from the job. */
static pl_status start_all(const pl_ranks_run_args *a, launcher *l, pl_err *e) {
  char count[WORD], tasks[WORD], cpus[WORD], submission[WORD], task[WORD];
  char *program = realpath("/proc/self/exe", NULL);
  if (program == NULL) return pl_fail(e, PL_BAD, "the file of this program is gone (%s)", strerror(errno));
  snprintf(count, sizeof count, "%" PRId64, a->processes);
  snprintf(tasks, sizeof tasks, "--ntasks=%" PRId64, a->processes);
  snprintf(cpus, sizeof cpus, "--cpus-per-task=%" PRId64, a->cpus);
  snprintf(submission, sizeof submission, "%" PRId64, a->submission);
  snprintf(task, sizeof task, "%" PRId64, a->task);
  const char *const mpirun[] = {"mpirun", "-np", count, program, "task", a->dir, submission, task, NULL};
  const char *const srun[] = {
      "srun", "--mpi=pmix", "--kill-on-bad-exit=1", "--input=none", tasks, cpus, program, "task", a->dir, submission,
      task,   NULL};
  pl_status st = start(a->mpirun ? mpirun : srun, l, e);
  free(program);
  return st;
}

/* How much a line tells of why it went wrong: 2 for "srun: error: n3: task 2: Killed" or "mpirun noticed that process
 * rank 2 with PID 0 on node n3 exited on signal 9", 1 for other words of the launcher itself, 0 for anything else.
 * *said: without srun's name, which mpirun makes part of its sentences. */
static int weigh(const char *line, const char **said) {
  static const char *const marks[][2] = {{"srun: error: ", ": task"}, {"mpirun ", "noticed that process rank"}};
  for (size_t i = 0; i < 2; i++) {
    const size_t length = strlen(marks[i][0]);
    if (strncmp(line, marks[i][0], length) != 0) continue;
    *said = i == 0 ? line + length : line;
    return strstr(line, marks[i][1]) != NULL ? 2 : 1;
  }
  return 0;
}

static void end_line(launcher *l) {
  const char *said = l->line;
  l->line[l->length] = '\0';
  fprintf(stderr, "%s\n", l->line);
  const int weight = weigh(l->line, &said);
  if (weight > l->weight) {
    snprintf(l->cause, sizeof l->cause, "%s", said);
    l->weight = weight;
  }
  l->length = 0;
}

/* False at the end. */
static bool pass_on(launcher *l) {
  char bytes[4096];
  ssize_t got = read(l->says, bytes, sizeof bytes);
  if (got < 0) return errno == EINTR;
  for (ssize_t i = 0; i < got; i++) {
    if (bytes[i] != '\n') l->line[l->length++] = bytes[i];
    if (bytes[i] == '\n' || l->length == LINE - 1) end_line(l);
  }
  if (got == 0 && l->length > 0) end_line(l);
  return got > 0;
}

/* Both launchers pass USR1 on to every process; TERM is the end of all with mpirun. */
static void tell(launcher *l) {
  if (*pl_signals_stop() == 0 || l->told) return;
  l->told = true;
  kill(l->pid, SIGUSR1);
}

/* Until the launcher has ended and nothing more is there to read; what it left behind may still hold the pipe. */
static void watch(launcher *l) {
  struct pollfd polled = {.fd = l->says, .events = POLLIN};
  for (bool ended = false, more = true; !ended || more;) {
    tell(l);
    ended = ended || waitpid(l->pid, &l->status, WNOHANG) != 0;
    more = poll(&polled, 1, ended ? 0 : POLL_MILLISECONDS) > 0;
    if (more && !pass_on(l)) polled.fd = -1;
  }
  close(l->says);
}

/* What was written anew meanwhile is another file. */
static struct stat look_at(const char *dir, uint64_t id, const char *file) {
  struct stat found = {0};
  char *path = NULL;
  if (pl_run_path(dir, id, file, &path, NULL) == PL_OK && stat(path, &found) != 0) found = (struct stat){0};
  pl_free(path);
  return found;
}

static bool is_same(const struct stat *a, const struct stat *b) {
  return a->st_ino == b->st_ino && a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The processes that this job started for the run have ended, wherever they were. */
static bool is_own_job(const char *job) {
  const pl_owner self = pl_owner_self();
  return strcmp(self.job, job) == 0;
}

/* "srun ended with exit status 137 after step 79: n3: task 2: Killed" */
static void describe(const pl_ranks_run_args *a, const pl_job *job, const launcher *l, char *out, size_t size) {
  const bool killed = WIFSIGNALED(l->status);
  char *journal = NULL;
  int64_t step = 0;
  if (pl_run_path(a->dir, job->id, "journal", &journal, NULL) == PL_OK) step = pl_journal_last_step(journal);
  pl_free(journal);
  snprintf(out, size, "%s ended %s %d after step %" PRId64 "%s%s", l->name, killed ? "by signal" : "with exit status",
           killed ? WTERMSIG(l->status) : WEXITSTATUS(l->status), step < 0 ? 0 : step, l->cause[0] != '\0' ? ": " : "",
           l->cause);
}

/* Under the claim: another process may have taken the run over by now. */
static void record(const pl_ranks_run_args *a, const pl_job *job, const launcher *l, const char *sentence) {
  const pl_claim_rules rules = {.job_is_gone = is_own_job};
  bool taken = false;
  if (pl_run_claim_by(a->dir, job->id, &rules, &taken, NULL) != PL_OK || !taken) return;
  (void)!pl_run_write_result(a->dir, job->id, l->told ? PL_RUN_STOPPED : PL_RUN_FAILED, NULL, sentence, NULL);
  pl_run_release(a->dir, job->id);
}

/* *begun: rank 0 came as far as the claim, the first thing that it touches. */
static pl_status start_once(const pl_ranks_run_args *a, const pl_job *job, launcher *l, bool *begun, pl_err *e) {
  const struct stat before = look_at(a->dir, job->id, "claim");
  pl_status st = start_all(a, l, e);
  if (st != PL_OK) return st;
  watch(l);
  const struct stat after = look_at(a->dir, job->id, "claim");
  *begun = !is_same(&before, &after);
  return PL_OK;
}

/* Open MPI 4.1 can crash in its own start on nodes that are busy, when a message comes before it has a receiver; and a
 * launcher may fail to start everything. Where nothing has begun nothing can go wrong by starting again. */
pl_status pl_ranks_run(const pl_ranks_run_args *args, pl_job *job, pl_err *e) {
  launcher l = {0};
  char sentence[PL_ERR_TEXT] = "";
  bool begun = false;
  const struct stat before = look_at(args->dir, job->id, "result.json");
  for (int starts = 1;; starts++) {
    pl_status st = start_once(args, job, &l, &begun, e);
    if (st != PL_OK) return st;
    if (l.status == 0) break;
    describe(args, job, &l, sentence, sizeof sentence);
    const bool again = !begun && !l.told && starts < MOST_STARTS;
    printf("run %" PRIu64 ": %s%s\n", job->index, sentence, again ? "; it had not begun and is started again" : "");
    fflush(stdout);
    if (!again) break;
  }
  const struct stat after = look_at(args->dir, job->id, "result.json");
  if (l.status != 0 && is_same(&before, &after)) record(args, job, &l, sentence);
  job->state = pl_run_state_of(args->dir, job->id);
  return PL_OK;
}
