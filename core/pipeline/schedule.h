/* Pipeline schedules as data: per stage a program of small instructions that any engine can interpret over any
 * transport. What a schedule costs and which delay it causes is derived by the checker, never typed in. */
#ifndef PL_PIPELINE_SCHEDULE_H
#define PL_PIPELINE_SCHEDULE_H

#include <stdint.h>

#include "core/base/status.h"
#include "core/config/params.h"

typedef enum pl_op {
  PL_OP_FORWARD,
  PL_OP_BACKWARD,
  PL_OP_SEND_ACTIVATION, /* to the next stage */
  PL_OP_RECV_ACTIVATION, /* from the previous stage */
  PL_OP_SEND_GRADIENT,   /* to the previous stage */
  PL_OP_RECV_GRADIENT,   /* from the next stage */
  PL_OP_UPDATE           /* applies the gradient of the stage's current update */
} pl_op;

/* A stage's current update is the number of UPDATEs that it has passed. */
typedef struct pl_instruction {
  pl_op op;
  size_t microbatch; /* of the update that it works for */
  int64_t ahead;     /* works for the current update + ahead */
  int64_t lag;       /* FORWARD, BACKWARD: reads the stage's newest weights but `lag` updates back, or the oldest that
                        exist */
} pl_instruction;

typedef struct pl_instructions {
  pl_instruction *items;
  size_t count, room;
} pl_instructions;

/* The prologue runs once, the body until only the epilogue's updates are left, then the epilogue once. */
typedef struct pl_program {
  pl_instructions prologue, body, epilogue;
} pl_program;

typedef struct pl_schedule {
  const char *name; /* borrowed */
  size_t stages, microbatches;
  pl_program program[PL_MAX_STAGES];
} pl_schedule;

/* What follows from a schedule. */
typedef struct pl_schedule_facts {
  size_t slots[PL_MAX_STAGES];    /* microbatches in flight in a stage: activations to be kept */
  size_t depth[PL_MAX_STAGES];    /* weight versions to be kept, the newest included */
  int64_t delay[PL_MAX_STAGES];   /* steady delay in updates: newest version when the gradient is applied, minus the
                                     version that its forward read; the largest over microbatches */
  size_t messages[PL_MAX_STAGES]; /* messages waiting between stage p and p+1 in either direction, at most */
  size_t updates_open;            /* updates whose batches are in work at the same time */
} pl_schedule_facts;

const char *pl_op_name(pl_op op);

/* Appends to a program. */
PL_MUST_CHECK pl_status pl_instructions_add(pl_instructions *list, pl_instruction instruction, pl_err *e);
void pl_schedule_free(pl_schedule *s);

/* Delay in one process, by definition instead of by the order of messages: every microbatch of update t runs forward
 * and backward on the weights that stage p had delay[p] updates ago, and every stage applies update t before t + 1
 * begins. The caller frees the schedule, also after a failure. */
PL_MUST_CHECK pl_status pl_schedule_lagged(size_t stages, size_t microbatches, const int64_t *delay, pl_schedule *out,
                                           pl_err *e);

/* Plays the schedule without computing, every UPDATE waiting for the other stages' same update. PL_FAIL names the stage
 * and the instruction for: a message that is never sent or never received, a deadlock, a backward without its forward,
 * an update that lacks or repeats a microbatch, a body without exactly one update. */
PL_MUST_CHECK pl_status pl_schedule_check(const pl_schedule *s, pl_schedule_facts *out, pl_err *e);

#endif
