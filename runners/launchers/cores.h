/* Which CPU each process of a pool gets for itself. Pools of one machine agree by locks in a shared file, so that two
 * small ones do not meet on one CPU while others idle; the system drops the locks when the last process of a pool ends.
 */
#ifndef PL_RUNNERS_LAUNCHERS_CORES_H
#define PL_RUNNERS_LAUNCHERS_CORES_H

#include <sched.h>
#include <stddef.h>

/* The file of the pools of this machine. */
#define PL_CORES_FILE "/dev/shm/pipelag-cpus"

/* Takes `count` CPUs out of `allowed` that nobody else holds by `path`, one of each physical core before their
 * siblings; cpus[i] is -1 where none was left or the file cannot be used. Returns a descriptor that holds them until it
 * and its copies in child processes are closed, or -1. */
int pl_cores_take(const char *path, const cpu_set_t *allowed, int *cpus, size_t count);

#endif
