/* The CPU device of several threads: a table whose operations are cut into parts, one for each thread, which that
 * thread's own device computes. Operations with little work run whole on the caller's; who computes what depends on the
 * shape and the number of threads only, and reductions over rows are not cut. */
#ifndef PL_DEVICE_CPU_THREADED_H
#define PL_DEVICE_CPU_THREADED_H

#include "core/device/cpu/cpu.h"
#include "core/device/cpu/team.h"

typedef struct pl_threaded {
  pl_ops ops, part_ops; /* of this device, of those of the threads */
  pl_team *team;
  size_t threads;
  pl_device parts[];
} pl_threaded;

/* Units first..end-1 of an operation with these arguments. `thread` is the index of `part`. */
typedef void pl_threaded_work(pl_device *part, size_t thread, const void *args, size_t first, size_t end);

/* Cuts 0..units-1 at multiples of `grain`. `tasks` is how many threads have enough to do; with 0 or 1 the caller works
 * alone. */
void pl_threaded_split(pl_device *d, double tasks, size_t units, size_t grain, pl_threaded_work *work,
                       const void *args);

/* Put their operations into the table. */
void pl_threaded_products(pl_ops *ops); /* products of matrices, attention */
void pl_threaded_rows(pl_ops *ops);     /* what works on rows or elements */

#endif
