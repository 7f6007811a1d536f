/* Threads that work together: the caller and some that wait for it. One region at a time. */
#ifndef PL_DEVICE_CPU_TEAM_H
#define PL_DEVICE_CPU_TEAM_H

#include <stddef.h>

#include "core/base/status.h"

typedef struct pl_team pl_team;

/* Starts threads - 1 threads, which handle no signal. PL_FAIL when the system gives fewer. */
PL_MUST_CHECK pl_status pl_team_new(size_t threads, pl_team **out, pl_err *e);
void pl_team_free(pl_team *t); /* NULL allowed; ends the threads */

/* Calls work(arg, thread) for every thread 0..threads-1 at once, 0 in the caller's own, and returns when all have
 * returned. What was written before is seen in `work`, and what `work` wrote is seen afterwards. Allocates nothing; not
 * for use in `work`. */
void pl_team_run(pl_team *t, void (*work)(void *arg, size_t thread), void *arg);

#endif
