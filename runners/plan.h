/* From a sweep file to a list of jobs: load, expand, preflight, freeze. Nothing is written before everything was
 * checked. */
#ifndef PL_RUNNERS_PLAN_H
#define PL_RUNNERS_PLAN_H

#include "core/config/registry.h"
#include "results/run_dir.h"
#include "runners/launchers/slurm/section.h"
#include "runners/options.h"
#include "runners/preflight.h"

typedef struct pl_job {
  uint64_t index, id;
  int64_t steps, batch_tokens, threads;
  bool on_gpu; /* its device is a GPU */
  double cost; /* estimated floating-point operations */
  char *label; /* axis values */
  pl_run_state state;
  const pl_slurm_config *slurm; /* what it asks of Slurm; borrowed from the plan's section */
} pl_job;

typedef struct pl_plan {
  pl_registries registries; /* the sweep borrows them: the plan stays where it was made */
  pl_sweep *sweep;
  pl_slurm_section *slurm;
  char *dir;    /* the result directory */
  char *folder; /* of the sweep file */
  char *data_root;
  pl_job *jobs; /* every run of the sweep, in order */
  size_t count, capacity;
  pl_sweep_counts counts;
  size_t states[PL_RUN_STATES];
} pl_plan;

/* Loads the sweep and checks every run. `path` may be a result directory: then the sweep is the one that was frozen
 * there last, and its results stay there. PL_BAD with one sentence when anything is wrong, also above o->max_runs
 * without o->yes. */
PL_MUST_CHECK pl_status pl_plan_make(const pl_options *o, const char *path, pl_plan *out, pl_err *e);

/* The same as pl_plan_make of a document that was made from a result directory: `path` stands for it in messages,
 * relative data paths are taken from where that directory's are. */
PL_MUST_CHECK pl_status pl_plan_make_from(const pl_options *o, const pl_json *document, const char *path,
                                          const char *dir, pl_plan *out, pl_err *e);

/* The folder that the data paths of a result directory's runs start from; released by pl_free. */
PL_MUST_CHECK pl_status pl_plan_data_root(const pl_options *o, const char *dir, char **out, pl_err *e);

/* Makes the directory, run folders and runs.tsv, and reads the state of each run. */
PL_MUST_CHECK pl_status pl_plan_freeze(pl_plan *p, pl_err *e);
void pl_plan_free(pl_plan *p);

/* True for runs that a new invocation starts: pending, failed, stopped, lost. */
bool pl_job_is_open(const pl_job *j);

/* The first run on a GPU that has not ended, also before the plan is frozen; NULL: none. */
const pl_job *pl_plan_needs_gpu(const pl_plan *p);

#endif
