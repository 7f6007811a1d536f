#include "runners/launchers/cores.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Everybody may use it: the file belongs to whoever came first. */
static int open_file(const char *path) {
  int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd >= 0 || errno != ENOENT) return fd;
  fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  (void)!fchmod(fd, 0666);
  return fd;
}

/* The first hardware thread of its core; also where nothing is known about that. */
static bool leads_its_core(int cpu) {
  char path[96];
  int first = cpu;
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
  FILE *list = fopen(path, "re");
  if (list == NULL) return true;
  if (fscanf(list, "%d", &first) != 1) first = cpu;
  fclose(list);
  return first == cpu;
}

/* Byte n stands for CPU n. */
static bool lock(int fd, int cpu) {
  struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = cpu, .l_len = 1};
  return fcntl(fd, F_OFD_SETLK, &byte) == 0;
}

int pl_cores_take(const char *path, const cpu_set_t *allowed, int *cpus, size_t count) {
  size_t taken = 0;
  int fd = open_file(path);
  for (size_t i = 0; i < count; i++) cpus[i] = -1;
  for (int siblings = 0; fd >= 0 && siblings < 2; siblings++)
    for (int cpu = 0; cpu < CPU_SETSIZE && taken < count; cpu++)
      if (CPU_ISSET((size_t)cpu, allowed) && leads_its_core(cpu) == (siblings == 0) && lock(fd, cpu))
        cpus[taken++] = cpu;
  return fd;
}
