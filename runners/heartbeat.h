/* Keeps the claim of a run alive while it is trained, and notices when another process took the run over. */
#ifndef PL_RUNNERS_HEARTBEAT_H
#define PL_RUNNERS_HEARTBEAT_H

#include <stdint.h>

#include "core/base/status.h"

typedef struct pl_heartbeat pl_heartbeat;

/* Starts a thread that rewrites the counter in the claim, which this process holds, ten times in pl_claim_seconds. It
 * receives no signals. */
PL_MUST_CHECK pl_status pl_heartbeat_start(const char *sweep_dir, uint64_t id, pl_heartbeat **out, pl_err *e);

/* False from the moment on that the claim is known to be somebody else's. */
bool pl_heartbeat_owns(pl_heartbeat *h);

/* The same, after looking into the file: before something is published. */
bool pl_heartbeat_owns_now(pl_heartbeat *h);

/* Ends the thread; NULL allowed. */
void pl_heartbeat_stop(pl_heartbeat *h);

#endif
