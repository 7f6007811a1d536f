/* The program: finds the command, runs it, prints the one sentence of a failure, turns the status into the exit code.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/pipeline/world.h"
#include "pl_version.h"
#include "runners/command.h"

#define PL_COMMAND(name) extern const pl_command pl_command_##name;
#include "runners/commands/list.def"
#undef PL_COMMAND

#define PL_COMMAND(name) &pl_command_##name,
static const pl_command *const commands[] = {
#include "runners/commands/list.def"
};

enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

static void print_usage(FILE *out) {
  fprintf(out, "Usage: pipelag COMMAND [OPTION...] [ARGUMENT...]\n\n"
               "Measures what gradient delay costs an optimizer, and what a correction wins back.\n\n");
  for (size_t i = 0; i < COMMAND_COUNT; i++)
    fprintf(out, "  %-8s %-22s %s\n", commands[i]->name, commands[i]->arguments, commands[i]->summary);
  fprintf(out,
          "\n`pipelag COMMAND --help` tells a command's options. Exit status: 0 ok, 1 a run or a file failed,\n"
          "2 bad usage, spec or environment (nothing started), 3 nothing selected, 75 checkpointed after a signal.\n");
}

static const pl_command *find_command(const char *name, bool silent) {
  const char *names[COMMAND_COUNT];
  for (size_t i = 0; i < COMMAND_COUNT; i++) {
    names[i] = commands[i]->name;
    if (strcmp(name, names[i]) == 0) return commands[i];
  }
  if (silent) return NULL;
  size_t near = pl_nearest(name, names, COMMAND_COUNT);
  fprintf(stderr, "pipelag: unknown command \"%s\"", name);
  if (near != SIZE_MAX) fprintf(stderr, "; did you mean \"%s\"?", names[near]);
  fprintf(stderr, "; `pipelag --help` lists the commands\n");
  return NULL;
}

static void print_version(FILE *out, struct argp_state *state) {
  (void)state;
  fprintf(out, "pipelag %s (%.12s%s)\n", PL_VERSION, PL_GIT_COMMIT, PL_GIT_DIFF[0] != '\0' ? "+" : "");
}

/* What argp calls for --version after a command. */
void (*argp_program_version_hook)(FILE *, struct argp_state *) = print_version;

/* A file opened while a standard stream is closed would get its number, and messages would go into that file. The
 * stream becomes one that cannot be used, so that writing to it still fails. */
static void fill_closed_streams(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
      (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY); /* the lowest free number is this one */
}

static bool is_one_of(const char *word, const char *a, const char *b, const char *c) {
  return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

/* Of several processes rank 0 alone says what is wrong with a command line, and tells the exit status: mpirun ends them
 * all at the first other one. What they print goes nowhere meanwhile. */
static void parse_options(const pl_command *command, int argc, char **argv, bool follows, pl_options *out) {
  const int nowhere = follows ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
  int own[2] = {-1, -1};
  for (int i = 0; nowhere >= 0 && i < 2; i++) {
    own[i] = fcntl(STDOUT_FILENO + i, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (own[i] >= 0) dup2(nowhere, STDOUT_FILENO + i);
  }
  pl_options_parse(command, argc, argv, follows ? PL_OK : PL_BAD, out);
  for (int i = 0; i < 2; i++) {
    if (own[i] < 0) continue;
    dup2(own[i], STDOUT_FILENO + i);
    close(own[i]);
  }
  if (nowhere >= 0) close(nowhere);
}

/* Where several processes were started of what is for one, or in a build that cannot join them, rank 0 refuses and the
 * others leave the exit status to it. */
static pl_status run_command(int argc, char **argv) {
  size_t rank = 0;
  const bool among = pl_world_launched_among(&rank), follows = among && rank > 0;
  const pl_command *command = find_command(argv[1], follows);
  if (command == NULL) return follows ? PL_OK : PL_BAD;
  const bool for_one = among && !(command->together && pl_world_has_mpi());
  if (for_one && follows) return PL_OK;
  pl_options options;
  parse_options(command, argc - 1, argv + 1, follows, &options);
  pl_err e = {0};
  pl_status st =
      for_one && !command->together
          ? pl_fail(&e, PL_BAD, "%s: mpirun or srun started several processes; allowed: one, or `pipelag train`",
                    command->name)
          : command->run(&options, &e);
  if (e.text[0] != '\0') fprintf(stderr, "pipelag: %s\n", e.text);
  return st;
}

int main(int argc, char **argv) {
  pl_status st = PL_OK;
  fill_closed_streams();
  setlocale(LC_CTYPE, "");
  if (argc < 2) {
    print_usage(stderr);
    st = PL_BAD;
  } else if (is_one_of(argv[1], "--help", "-h", "help")) {
    print_usage(stdout);
  } else if (is_one_of(argv[1], "--version", "-V", "version")) {
    print_version(stdout, NULL);
  } else {
    st = run_command(argc, argv);
  }
  if (fflush(stdout) != 0 && st == PL_OK) {
    fprintf(stderr, "pipelag: standard output could not be written\n");
    st = PL_FAIL;
  }
  return st;
}
