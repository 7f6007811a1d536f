/* Runs jobs on this machine: a bounded pool, one process per run, longest first. Runs of one thread are pinned, each to
 * a CPU that no other pool holds, where that many may be used. A run that has trained on the CPU and only waits for the
 * disk gives its place to the next. Runs on GPUs get one each, in turn, out of those that this process may use; others,
 * out of those that CUDA_VISIBLE_DEVICES lists. */
#ifndef PL_RUNNERS_LAUNCHERS_LOCAL_H
#define PL_RUNNERS_LAUNCHERS_LOCAL_H

#include "runners/plan.h"

typedef struct pl_local_args {
  const char *dir, *data_root; /* borrowed */
  pl_job *jobs;                /* their states follow what happens */
  size_t count;
  int slots;         /* 0: one per CPU that this process may use, fewer for runs of several threads; one per GPU where
                        runs ask for those */
  bool fail_fast;    /* a failed run stops the rest */
  bool no_pin;       /* leave it to the system on which CPU a run is */
  const char *cores; /* file by which pools share the CPUs; NULL: PL_CORES_FILE */
  bool quiet;
  bool under_slurm;     /* the caller has installed signals, patient ones; runs wait for holders that may be gone */
  int64_t max_attempts; /* see pl_run_one_args */
  const char *note;     /* see pl_run_one_args */
} pl_local_args;

typedef struct pl_local_result {
  size_t done, diverged, failed, stopped, elsewhere, not_started;
  int signal; /* that asked to stop; 0 when none did */
} pl_local_result;

/* Starts every open job and waits. A run that fails does not stop the rest. On a signal the runs finish
 * their update and checkpoint, then it returns. PL_FAIL when no process can be started. */
PL_MUST_CHECK pl_status pl_local_run(const pl_local_args *args, pl_local_result *out, pl_err *e);

#endif
