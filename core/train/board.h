/* What the stages tell each other: for every update t, once its gradient is complete in a stage, that stage's figures
 * (round 2t + 1), and at every boundary T, when version T is there and everything due at it was done, those (round 2T).
 * Everybody gets everybody's, so that all decide alike. */
#ifndef PL_TRAIN_BOARD_H
#define PL_TRAIN_BOARD_H

#include "core/pipeline/world.h"

typedef enum pl_frame_number {
  PL_FRAME_LOSS,     /* update: sum over the replica's tokens, of the last stage; 0 elsewhere */
  PL_FRAME_DELAY,    /* update: measured */
  PL_FRAME_STOP,     /* update: not 0 when this process was told to stop */
  PL_FRAME_VAL,      /* boundary: validation loss, of the last stage */
  PL_FRAME_VAL_Y,    /* boundary: the same at y */
  PL_FRAME_CHECKSUM, /* boundary: the bits of the checkpoint file's checksum */
  PL_FRAME_BUSY,     /* boundary: seconds since the one before it */
  PL_FRAME_COMMUNICATION,
  PL_FRAME_IDLE,
  PL_FRAME_NUMBERS
} pl_frame_number;

/* One stage of one replica in one round: its numbers, then by segment three lists of squared norms. What is not due
 * stays zero. */
typedef struct pl_frame {
  double *numbers; /* [PL_FRAME_NUMBERS] */
  double *squares; /* [segments] of the gradient (update) or of v_{T-1} (boundary) */
  double *weights; /* [segments] of the newest weights */
  double *change;  /* [segments] update t: of x_t - x_s, x_s the weights that its gradient read; boundary: of u_{T-1} */
  size_t segments;
} pl_frame;

typedef struct pl_board_args {
  pl_world *world;
  const pl_grid *grid;
  size_t chunks;          /* stages of the model in one of the schedule */
  const size_t *segments; /* [grid->stages * chunks] of the model's stages; copied */
  size_t open;            /* rounds that a process may be writing and waiting for at the same time */
} pl_board_args;

typedef struct pl_board pl_board;

/* Collective. Borrows world. */
PL_MUST_CHECK pl_status pl_board_create(const pl_board_args *args, pl_board **out, pl_err *e);
void pl_board_destroy(pl_board *b); /* NULL allowed */

/* The first round that will be written. */
void pl_board_start(pl_board *b, int64_t round);

/* Where a stage of this process writes its part of a round; zeroed when the round begins. */
pl_frame pl_board_frame(const pl_board *b, int64_t round, size_t replica, size_t stage);

/* One more stage of this process (all its replicas) has written its part: rounds go out in order, when all of their
 * parts are there. */
PL_MUST_CHECK pl_status pl_board_written(pl_board *b, int64_t round, pl_err *e);

/* The next round that everybody has written; false: not there yet. Valid until pl_board_read_on. */
bool pl_board_next(pl_board *b, int64_t *round);
pl_frame pl_board_read(const pl_board *b, size_t replica, size_t stage);
void pl_board_read_on(pl_board *b);

/* Sends all rounds before `end` as they are, so that nobody waits for this process. */
PL_MUST_CHECK pl_status pl_board_finish(pl_board *b, int64_t end, pl_err *e);

#endif
