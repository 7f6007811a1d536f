/* What Slurm says about own jobs. */
#ifndef PL_RUNNERS_SLURM_QUEUE_H
#define PL_RUNNERS_SLURM_QUEUE_H

#include <stdint.h>

#include "core/base/status.h"
#include "runners/launchers/slurm/submission.h"

/* What a Slurm state means for a run. */
typedef enum pl_queue_kind {
  PL_QUEUE_WAITING, /* PENDING, REQUEUED, REQUEUE_HOLD, CONFIGURING, ...: it will still run */
  PL_QUEUE_RUNNING, /* RUNNING, COMPLETING, SUSPENDED, SIGNALING, STAGE_OUT, ... */
  PL_QUEUE_ENDED,   /* COMPLETED, FAILED, TIMEOUT, CANCELLED, NODE_FAIL, PREEMPTED, OUT_OF_MEMORY, ... */
  PL_QUEUE_UNKNOWN  /* a word that is not in the table: shown as itself, taken as still there */
} pl_queue_kind;

pl_queue_kind pl_queue_kind_of(const char *state);

typedef struct pl_queue_task {
  char name[PL_TOKEN_SIZE]; /* job name: the submission's token */
  char job[PL_JOB_SIZE];    /* array job id */
  int64_t task;             /* array index; -1 when the line stands for tasks that are not split off */
  char state[32], reason[96], node[64];
  int exit_code, exit_signal, restarts;
} pl_queue_task;

typedef struct pl_queue {
  pl_queue_task *tasks; /* sorted by (name, task) */
  size_t count;
  bool accounting; /* sacct was asked and answered */
} pl_queue;

/* One squeue call for all jobs of this user whose name is a token of `s` (finished ones too, as long as Slurm
 * remembers), then, for tokens of which squeue knows nothing or not all tasks, sacct when the cluster has accounting.
 * PL_FAIL with Slurm's own sentence when squeue cannot be asked. */
PL_MUST_CHECK pl_status pl_queue_read(const pl_submissions *s, pl_queue *out, pl_err *e);
void pl_queue_free(pl_queue *q);

/* The record of a task, or NULL. */
const pl_queue_task *pl_queue_find(const pl_queue *q, const char *token, int64_t task);

#endif
