#include "runners/launchers/slurm/call.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/fs.h"
#include "core/base/memory.h"

extern char **environ;

enum { SENTENCE = 256, KILL_SECONDS = 2 };

/* A job that is submitted from inside another one must not inherit that one's settings. */
static bool is_passed_on(const char *variable) {
  static const char *const scrubbed[] = {"SLURM_", "SBATCH_", "SQUEUE_", "SACCT_", "SINFO_", "SCONTROL_",
                                         "SRUN_",  "SALLOC_", "PMI",     "OMPI_",  "LC_ALL="};
  if (strncmp(variable, "SLURM_CONF=", 11) == 0) return true;
  for (size_t i = 0; i < sizeof scrubbed / sizeof *scrubbed; i++)
    if (strncmp(variable, scrubbed[i], strlen(scrubbed[i])) == 0) return false;
  return true;
}

/* Borrows the strings of the environment. */
static pl_status clean_environment(char ***out, pl_err *e) {
  static char locale[] = "LC_ALL=C";
  size_t count = 0;
  while (environ != NULL && environ[count] != NULL) count++;
  pl_status st = pl_alloc(count + 2, sizeof **out, "an environment", out, e);
  if (st != PL_OK) return st;
  size_t kept = 0;
  for (size_t i = 0; i < count; i++)
    if (is_passed_on(environ[i])) (*out)[kept++] = environ[i];
  (*out)[kept] = locale;
  return PL_OK;
}

/* The text as a file, so that a program that does not read it to the end does no harm. */
static pl_status open_input(const char *input, int *fd, pl_err *e) {
  *fd = input == NULL ? open("/dev/null", O_RDONLY | O_CLOEXEC) : memfd_create("input", MFD_CLOEXEC);
  if (*fd < 0) return pl_fail(e, PL_FAIL, "standard input for a command cannot be made: %s", strerror(errno));
  if (input == NULL) return PL_OK;
  pl_status st = pl_write_all(*fd, input, strlen(input), "standard input for a command", e);
  if (st == PL_OK && lseek(*fd, 0, SEEK_SET) != 0)
    st = pl_fail(e, PL_FAIL, "standard input for a command cannot be rewound: %s", strerror(errno));
  return st;
}

/* In a process group of its own: the terminal's Ctrl-C must not cut an answer off, and a time-out ends its children
 * too.
 */
