/* One training as it runs: everything that setup allocates, shared by the trainer's own files. */
#ifndef PL_TRAIN_TRAINING_H
#define PL_TRAIN_TRAINING_H

#include "core/pipeline/engine.h"
#include "core/train/batch.h"
#include "core/train/checkpoint.h"
#include "core/train/evaluate.h"
#include "core/train/step.h"
#include "core/train/trainer.h"

typedef struct pl_training {
  const pl_trainer_args *args;
  const pl_run_config *config;
  const pl_model_type *model_type;
  pl_model_shape shape;
  pl_model *model;
  size_t stages;
  size_t first_layer[PL_MAX_STAGES + 1];
  pl_stage stage[PL_MAX_STAGES];
  pl_schedule schedule;
  pl_schedule_facts facts;
  pl_transport *transport;
  pl_engine *engine;
  pl_batches batches;
  pl_evaluation evaluation;
  pl_counters counters;
  pl_step step;
  pl_checkpoints checkpoints;
  pl_real *host;               /* [size of the largest stage] */
  bool arrived[PL_MAX_STAGES]; /* stages whose gradient of the current update is complete */
  bool measure;                /* the current update is to be logged */
  pl_update update;            /* the last one */
  double delay, delay_mean;    /* measured in it */
  double val_loss_y;           /* after the last update; NaN without */
} pl_training;

/* Allocates everything. The caller closes, also after a failure. */
PL_MUST_CHECK pl_status pl_training_open(const pl_trainer_args *args, pl_training *out, pl_err *e);
void pl_training_close(pl_training *t);

/* Fresh weights, state and counters. */
void pl_training_start(pl_training *t);

/* Loss at the newest weights of every stage. */
double pl_training_validate(const pl_training *t);

/* Loss at y = x + offset; NaN when no stage has a y of its own. Overwrites the stages' displacements. */
double pl_training_validate_y(const pl_training *t);

/* |x| of the newest weights. */
double pl_training_weight_norm(const pl_training *t);

#endif
