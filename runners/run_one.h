/* Trains one run of a result directory from claim to result.json. */
#ifndef PL_RUNNERS_RUN_ONE_H
#define PL_RUNNERS_RUN_ONE_H

#include "core/device/profile.h"
#include "core/train/trainer.h"
#include "results/h5_file.h"
#include "results/provenance.h"
#include "results/run_dir.h"

typedef struct pl_run_one_args {
  const char *sweep_dir, *data_root;
  uint64_t id;
  bool own_log; /* standard output and error of this process go to the run's log.<attempt>.txt */
  bool wait;    /* watch a holder that may be gone, for as long as pl_claim_seconds, and then take its run over */
  int64_t max_attempts;    /* that begin at the same checkpoint; the next one fails at once. 0: not counted */
  pl_h5 *blank;            /* for curves.h5, see pl_curves_write_into; taken, or left to the caller's end; NULL: none */
  const pl_origin *origin; /* for meta.json; NULL: it is read */
  const char *note;    /* how this program differs from the submitted one, for log and meta.json; NULL: it does not */
  pl_profile *profile; /* of this process; opened when the run is trained here. NULL: nothing is measured */
  const volatile sig_atomic_t *stop;
  pl_world *world; /* trains the run together; the other ranks call pl_run_follow. NULL: this process alone */
  void (*progress)(void *self, int64_t step, int64_t steps, double train_loss, double val_loss); /* NULL: not */
  void *progress_self;
  void (*trained)(void *self); /* on the CPU, at the end: only files are left to be written; NULL: not */
  void *trained_self;
} pl_run_one_args;

typedef struct pl_run_one_result {
  bool elsewhere; /* another live process holds the run; nothing was done */
  pl_run_state state;
  pl_outcome outcome;
} pl_run_one_result;

/* A run that is already done, diverged or cancelled is left alone. Failure of the run (also of its files) is PL_FAIL or
 * PL_BAD with the sentence, which is in result.json too as far as that can be written, unless another process took the
 * run over. PL_OK otherwise, also for diverged and stopped. */
PL_MUST_CHECK pl_status pl_run_one(const pl_run_one_args *args, pl_run_one_result *out, pl_err *e);

/* What ranks above 0 do while rank 0 is in pl_run_one: they train what it says, if it says anything, and write nothing
 * but their stages' checkpoints and traces. After PL_OK every rank has rank 0's state and outcome. */
PL_MUST_CHECK pl_status pl_run_follow(pl_world *world, const volatile sig_atomic_t *stop, pl_run_one_result *out,
                                      pl_err *e);

#endif
