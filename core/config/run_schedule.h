/* The pipeline schedule that a run's configuration names: pipeline.schedule is an index into pl_schedule_types, or
 * their number for a custom schedule, which is read from pipeline.schedule_file. */
#ifndef PL_CONFIG_RUN_SCHEDULE_H
#define PL_CONFIG_RUN_SCHEDULE_H

#include "core/config/run_config.h"
#include "core/pipeline/library.h"
#include "core/pipeline/timeline.h"

/* NULL for a custom schedule. */
const pl_schedule_type *pl_run_config_schedule_type(const pl_run_config *c);

/* "2bw", "custom". */
const char *pl_run_config_schedule_name(const pl_run_config *c);

/* Whether the delay is simulated by definition, in one process: it has no order that several stages could follow. */
bool pl_run_config_in_one_process(const pl_run_config *c);

/* Groups of layers in a stage. 0 in the config is the schedule's own number; a custom one has 1 then. */
size_t pl_run_config_chunks(const pl_run_config *c);

/* Makes the schedule and checks that it works (pl_schedule_check), has the config's stages, microbatches and chunks,
 * and gives the delays of root.delay. `root`: the folder that a relative schedule_file is taken from; NULL: the working
 * folder. PL_BAD in a sentence that starts with the key; for a file it names line and column. A pl_schedule is large:
 * it belongs on the heap. The caller frees what is in *out, also after a failure. */
PL_MUST_CHECK pl_status pl_run_config_schedule(const pl_run_config *c, const char *root, pl_schedule *out, pl_err *e);

/* What follows from a schedule for the configuration. */
typedef struct pl_run_facts {
  char name[PL_SCHEDULE_NAME];
  int64_t delay[PL_MAX_STAGES]; /* steady, of each stage */
  pl_slack slack;               /* exists where all runs in one process */
} pl_run_facts;

/* Remembers facts, since the runs of a sweep share a few schedules. Zero-initialise; owns nothing. Its size is the
 * number of schedules that may take turns. */
enum { PL_RUN_MEMO = 16 };
typedef struct pl_run_memo {
  struct pl_run_known {
    int64_t key[5];
    pl_err refused; /* PL_OK where the schedule works */
    pl_run_facts facts;
  } known[PL_RUN_MEMO];
  size_t count, next;
} pl_run_memo;

/* The facts of any schedule but lagged, whatever root.delay says; fails as pl_run_config_schedule does otherwise.
 * `memo` may be NULL; it is not used for a custom schedule, whose file may change. */
PL_MUST_CHECK pl_status pl_run_config_facts(const pl_run_config *c, const char *root, pl_run_memo *memo,
                                            pl_run_facts *out, pl_err *e);

/* Whether root.delay says the same as `delay`[stages], and the refusal of a config where it does not. */
bool pl_run_config_has_delays(const pl_run_config *c, const int64_t *delay);
PL_MUST_CHECK pl_status pl_run_config_check_delays(const pl_run_config *c, const char *name, const int64_t *delay,
                                                   pl_err *e);

/* Puts `delay`[stages] into root.delay: one number when all stages have the same, else a list. */
void pl_run_config_set_delays(pl_run_config *c, const int64_t *delay);

/* pl_run_config_build with a memo. */
PL_MUST_CHECK pl_status pl_run_config_build_with(const pl_registries *r, const pl_entry *entries, size_t count,
                                                 pl_run_memo *memo, pl_run_config *out, pl_err *e);

#endif
