/* A command of the command line: one file in runners/commands and one line in its list.def. */
#ifndef PL_RUNNERS_COMMAND_H
#define PL_RUNNERS_COMMAND_H

#include "runners/options.h"

typedef struct pl_command {
  const char *name;
  const char *arguments; /* "SWEEP.json" */
  const char *summary;   /* one line */
  const char *options;   /* keys of the options it takes, see options.c */
  size_t min_args, max_args;
  bool together; /* several processes of it, started by mpirun or srun, work together */
  /* Returns the exit status; a failure's sentence is in *e and printed by main. */
  pl_status (*run)(const pl_options *o, pl_err *e);
} pl_command;

#endif
