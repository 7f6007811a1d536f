/* What delay has made of an update's gradient: the same batch once more, forward and backward, at the newest weights of
 * all stages, and the cosine between the two gradients. It works where all stages are in one process and none has
 * applied the gradient yet, and changes nothing of the training. */
#ifndef PL_TRAIN_PROBE_H
#define PL_TRAIN_PROBE_H

#include "core/train/batch.h"
#include "core/train/stage.h"

/* All of it is borrowed. */
typedef struct pl_probe_args {
  pl_device *device;
  const pl_model_type *model_type;
  pl_model *model;
  const pl_stage *stage; /* [stages] of the model */
  size_t stages;
  pl_batches *batches;
  size_t replicas;   /* each has an equal number of the batch's microbatches */
  const pl_tie *tie; /* NULL: nothing is tied */
} pl_probe_args;

typedef struct pl_probe pl_probe;

/* Everything that probing needs is allocated here: a tape and a gradient of every stage. */
PL_MUST_CHECK pl_status pl_probe_create(const pl_probe_args *args, pl_probe **out, pl_err *e);
void pl_probe_free(pl_probe *p); /* NULL allowed */

/* Cosine, over all stages, between the gradient of `update` that lies in the stages, whole and not clipped yet, and the
 * one of its batch at the newest weights, added up in the same order: exactly 1 where they have the same bits. NaN when
 * one of them is 0 or not finite. */
double pl_probe_cosine(pl_probe *p, int64_t update);

#endif
