/* Plays a schedule: walks every stage through its program, one stage until it waits, then the next. What instructions
 * do is the caller's: the checker only keeps books, the engine computes. */
#ifndef PL_PIPELINE_PLAYER_H
#define PL_PIPELINE_PLAYER_H

#include "core/pipeline/schedule.h"

/* Where a stage is in its program. */
typedef struct pl_cursor {
  int part;        /* 0 prologue, 1 body, 2 epilogue, 3 ended */
  size_t index;    /* the next instruction of the part */
  size_t late;     /* where the epilogue begins: later when fewer updates are left than it has */
  int64_t repeats; /* of the body, the current one included */
  int64_t done;    /* updates passed: the index of the current one */
} pl_cursor;

typedef struct pl_player {
  const pl_schedule *schedule; /* borrowed */
  void *self;
  /* Executes one instruction for `update`; *done = false when it has to wait for another stage and is to be tried
   * again. */
  pl_status (*run)(void *self, size_t stage, const pl_instruction *in, int64_t update, bool *done, pl_err *e);
  size_t first, end; /* the stages that it walks; 0, 0: all of them */
  int64_t total;     /* updates of the run: instructions that work for later ones are left out */
  pl_cursor cursor[PL_SCHEDULE_STAGES];
} pl_player;

/* Every stage at update `done` of `total`, nothing in flight. */
void pl_player_start(pl_player *p, int64_t done, int64_t total);

/* Every stage twice, as far as it gets. *moved becomes true when one made a step. */
PL_MUST_CHECK pl_status pl_player_step(pl_player *p, bool *moved, pl_err *e);

/* Until every stage has ended its program. PL_BAD when no stage can go on. */
PL_MUST_CHECK pl_status pl_player_run(pl_player *p, pl_err *e);

/* The first stage whose program has not ended, and what it is about to do; false when there is none. */
bool pl_player_waits(const pl_player *p, size_t *stage, const pl_instruction **in, int64_t *update);

/* A microbatch in a chunk of a stage, from its arrival until nothing of it is needed any more. */
typedef enum pl_flight_state {
  PL_FLIGHT_FREE,
  PL_FLIGHT_ARRIVED,
  PL_FLIGHT_FORWARDED,
  PL_FLIGHT_SENT,
  PL_FLIGHT_RETURNED,   /* the gradient is there */
  PL_FLIGHT_BACKWARDED, /* its gradient is to be sent */
  PL_FLIGHT_HALFWAY,    /* the same after the first half of a split backward */
  PL_FLIGHT_PASSED      /* sent, the second half is left */
} pl_flight_state;

typedef struct pl_flight {
  pl_flight_state state;
  int64_t update;
  size_t microbatch, chunk;
  int64_t version; /* that the forward read */
} pl_flight;

/* The flight that `in` (not UPDATE) works on, moved to its next state; NULL when there is none in the right state. */
pl_flight *pl_flight_move(pl_flight *flights, size_t count, const pl_schedule *s, size_t stage,
                          const pl_instruction *in, int64_t update);

#endif
