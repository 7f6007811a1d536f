/* A file that is written as memory, so that it may be larger than what is free: pages that are done with go to the
 * disk. Growing it never fails for who writes: where the disk is full it goes on in memory, and closing it tells. */
#ifndef PL_RESULTS_GROWING_FILE_H
#define PL_RESULTS_GROWING_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/status.h"

typedef struct pl_growing pl_growing;

/* Makes PATH.tmp.PID, which pl_growing_close gives its name. */
PL_MUST_CHECK pl_status pl_growing_open(const char *path, pl_growing **out, pl_err *e);

/* At least `size` bytes, the new ones 0; the bytes may be elsewhere than before. NULL when memory is out, and then what
 * there is stays. A smaller size changes nothing. */
void *pl_growing_bytes(pl_growing *g, size_t size);

/* Whether all of it has room on the disk. */
bool pl_growing_fits(const pl_growing *g);

/* The first `size` bytes become the file, synced, in place of one of that name. */
PL_MUST_CHECK pl_status pl_growing_commit(pl_growing *g, size_t size, pl_err *e);

/* Removes what was not committed; NULL allowed. */
void pl_growing_close(pl_growing *g);

#endif
