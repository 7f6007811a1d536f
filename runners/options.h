/* The command line: one table of options, of which each command names the ones it takes. */
#ifndef PL_RUNNERS_OPTIONS_H
#define PL_RUNNERS_OPTIONS_H

#include "core/pipeline/schedule.h"
#include "sweeps/sweep.h"

enum { PL_MAX_ARGS = 256, PL_MAX_SETS = 64, PL_MAX_JOBS = 4096 };

/* Of `pipelag schedule`. */
typedef struct pl_schedule_options {
  size_t stages, microbatches, chunks; /* 0: not given */
  int64_t updates;
  double forward, backward, weight, latency, transfer; /* weight < 0: not given */
  const char *delay, *file, *svg;
  const char *costs, *model;          /* of a plan */
  double flops_per_second, bandwidth; /* 0: not given */
  const char *measured;               /* the directory whose run is shown; NULL: a schedule by itself */
  bool text, allow_min_microbatches, plan;
} pl_schedule_options;

typedef struct pl_options {
  const char *args[PL_MAX_ARGS]; /* positional, borrowed from argv like all texts here */
  size_t arg_count;
  const char *set_texts[PL_MAX_SETS];
  size_t set_count;
  const char *map_texts[PL_MAX_SETS];
  size_t map_count;
  const char *format;
  const char *output, *data_root, *at;
  const char *select_on, *target, *against, *resolve, *table, *extend, *heat; /* of what is compared */
  bool dry_run, json, csv, quiet, yes, fail_fast, no_pin, strict_diverged, all;
  bool runs, watch, verify, follow, slurm;
  bool failed, timeout, lost, cancelled; /* which runs */
  int verbose;
  int jobs;          /* 0: one per allowed CPU */
  uint64_t max_runs; /* asked for confirmation above */
  int64_t shard_tokens;
  const char *prefix;
  pl_schedule_options schedule;
  bool restart_ring;
  bool profile;
} pl_options;

struct pl_command;

/* Parses argv[1..] for a command. As argp does, it ends the program after --help (0) and after a usage error
 * (usage_status). */
void pl_options_parse(const struct pl_command *command, int argc, char **argv, int usage_status, pl_options *out);

pl_sets pl_options_sets(const pl_options *o);

#endif
