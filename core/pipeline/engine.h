/* Interprets a schedule: runs the model's stages on the weight versions that the instructions name. It assumes no order
 * of its own. */
#ifndef PL_PIPELINE_ENGINE_H
#define PL_PIPELINE_ENGINE_H

#include "core/pipeline/schedule.h"
#include "core/pipeline/transport.h"
#include "core/train/model.h"
#include "core/train/ring.h"

typedef enum pl_update_verdict {
  PL_UPDATE_DONE, /* the stage's weights of the next version are there */
  PL_UPDATE_WAIT, /* for another stage: ask again */
  PL_UPDATE_HALT  /* the update was not made and the run ends here */
} pl_update_verdict;

/* What a stage works on. Borrowed. */
typedef struct pl_engine_stage {
  const pl_ring *ring;
  pl_real *grad; /* backward adds to it; whoever makes the update zeroes it */
} pl_engine_stage;

typedef struct pl_engine_args {
  pl_device *device;
  const pl_model_type *model_type;
  pl_model *model;
  const pl_schedule *schedule;
  const pl_schedule_facts *facts;
  pl_transport *transport;
  pl_engine_stage stage[PL_MAX_STAGES];
  void *self; /* of the two functions */
  /* The microbatch, valid until the update after `update` + facts->updates_open - 1. */
  const pl_batch *(*batch)(void *self, int64_t update, size_t microbatch);
  /* The stage's gradient of `update` is complete. */
  pl_update_verdict (*update)(void *self, size_t stage, int64_t update);
} pl_engine_args;

typedef struct pl_engine pl_engine;

/* Everything that running needs is allocated here. Borrows what the arguments point to until destroy. PL_BAD for a
 * schedule that no model can follow: chunks, a split backward, more than PL_MAX_STAGES stages. */
PL_MUST_CHECK pl_status pl_engine_create(const pl_engine_args *args, pl_engine **out, pl_err *e);
void pl_engine_destroy(pl_engine *g); /* NULL allowed */

/* Puts every stage at update `done` of `total` with nothing in flight: a fresh start, or after a resume. */
void pl_engine_start(pl_engine *g, int64_t done, int64_t total);

/* Until every stage has passed `target` updates, or a verdict was HALT (*halted). PL_FAIL names the stage and the
 * instruction when nothing can go on. */
PL_MUST_CHECK pl_status pl_engine_run(pl_engine *g, int64_t target, bool *halted, pl_err *e);

/* Of the microbatches whose backward ran since the last update of the last stage: the sum of their losses in nats, in
 * ascending order of their backward. */
double pl_engine_loss(const pl_engine *g);

/* Measured in the stage's current update: newest version minus the version that its forward read, the largest over
 * microbatches. */
int64_t pl_engine_delay(const pl_engine *g, size_t stage);

#endif
