/* Which GPU each process of a pool gets. */
#ifndef PL_RUNNERS_LAUNCHERS_GPUS_H
#define PL_RUNNERS_LAUNCHERS_GPUS_H

#include "core/base/str.h"

/* The GPUs that this process may use; {0}: none, or nobody has asked for them. */
typedef struct pl_gpus {
  size_t count;
  char *list; /* their names in CUDA_VISIBLE_DEVICES; NULL: not set, they are called 0, 1, ... */
} pl_gpus;

/* Asks in a process of its own, since no child of one that has asked can use a GPU. PL_BAD when there is none, with
 * the reason. Released by pl_gpus_free. */
PL_MUST_CHECK pl_status pl_gpus_find(pl_gpus *out, pl_err *e);

/* The same of what CUDA_VISIBLE_DEVICES lists, which need not be there: nobody is asked. */
PL_MUST_CHECK pl_status pl_gpus_listed(pl_gpus *out, pl_err *e);
void pl_gpus_free(pl_gpus *g);

/* From here on this process sees the GPU of that place alone: they are taken in turn, under the names that
 * CUDA_VISIBLE_DEVICES has for them. Without GPUs nothing happens. */
void pl_gpus_choose(const pl_gpus *g, size_t place);

/* Appends "0, 1". */
void pl_gpus_write(const pl_gpus *g, pl_str *out);

#endif
