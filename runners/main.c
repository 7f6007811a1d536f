/* The program: finds the command, runs it, prints the one sentence of a failure, turns the status into the exit code.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static const pl_command *find_command(const char *name) {
  const char *names[COMMAND_COUNT];
  for (size_t i = 0; i < COMMAND_COUNT; i++) {
    names[i] = commands[i]->name;
    if (strcmp(name, names[i]) == 0) return commands[i];
  }
  size_t near = pl_nearest(name, names, COMMAND_COUNT);
  fprintf(stderr, "pipelag: unknown command \"%s\"", name);
  if (near != SIZE_MAX) fprintf(stderr, "; did you mean \"%s\"?", names[near]);
  fprintf(stderr, "; `pipelag --help` lists the commands\n");
  return NULL;
}

int main(int argc, char **argv) {
  setlocale(LC_CTYPE, "");
  if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
    print_usage(argc < 2 ? stderr : stdout);
    return argc < 2 ? PL_BAD : PL_OK;
  }
  if (strcmp(argv[1], "--version") == 0) {
    printf("pipelag %s (%.12s%s)\n", PL_VERSION, PL_GIT_COMMIT, PL_GIT_DIFF[0] != '\0' ? "+" : "");
    return PL_OK;
  }
  const pl_command *command = find_command(argv[1]);
  if (command == NULL) return PL_BAD;
  pl_options options;
  pl_options_parse(command, argc - 1, argv + 1, &options);
  pl_err e = {0};
  pl_status st = command->run(&options, &e);
  if (e.text[0] != '\0') fprintf(stderr, "pipelag: %s\n", e.text);
  if (fflush(stdout) != 0 && st == PL_OK) {
    fprintf(stderr, "pipelag: standard output could not be written\n");
    st = PL_FAIL;
  }
  return st;
}
