/* Rank 0 and the other processes of its world around one run: it alone reads, claims, logs and decides. For a world of
 * one process, or none, these do nothing. */
#ifndef PL_RUNNERS_RANKS_H
#define PL_RUNNERS_RANKS_H

#include "runners/run_one.h"

/* Rank 0: everything is open, the others are to train the run in that folder. Collective with pl_run_follow. */
PL_MUST_CHECK pl_status pl_ranks_lead(pl_world *world, const char *run_folder, const char *data_root, pl_err *e);

/* Rank 0, at the end: those that were not led learn that there is nothing to do, and all get *out. With a failure
 * after they were led they wait for what never comes: then the world is to be ended by pl_ranks_end. Returns `st`, or
 * what went wrong here. */
PL_MUST_CHECK pl_status pl_ranks_release(pl_world *world, bool led, pl_status st, const pl_run_one_result *out,
                                         pl_err *e);

/* Every rank: ends all processes after a failure that others may not know of, with the sentence; returns where there
 * are no others. */
void pl_ranks_end(pl_world *world, pl_status st, const pl_err *e);

/* Every rank, at the end of a command: rank 0 of several says the sentence, if there is one, before any of them can
 * leave and so make mpirun end it; *e is then empty on all of them. Closes the world; NULL allowed. */
void pl_ranks_close(pl_world *world, pl_err *e);

#endif
