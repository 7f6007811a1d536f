/* Interprets a schedule: runs the model's stages on the weight versions that the instructions name. It assumes no order
 * of its own. With chunks, stage p of the schedule holds several of the model's stages: chunk * stages + p. */
#ifndef PL_PIPELINE_ENGINE_H
#define PL_PIPELINE_ENGINE_H

#include "core/pipeline/schedule.h"
#include "core/pipeline/transport.h"
#include "core/train/model.h"
#include "core/train/ring.h"

/* What a stage of the model works on. Borrowed. */
typedef struct pl_engine_stage {
  const pl_ring *ring;
  pl_real *grad[2]; /* backward of update t adds to grad[t % 2]; whoever makes the update zeroes it; may be one twice */
} pl_engine_stage;

typedef struct pl_engine_args {
  pl_device *device;
  const pl_model_type *model_type;
  pl_model *model;
  const pl_schedule *schedule;
  const pl_schedule_facts *facts;
  size_t first, end; /* stages of the schedule that this engine runs; what it is given for others is not looked at */
  pl_transport *transport;
  pl_engine_stage stage[PL_MAX_STAGES]; /* of the model */
  void *spare; /* a tape of the caller's that the first slot of the first stage may use, or NULL; spare_bytes long */
  size_t spare_bytes;
  void *self; /* of the functions */
  /* The microbatch, valid during the call that it is for. */
  const pl_batch *(*batch)(void *self, int64_t update, size_t microbatch);
  /* The gradient of `update` is complete in this stage of the schedule. *passed = false: ask again before going on. */
  pl_status (*update)(void *self, size_t stage, int64_t update, bool *passed, pl_err *e);
  /* After something was computed; start and end by pl_clock_seconds. NULL: not called. */
  void (*computed)(void *self, size_t stage, const pl_instruction *in, int64_t update, double start, double end);
} pl_engine_args;

typedef struct pl_engine pl_engine;

/* Everything that running needs is allocated here. Borrows what the arguments point to until destroy. PL_BAD for more
 * than PL_MAX_STAGES stages of the model. */
PL_MUST_CHECK pl_status pl_engine_create(const pl_engine_args *args, pl_engine **out, pl_err *e);
void pl_engine_destroy(pl_engine *g); /* NULL allowed */

/* Puts every stage at update `done` of `total` with nothing in flight: a fresh start, or after a resume. */
void pl_engine_start(pl_engine *g, int64_t done, int64_t total);

/* Every stage as far as it gets now; *moved becomes true when one made a step. */
PL_MUST_CHECK pl_status pl_engine_step(pl_engine *g, bool *moved, pl_err *e);

/* The first stage that has not ended, and what it is about to do; false when all have. */
bool pl_engine_waits(const pl_engine *g, size_t *stage, const pl_instruction **in, int64_t *update);

/* Of the microbatches of the last stage's current update whose backward ran: the sum of their losses in nats, in
 * ascending order of their backward. */
double pl_engine_loss(const pl_engine *g);

/* Measured in the current update of a stage of the model: newest version when the gradient is complete minus the one
 * that its forward read, the largest over microbatches. */
int64_t pl_engine_delay(const pl_engine *g, size_t stage);

#endif
