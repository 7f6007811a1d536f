/* The command line: one table of options, of which each command names the ones it takes. */
#ifndef PL_RUNNERS_OPTIONS_H
#define PL_RUNNERS_OPTIONS_H

#include "sweeps/sweep.h"

enum { PL_MAX_ARGS = 256, PL_MAX_SETS = 64, PL_MAX_JOBS = 4096 };

typedef struct pl_options {
  const char *args[PL_MAX_ARGS]; /* positional, borrowed from argv like all texts here */
  size_t arg_count;
  const char *set_texts[PL_MAX_SETS];
  size_t set_count;
  const char *output, *data_root, *at;
  bool dry_run, json, csv, quiet, yes, fail_fast, strict_diverged, all;
  int verbose;
  int jobs;          /* 0: one per allowed CPU */
  uint64_t max_runs; /* asked for confirmation above */
  int64_t shard_tokens;
  const char *prefix;
} pl_options;

struct pl_command;

/* Parses argv[1..] for a command. As argp does, it ends the program after --help (0) and after a usage error (2). */
void pl_options_parse(const struct pl_command *command, int argc, char **argv, pl_options *out);

pl_sets pl_options_sets(const pl_options *o);

#endif
