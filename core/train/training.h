/* One training as it runs: everything that setup allocates, shared by the trainer's own files. Stages are the model's:
 * with chunks stage s belongs to stage s % pipeline.stages of the schedule. */
#ifndef PL_TRAIN_TRAINING_H
#define PL_TRAIN_TRAINING_H

#include "core/pipeline/engine.h"
#include "core/pipeline/trace.h"
#include "core/train/batch.h"
#include "core/train/board.h"
#include "core/train/checkpoint.h"
#include "core/train/evaluate.h"
#include "core/train/probe.h"
#include "core/train/step.h"
#include "core/train/trainer.h"

typedef enum pl_work_phase {
  PL_WORK_OPEN,     /* gradients of update ring.newest are being added */
  PL_WORK_REDUCING, /* they are complete here and being summed over the replicas' processes */
  PL_WORK_TYING,    /* the two uses of a tied matrix are being summed */
  PL_WORK_SUMMED,   /* the gradient is whole */
  PL_WORK_READY,    /* its norms are on the board */
  PL_WORK_BOUNDARY  /* version ring.newest is there: what is due at it */
} pl_work_phase;

/* Where a stage is between two versions. */
typedef struct pl_work {
  pl_work_phase phase;
  uint64_t closed;     /* bits: replicas of this process whose gradient of the update is complete */
  pl_sum *reduce;      /* over the replicas; NULL: they are all here */
  pl_sum *tie;         /* with the other end's process; NULL: none, or it is here */
  double norm;         /* of the stage's gradient */
  bool finite;         /* its norm and its loss */
  size_t batch;        /* of the validation, passes one after the other */
  double val[2];       /* sums of the losses at x and at y */
  bool unsent;         /* `out` holds what could not be sent yet */
  pl_real *in, *out;   /* messages of the validation; NULL at the ends */
  double since;        /* clock, of the last boundary */
  double busy, waited; /* seconds of computing since then; of communication until then */
} pl_work;

/* What an engine's calls come back with. */
typedef struct pl_replica {
  struct pl_training *training;
  size_t index; /* in this process */
  pl_transport *transport;
  pl_engine *engine;
} pl_replica;

typedef struct pl_training {
  const pl_trainer_args *args;
  const pl_run_config *config;
  pl_world *world, *alone; /* alone: the world of this process when none was given */
  const pl_model_type *model_type;
  pl_model_shape shape;
  pl_model *model;
  pl_grid grid;
  size_t chunks, stages; /* stages: of the model, grid.stages * chunks */
  size_t first, end;     /* the schedule's stages in this process */
  size_t first_replica;  /* in this process */
  size_t replicas;       /* in this process */
  size_t first_layer[PL_MAX_STAGES + 1];
  const pl_layout *layout[PL_MAX_STAGES];
  pl_stage stage[PL_MAX_STAGES]; /* those of other processes have no device */
  pl_work work[PL_MAX_STAGES];
  pl_schedule *schedule;
  pl_schedule_facts facts;
  bool lockstep;       /* every update waits for all stages' gradients of it */
  bool overlap;        /* stages go on while an update is being made, as far as they can */
  int64_t horizon;     /* update t waits for everybody's gradients of update t - horizon + 1; in lockstep 1 */
  pl_replica *replica; /* [replicas] */
  pl_board *board;
  pl_batches batches;
  pl_evaluation evaluation;
  pl_probe *probe; /* NULL: never, or not possible */
  bool tied;
  pl_tie tie;
  bool has_y;
  pl_checkpoints checkpoints;
  pl_decision *decided;  /* [horizon + 1] of the latest updates that everybody has a gradient of */
  int64_t start;         /* update that this attempt began with */
  int64_t last_decided;  /* the latest of them; -1 before the first */
  int64_t last_boundary; /* the latest that everybody has passed */
  int64_t stop_at;       /* no update from here on */
  bool broken;           /* update stop_at is not finite */
  bool told;             /* by a signal */
  pl_counters counters;  /* of what everybody has passed */
  double val_loss_y;
  pl_stage_times *times;          /* [replicas * grid.stages] since the last logged point */
  double began, moved;            /* clock: of this attempt, and when something last went on */
  double aside;                   /* seconds of validation and checkpoints since */
  pl_trace *trace[PL_MAX_STAGES]; /* of the schedule's stages; NULL: not traced */
  int64_t trace_end;              /* the updates before it are */
  double polled;                  /* of world->waited: while there was nothing else to do */
} pl_training;

/* Allocates everything. Collective. The caller closes, also after a failure. */
PL_MUST_CHECK pl_status pl_training_open(const pl_trainer_args *args, pl_training *out, pl_err *e);
void pl_training_close(pl_training *t);

/* Fresh weights, state and counters. */
PL_MUST_CHECK pl_status pl_training_start(pl_training *t, pl_err *e);

/* Puts engines, board and works where the stages are: at update `step`. `resumed`: what is due at that boundary was
 * done before. */
void pl_training_begin(pl_training *t, int64_t step, bool resumed);

static inline bool pl_training_owns(const pl_training *t, size_t stage) { return t->stage[stage].device != NULL; }

/* What is due at a boundary. */
bool pl_training_validates(const pl_training *t, int64_t step);
bool pl_training_logs(const pl_training *t, int64_t step);
bool pl_training_saves(const pl_training *t, int64_t step);
bool pl_training_probes(const pl_training *t, int64_t step); /* the update that makes it */

/* Nothing can be done just now: moves on what is on its way. PL_FAIL says what this process waits for: at once when it
 * is alone, else after pipeline.watchdog seconds in which nothing went on. */
PL_MUST_CHECK pl_status pl_training_wait(pl_training *t, pl_err *e);

/* A stage of the schedule has computed something of replica 0's. */
void pl_training_trace(const pl_training *t, size_t stage, const pl_trace_row *row);

/* For engines: the gradient of `update` is complete in a stage of the schedule, in one replica. */
PL_MUST_CHECK pl_status pl_work_close(pl_replica *r, size_t stage, int64_t update, bool *passed, pl_err *e);

/* Every stage of this process as far as it gets. *moved becomes true when one did something. */
PL_MUST_CHECK pl_status pl_work_advance(pl_training *t, bool *moved, pl_err *e);

/* Reads what everybody has written: decides, logs and publishes. */
PL_MUST_CHECK pl_status pl_report_read(pl_training *t, bool *moved, pl_err *e);

/* A checkpoint of the step where all stages have stopped. Collective. */
PL_MUST_CHECK pl_status pl_report_save(pl_training *t, pl_err *e);

/* Takes in what others may still write after a broken update, so that nobody is left waiting. Collective. */
PL_MUST_CHECK pl_status pl_report_drain(pl_training *t, pl_err *e);

#endif
