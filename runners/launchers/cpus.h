/* How many processes of a pool run at once without getting in each other's way. */
#ifndef PL_RUNNERS_LAUNCHERS_CPUS_H
#define PL_RUNNERS_LAUNCHERS_CPUS_H

#include <sched.h>
#include <stddef.h>

/* CPUs that this process may keep busy: those of its affinity mask (*allowed), fewer where the CPU quota of its control
 * group or what Slurm gave its job on this node (SLURM_CPUS_ON_NODE) is less. At least 1. */
size_t pl_cpus_usable(cpu_set_t *allowed);

/* The tightest CPU quota, in CPUs, of a version 2 control group and those above it: `group` is its path ("/a/b") below
 * the mount point `root`. +infinity where there is none. */
double pl_cpus_quota(const char *root, const char *group);

#endif
