/* The processes of a pool. Each trains one run after the other, so that what a start costs is paid once for many short
 * runs; after a run that did not end well, one on a GPU, and a good number of others it ends, and another takes its
 * place. */
#ifndef PL_RUNNERS_LAUNCHERS_WORKER_H
#define PL_RUNNERS_LAUNCHERS_WORKER_H

#include <signal.h>
#include <sys/types.h>

#include "results/curves.h"
#include "results/provenance.h"
#include "runners/launchers/gpus.h"
#include "runners/launchers/local.h"

typedef volatile sig_atomic_t pl_trained_flag;

/* What all of a pool's processes know; borrowed until they have ended. */
typedef struct pl_workshop {
  const pl_local_args *args;
  const int *cpus; /* of the places; -1: not pinned */
  const pl_gpus *gpus;
  pl_h5 *blank; /* every process has its own copy, for its first run; NULL: none */
  const pl_origin *origin;
  sigset_t before; /* signals that were blocked before the pool began */
} pl_workshop;

typedef struct pl_worker {
  pid_t pid;                /* 0: none */
  int line;                 /* socket to it */
  pl_trained_flag *trained; /* shared with it: only files are left to be written */
} pl_worker;

typedef struct pl_worker_report {
  int code;  /* PL_OK, PL_FAIL with a sentence, PL_STOPPED, PL_WORKER_ELSEWHERE */
  bool last; /* the process takes no more orders */
  char sentence[PL_ERR_TEXT];
} pl_worker_report;

enum { PL_WORKER_ELSEWHERE = PL_NOTHING };

/* Starts a process that waits for orders. `others`: those that are there, whose sockets it must not keep. */
PL_MUST_CHECK pl_status pl_worker_start(const pl_workshop *shop, const pl_worker *others, size_t count, pl_worker *w,
                                        pl_err *e);

/* Job number `job` of the pool's, at that place; the parent gets SIGCHLD when it has trained and when it has ended.
 * False: the process is gone. */
bool pl_worker_order(pl_worker *w, size_t job, size_t place);

/* The report on an order, once; false: there is none yet. */
bool pl_worker_reported(pl_worker *w, pl_worker_report *out);

/* No more orders: it ends when it has nothing to do. */
void pl_worker_dismiss(pl_worker *w);

#endif