static int spawn(const char *const *argv, char **environment, const int fds[3], pid_t *pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none;
  sigemptyset(&none);
  if (posix_spawn_file_actions_init(&actions) != 0) return ENOMEM;
  int error = posix_spawnattr_init(&attributes);
  if (error == 0) {
    for (int i = 0; i < 3 && error == 0; i++) error = posix_spawn_file_actions_adddup2(&actions, fds[i], i);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    char **arguments = (char **)(uintptr_t)argv; /* posix_spawnp does not write into them */
    if (error == 0) error = posix_spawnp(pid, argv[0], &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

/* True while there may be more. */
static bool read_some(int fd, pl_str *out) {
  char bytes[65536];
  ssize_t got = read(fd, bytes, sizeof bytes);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  pl_str_append_bytes(out, bytes, (size_t)got);
  return got > 0;
}

/* Reads both to their ends; false when the time is over before. */
static bool read_both(int out_fd, int err_fd, double end, pl_call *c) {
  struct pollfd polled[2] = {{.fd = out_fd, .events = POLLIN}, {.fd = err_fd, .events = POLLIN}};
  pl_str *const texts[2] = {&c->out, &c->err};
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    double left = end - pl_clock_seconds();
    if (left <= 0) return false;
    if (poll(polled, 2, (int)fmin(ceil(left * 1000), 1e6)) < 0 && errno != EINTR) return false;
    for (int i = 0; i < 2; i++)
      if (polled[i].fd >= 0 && polled[i].revents != 0 && !read_some(polled[i].fd, texts[i])) polled[i].fd = -1;
  }
  return true;
}

/* False when it has not ended by then. */
static bool wait_until(pid_t pid, double end, int *status) {
  const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};
  for (;;) {
    pid_t got = waitpid(pid, status, WNOHANG);
    if (got == pid) return true;
    if (got < 0 && errno != EINTR) {
      *status = -1;
      return true;
    }
    if (pl_clock_seconds() >= end) return false;
    nanosleep(&pause, NULL);
  }
}

static void finish(pid_t pid, bool ended, double end, pl_call *c) {
  int status = -1;
  ended = ended && wait_until(pid, end, &status);
  c->timed_out = !ended;
  if (!ended) {
    kill(-pid, SIGTERM);
    bool gone = wait_until(pid, pl_clock_seconds() + KILL_SECONDS, &status);
    kill(-pid, SIGKILL);
    if (!gone) waitpid(pid, &status, 0);
  }
  c->exit_code = ended && status != -1 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static pl_status not_started(const char *program, int error, pl_err *e) {
  if (error == ENOENT || error == EACCES)
    return pl_fail(e, PL_BAD,
                   "%s: not found on PATH; this needs the commands of Slurm, as on a login node of a cluster", program);
  return pl_fail(e, PL_BAD, "%s: cannot be started: %s", program, strerror(error));
}

pl_status pl_call_run(const char *const *argv, const char *input, double seconds, pl_call *out, pl_err *e) {
  pl_status st = PL_OK;
  char **environment = NULL;
  int in = -1, outs[2] = {-1, -1}, errs[2] = {-1, -1};
  pid_t pid = -1;
  struct sigaction before, usual = {.sa_handler = SIG_DFL};
  const double end = pl_clock_seconds() + seconds;
  sigaction(SIGCHLD, &usual, &before); /* where it is ignored, nobody learns how a child ended */
  *out = (pl_call){.exit_code = -1};
  PL_TRY(clean_environment(&environment, e));
  PL_TRY(open_input(input, &in, e));
  if (pipe2(outs, O_CLOEXEC) != 0 || pipe2(errs, O_CLOEXEC) != 0)
    PL_TRY(pl_fail(e, PL_FAIL, "a pipe from %s cannot be made: %s", argv[0], strerror(errno)));
  int error = spawn(argv, environment, (const int[3]){in, outs[1], errs[1]}, &pid);
  close(outs[1]);
  close(errs[1]);
  outs[1] = errs[1] = -1;
  if (error != 0) PL_TRY(not_started(argv[0], error, e));
  finish(pid, read_both(outs[0], errs[0], end, out), end, out);
  PL_TRY(pl_str_check(&out->out, e));
  PL_TRY(pl_str_check(&out->err, e));
out:
  sigaction(SIGCHLD, &before, NULL);
  for (int i = 0; i < 2; i++) {
    if (outs[i] >= 0) close(outs[i]);
    if (errs[i] >= 0) close(errs[i]);
  }
  if (in >= 0) close(in);
  pl_free(environment);
  if (st != PL_OK) pl_call_free(out);
  return st;
}

void pl_call_free(pl_call *c) {
  pl_str_free(&c->out);
  pl_str_free(&c->err);
}

/* The last line before `end` that is not blank: its start, and its end in *stop. NULL when there is none. */
static const char *last_line(const char *text, const char *end, const char **stop) {
  while (end > text && strchr(" \t\r\n", end[-1]) != NULL) end--;
  if (end == text) return NULL;
  *stop = end;
  while (end > text && end[-1] != '\n') end--;
  return end;
}

/* After "sbatch: error: ". */
static const char *after_prefix(const char *line, const char *stop) {
  static const char *const marks[] = {"error: ", "fatal: "};
  for (size_t i = 0; i < 2; i++) {
    const char *found = memmem(line, (size_t)(stop - line), marks[i], strlen(marks[i]));
    const char *colon = memchr(line, ':', (size_t)(stop - line));
    if (found != NULL && (found == line || (colon != NULL && found == colon + 2))) return found + strlen(marks[i]);
  }
  return line;
}

char *pl_call_sentence(const pl_call *c, char *out) {
  const char *text = pl_str_text(&c->err), *stop = NULL, *cause_stop = NULL;
  const char *line = last_line(text, text + strlen(text), &stop);
  if (c->timed_out && line == NULL) {
    snprintf(out, SENTENCE, "it did not answer in time");
  } else if (c->timed_out) {
    const char *said = after_prefix(line, stop);
    snprintf(out, SENTENCE, "it did not answer in time: %.*s", (int)(stop - said), said);
  } else if (line == NULL) {
    snprintf(out, SENTENCE, "it ended with exit code %d and said nothing", c->exit_code);
  } else {
    const char *said = after_prefix(line, stop), *cause = last_line(text, line, &cause_stop);
    if (cause != NULL) cause = after_prefix(cause, cause_stop);
    /* "AssocMaxSubmitJobLimit" before a sentence that names three kinds of limits. */
    bool word = cause != NULL && memchr(cause, ' ', (size_t)(cause_stop - cause)) == NULL;
    snprintf(out, SENTENCE, "%.*s%s%.*s%s", (int)(stop - said), said, word ? " (" : "",
             word ? (int)(cause_stop - cause) : 0, word ? cause : "", word ? ")" : "");
  }
  for (char *at = out; *at != '\0'; at++)
    if ((unsigned char)*at < ' ') *at = ' ';
  return out;
}
