/* Trains one run: composes model, data, optimizer, corrections, schedule and log by their interfaces. */
#ifndef PL_TRAIN_TRAINER_H
#define PL_TRAIN_TRAINER_H

#include <signal.h>

#include "core/config/run_schedule.h"
#include "core/pipeline/world.h"
#include "core/train/dataset.h"
#include "core/train/log_sink.h"
#include "core/train/model.h"

typedef enum pl_end { PL_END_DONE, PL_END_DIVERGED, PL_END_STOPPED } pl_end;

typedef struct pl_outcome {
  pl_end end;
  int64_t steps; /* updates applied or skipped */
  int64_t tokens;
  int64_t first_bad_step; /* update whose loss or gradient was not finite; -1 when none */
  int64_t skipped;        /* non-finite updates that were skipped (train.nonfinite = skip) */
  double initial_val_loss, final_val_loss, best_val_loss, final_train_loss,
      val_loss_y;           /* nats per token; NaN when unknown */
  double seconds;           /* of this attempt */
  double tokens_per_second; /* of this attempt, training alone */
  int64_t resumed_from;     /* step of the checkpoint that this attempt started from; -1 for a fresh start */
  char reason[160];         /* why it diverged; "" otherwise */
} pl_outcome;

typedef struct pl_trainer_args {
  const pl_run_config *config; /* checked; borrowed */
  const pl_dataset_type *dataset_type;
  const pl_dataset *dataset; /* open, or NULL when the type has no tokens; borrowed */
  pl_device *device;         /* borrowed */
  pl_world *world;           /* borrowed; NULL: this process alone. Rank 0's other arguments count for what is
                                logged, said and asked; the others may have NULL there */
  const char *root;          /* folder that a custom schedule's relative path is taken from; NULL: the working one */
  const char *trace_folder;  /* exists; for pipeline.trace; NULL: no traces */
  pl_log_sink *sink;         /* borrowed; NULL: no log */
  const char *checkpoint_folder; /* made by the first checkpoint; NULL: no checkpoints */
  const volatile sig_atomic_t
      *stop; /* when it becomes non-zero: finish the update, checkpoint, PL_END_STOPPED; NULL: never */
  /* Initial weights of a stage instead of the drawn ones, into zeroed host memory x[layout->size]; NULL: drawn. For
   * tests. */
  void (*init)(void *self, size_t stage, const pl_layout *layout, pl_real *x);
  void *init_self;
  /* Asked right before a checkpoint is published: false when the run belongs to another process by now, which ends the
   * training with PL_FAIL; NULL: it never does. */
  bool (*owned)(void *self);
  void *owned_self;
  /* Called after every update; NULL: not. */
  void (*progress)(void *self, int64_t step, int64_t steps, double train_loss, double val_loss);
  void *progress_self;
  /* Lines worth a log (the optimizer's rules, resume, fallback to an older checkpoint, skipped updates); NULL: not. */
  void (*say)(void *self, const char *line);
  void *say_self;
} pl_trainer_args;

/* Relations between sections that no single table can check: batch_tokens against context, stages, chunks and partition
 * against layers, replicas and microbatches against sequences, the delays against the schedule, the schedule against
 * its numbers; and what needs every stage (a global clip, a tied head, nonfinite "skip") where the schedule leaves no
 * time for it, or on a per-stage profile without simulate_only. Of a custom schedule all that its file does not have to
 * be read for. */
PL_MUST_CHECK pl_status pl_run_config_check(const pl_run_config *c, pl_err *e);
PL_MUST_CHECK pl_status pl_run_config_check_with(const pl_run_config *c, pl_run_memo *memo, pl_err *e);

/* The rest of a custom schedule's checks, for a config that pl_run_config_check has passed: its file, its delays, what
 * needs every stage. PL_OK for all other schedules. `root`: the folder that a relative schedule_file is taken from, the
 * same as for data; NULL: the working folder. */
PL_MUST_CHECK pl_status pl_run_config_check_file(const pl_run_config *c, const char *root, pl_err *e);

/* True when the run uses simulate_only for what a real pipeline cannot do: a global clip, a tied head or nonfinite
 * "skip" on a per-stage delay. The config is checked. */
bool pl_run_config_is_simulated(const pl_run_config *c);

/* Whether that many processes can train the run: 1, or replicas * (1 to stages); more than one only with a schedule
 * that is not simulated. PL_BAD says what is allowed. */
PL_MUST_CHECK pl_status pl_run_config_check_ranks(const pl_run_config *c, size_t processes, pl_err *e);

/* Trains to the end, to divergence or to `stop`; resumes from the newest good checkpoint in the folder. Collective: all
 * get the same outcome. After a failure the world is of no more use: what others wait for never comes. */
PL_MUST_CHECK pl_status pl_train(const pl_trainer_args *args, pl_outcome *out, pl_err *e);

/* For tests and tools that need the weights: like pl_train, and copies the final x of every stage of this process, in
 * stage order with padding, to the host. *weights is released by pl_free. */
PL_MUST_CHECK pl_status pl_train_weights(const pl_trainer_args *args, pl_outcome *out, pl_real **weights, size_t *count,
                                         pl_err *e);

#endif
