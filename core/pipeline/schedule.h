/* Pipeline schedules as data: per stage a program of small instructions that any engine can interpret over any
 * transport. What a schedule costs and which delay it causes is derived by the checker, never typed in. */
#ifndef PL_PIPELINE_SCHEDULE_H
#define PL_PIPELINE_SCHEDULE_H

#include <stdint.h>

#include "core/base/status.h"
#include "core/config/params.h"

enum {
  PL_SCHEDULE_STAGES = 1024, /* more than an engine runs: planning looks further than this machine */
  PL_SCHEDULE_CHUNKS = 64,
  PL_SCHEDULE_MICROBATCHES = 65536,
  PL_SCHEDULE_NAME = 64
};

typedef enum pl_op {
  PL_OP_FORWARD,
  PL_OP_BACKWARD,
  PL_OP_SEND_ACTIVATION, /* to the next virtual stage */
  PL_OP_RECV_ACTIVATION, /* from the previous virtual stage */
  PL_OP_SEND_GRADIENT,   /* to the previous virtual stage */
  PL_OP_RECV_GRADIENT,   /* from the next virtual stage */
  PL_OP_UPDATE,          /* applies the gradient of the stage's current update */
  PL_OP_BACKWARD_INPUT,  /* the half of a backward that the previous stage waits for */
  PL_OP_BACKWARD_WEIGHT  /* the other half, after the first one's gradient was sent */
} pl_op;

/* A stage's current update is the number of UPDATEs that it has passed. */
typedef struct pl_instruction {
  pl_op op;
  size_t microbatch; /* of the update that it works for */
  int64_t ahead;     /* works for the current update + ahead */
  int64_t lag;       /* of what computes: reads the stage's newest weights but `lag` updates back, or the oldest that
                        exist */
  size_t chunk;      /* which of the stage's chunks of layers: virtual stage chunk * stages + stage */
} pl_instruction;

typedef struct pl_instructions {
  pl_instruction *items;
  size_t count, room;
} pl_instructions;

/* The prologue runs once, the body until only the epilogue's updates are left, then the epilogue once. Nothing runs
 * for updates beyond the last one. */
typedef struct pl_program {
  pl_instructions prologue, body, epilogue;
  size_t versions, slots; /* what the stage has room for; 0: as much as the program needs */
} pl_program;

typedef struct pl_schedule {
  char name[PL_SCHEDULE_NAME];
  size_t stages, microbatches;
  size_t chunks; /* virtual stages in a stage; 0 counts as 1 */
  pl_program program[PL_SCHEDULE_STAGES];
} pl_schedule;

/* What follows from a schedule. */
typedef struct pl_schedule_facts {
  size_t slots[PL_SCHEDULE_STAGES];  /* microbatches in flight in a stage, of one chunk each: activations to be kept */
  size_t depth[PL_SCHEDULE_STAGES];  /* weight versions to be kept, the newest included */
  int64_t delay[PL_SCHEDULE_STAGES]; /* steady delay in updates: newest version when the gradient is applied, minus
                                        the version that its forward read; the largest over microbatches */
  int64_t gap[PL_SCHEDULE_STAGES]; /* version that a backward reads minus the one that its forward read; the largest */
  size_t messages[PL_SCHEDULE_STAGES]; /* messages waiting between stage p and the next in either direction, at most */
  size_t updates_open;                 /* updates whose batches are in work at the same time */
} pl_schedule_facts;

const char *pl_op_name(pl_op op);
bool pl_op_computes(pl_op op); /* reads weights */

/* Appends to a program. */
PL_MUST_CHECK pl_status pl_instructions_add(pl_instructions *list, pl_instruction instruction, pl_err *e);
const pl_instructions *pl_program_part(const pl_program *program, int part); /* 0 prologue, 1 body, 2 epilogue */
int64_t pl_instructions_updates(const pl_instructions *list);
void pl_schedule_free(pl_schedule *s);

size_t pl_schedule_chunks(const pl_schedule *s);
bool pl_schedule_first(const pl_schedule *s, size_t stage, size_t chunk); /* of the model's layers */
bool pl_schedule_last(const pl_schedule *s, size_t stage, size_t chunk);

/* Where a message of a send or receive travels: between stage *link and the next one (the last one's next is stage 0),
 * and the chunk of the one nearer to the input. False when there is no stage on that side. */
bool pl_schedule_link(const pl_schedule *s, size_t stage, const pl_instruction *in, size_t *link, size_t *chunk);

/* Updates after which every further one but the epilogue's repeats the last; it reads nothing from before the start. */
int64_t pl_schedule_ramp(const pl_schedule *s);
int64_t pl_schedule_tail(const pl_schedule *s); /* updates of the longest epilogue */

/* Delay in one process, by definition instead of by the order of messages: every microbatch of update t runs forward
 * and backward on the weights that stage p had delay[p] updates ago, and every stage applies update t before t + 1
 * begins. The caller frees the schedule, also after a failure. */
PL_MUST_CHECK pl_status pl_schedule_lagged(size_t stages, size_t microbatches, const int64_t *delay, pl_schedule *out,
                                           pl_err *e);

/* Plays the schedule without computing, every UPDATE waiting for the other stages' same update. PL_BAD names the stage
 * and the instruction for: a message that is never sent or never received, a deadlock, a backward without its forward,
 * an update that lacks or repeats a microbatch, a body without exactly one update, a stage without room for a
 * microbatch in flight or for a version that is read. */
PL_MUST_CHECK pl_status pl_schedule_check(const pl_schedule *s, pl_schedule_facts *out, pl_err *e);

#endif
