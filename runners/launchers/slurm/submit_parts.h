/* The inside of submitting, shared by the files submit*.c. */
#ifndef PL_RUNNERS_SLURM_SUBMIT_PARTS_H
#define PL_RUNNERS_SLURM_SUBMIT_PARTS_H

#include "runners/launchers/slurm/limits.h"
#include "runners/launchers/slurm/queue.h"
#include "runners/launchers/slurm/submission.h"
#include "runners/launchers/slurm/submit.h"
#include "runners/launchers/slurm/throttle.h"

/* An array that is to be sent: runs order[first .. first+count-1]. */
typedef struct pl_piece {
  const pl_slurm_config *config;
  size_t first, count;
  int64_t tasks;
  char job[PL_JOB_SIZE]; /* once it is sent */
  int64_t number;
  bool out; /* Slurm has it, or may have it */
} pl_piece;

typedef struct pl_submitting {
  const pl_submit_args *args;
  pl_submit_result *result;
  pl_plan *plan;
  pl_slurm_limits limits;
  char *dir, *data_root, *program; /* absolute */
  char binary_hash[17];
  pl_json *libraries;
  pl_submissions submissions;
  pl_queue queue;
  size_t *order; /* indexes of jobs of the plan, in the order of sending */
  size_t order_count;
  bool *reopened; /* [order_count]: was cancelled before; NULL: no run was opened */
  pl_piece *pieces;
  size_t piece_count, piece_capacity;
  pl_submission **live; /* [live_count]: earlier ones with tasks in the queue */
  size_t live_count;
  pl_throttled *arrays; /* [live_count + piece_count] */
  bool *after;          /* storage of their `after` */
} pl_submitting;

/* submit_settle.c: finds out about submissions whose answer was lost; those that stay unknown are counted in
 * result->unknown. Reads the queue. */
PL_MUST_CHECK pl_status pl_submit_settle(pl_submitting *s, pl_err *e);

/* One look for a submission's job: its id, or "" when the queue has none; *refused when Slurm only kept the record of a
 * refusal. */
PL_MUST_CHECK pl_status pl_submit_look(const pl_submission *submission, char job[PL_JOB_SIZE], bool *refused,
                                       pl_err *e);

/* submit_arrays.c: which runs go, in which arrays, how many tasks of each at once. */
PL_MUST_CHECK pl_status pl_submit_choose(pl_submitting *s, pl_err *e);
PL_MUST_CHECK pl_status pl_submit_cut(pl_submitting *s, pl_err *e);
PL_MUST_CHECK pl_status pl_submit_throttle(pl_submitting *s, pl_err *e);

/* submit_reopen.c: chosen runs that were cancelled are open from here on; those of arrays that Slurm did not get are
 * cancelled again by the second. */
PL_MUST_CHECK pl_status pl_submit_reopen(pl_submitting *s, pl_err *e);
void pl_submit_close_unsent(const pl_submitting *s);

/* submit_send.c: writes one submission down, calls sbatch and records the answer; or prints it for a dry run. PL_BAD
 * when Slurm refused it, PL_FAIL when its answer is not known. */
PL_MUST_CHECK pl_status pl_submit_send(pl_submitting *s, size_t piece, pl_err *e);
PL_MUST_CHECK pl_status pl_submit_show(pl_submitting *s, size_t piece, pl_err *e);

#endif
