#include "runners/launchers/cpus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"

/* "max 100000", or "150000 100000": microseconds in each period. */
static double read_quota(const char *root, const char *group) {
  char path[4200];
  double quota = INFINITY, period = 0, used = 0;
  snprintf(path, sizeof path, "%s%s/cpu.max", root, group);
  FILE *file = fopen(path, "re");
  if (file == NULL) return INFINITY;
  if (fscanf(file, "%lf %lf", &used, &period) == 2 && used > 0 && period > 0) quota = used / period;
  fclose(file);
  return quota;
}

double pl_cpus_quota(const char *root, const char *group) {
  char path[4096];
  snprintf(path, sizeof path, "%s", group);
  double quota = read_quota(root, path);
  for (char *slash = strrchr(path, '/'); slash != NULL; slash = strrchr(path, '/')) {
    *slash = '\0';
    quota = fmin(quota, read_quota(root, path));
  }
  return quota;
}

/* The line "0::/path" of /proc/self/cgroup. */
static double own_quota(void) {
  char line[4096];
  double quota = INFINITY;
  FILE *file = fopen("/proc/self/cgroup", "re");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, "0::/", 4) != 0) continue;
    line[strcspn(line, "\n")] = '\0';
    quota = pl_cpus_quota("/sys/fs/cgroup", line + 3);
  }
  if (file != NULL) fclose(file);
  return quota;
}

/* Without a plugin that binds them, the jobs of a node see all of its CPUs. */
static double given_by_slurm(void) {
  const char *text = getenv("SLURM_CPUS_ON_NODE");
  int64_t cpus;
  return text != NULL && pl_parse_int(text, &cpus) && cpus >= 1 ? (double)cpus : (double)INFINITY;
}

size_t pl_cpus_usable(cpu_set_t *allowed) {
  CPU_ZERO(allowed);
  if (sched_getaffinity(0, sizeof *allowed, allowed) != 0) CPU_SET(0, allowed);
  double usable = fmin(fmin(CPU_COUNT(allowed), ceil(own_quota())), given_by_slurm());
  return usable < 1 ? 1 : (size_t)usable;
}
