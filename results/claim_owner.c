#include "results/claim_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/hash.h"

bool pl_claim_read(const char *path, char line[PL_CLAIM_LINE]) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t got = read(fd, line, PL_CLAIM_LINE - 1);
  int reason = errno;
  close(fd);
  errno = reason;
  if (got < 0) return false;
  line[got] = '\0';
  return true;
}

/* False when there is no such process; one that ended and was not waited for counts as gone. */
static bool process_start(long long pid, unsigned long long *start) {
  char path[48], text[PL_CLAIM_LINE];
  snprintf(path, sizeof path, "/proc/%lld/stat", pid);
  if (!pl_claim_read(path, text)) return false;
  const char *at = strrchr(text, ')'); /* the name before it may hold anything */
  if (!at || at[1] == '\0' || strchr("ZX", at[2])) return false;
  at += 2;
  for (int field = 3; field < 22 && at; field++) at = strchr(at + 1, ' ');
  if (!at) return false;
  *start = strtoull(at, NULL, 10);
  return true;
}

/* Who this process is, without what differs from claim to claim. */
static pl_owner here(void) {
  pl_owner o = {.host = "-", .boot = "-", .space = "-", .pid = getpid(), .job = "-", .nonce = "-"};
  char text[PL_CLAIM_LINE];
  if (gethostname(o.host, sizeof o.host - 1) != 0 || o.host[0] == '\0') strcpy(o.host, "-");
  if (pl_claim_read("/proc/sys/kernel/random/boot_id", text)) sscanf(text, "%39s", o.boot);
  ssize_t length = readlink("/proc/self/ns/pid", o.space, sizeof o.space - 1);
  strcpy(o.space + (length > 0 ? length : 0), length > 0 ? "" : "-");
  if (!process_start(o.pid, &o.start)) o.start = 0;
  return o;
}

static const char *variable(const char *name, const char *fallback) {
  const char *value = getenv(name);
  return value && value[0] != '\0' ? value : fallback;
}

/* In an array SLURM_JOB_ID of the last task is that of the whole array. */
static void describe_job(char *out, size_t size) {
  const char *array = variable("SLURM_ARRAY_JOB_ID", ""), *task = variable("SLURM_ARRAY_TASK_ID", "");
  const char *job = variable("SLURM_JOB_ID", "");
  bool in_array = array[0] != '\0' && task[0] != '\0';
  int length = snprintf(out, size, "%s:%s%s%s/%s", variable("SLURM_CLUSTER_NAME", "-"), in_array ? array : job,
                        in_array ? "_" : "", in_array ? task : "", variable("SLURM_RESTART_COUNT", "0"));
  bool usable = (in_array || job[0] != '\0') && length > 0 && (size_t)length < size && !strpbrk(out, " \t\n");
  if (!usable) snprintf(out, size, "-");
}

pl_owner pl_owner_self(void) {
  pl_owner o = here();
  uint64_t nonce;
  if (getrandom(&nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce)
    nonce = pl_hash_join((uint64_t)o.pid ^ o.start, (uint64_t)(1e9 * pl_clock_seconds()));
  snprintf(o.nonce, sizeof o.nonce, "%016" PRIx64, nonce);
  describe_job(o.job, sizeof o.job);
  return o;
}

void pl_owner_print(const pl_owner *o, char line[PL_CLAIM_LINE]) {
  snprintf(line, PL_CLAIM_LINE, "%s %s %s %lld %llu %s %s %010llu\n", o->host, o->boot, o->space, o->pid, o->start,
           o->job, o->nonce, o->counter);
}

bool pl_owner_parse(const char *line, pl_owner *out) {
  return sscanf(line, "%64s %39s %39s %lld %llu %127s %16s %llu", out->host, out->boot, out->space, &out->pid,
                &out->start, out->job, out->nonce, &out->counter) == 8;
}

size_t pl_owner_length(const char *line) {
  const char *last = strrchr(line, ' ');
  return last ? (size_t)(last - line) : strlen(line);
}

bool pl_owner_is_self(const pl_owner *o) {
  const pl_owner self = here();
  return o->pid == self.pid && o->start == self.start && strcmp(o->space, self.space) == 0 &&
         strcmp(o->boot, self.boot) == 0 && strcmp(o->host, self.host) == 0;
}

bool pl_owner_is_gone(const pl_owner *o) {
  const pl_owner self = here();
  if (strcmp(o->host, self.host) != 0) return false;
  if (strcmp(o->boot, self.boot) != 0) return true;
  if (strcmp(o->space, self.space) != 0 || self.start == 0) return false;
  unsigned long long start;
  if (process_start(o->pid, &start)) return start != o->start;
  return kill((pid_t)o->pid, 0) == 0 || errno != EPERM; /* another user's may be hidden from /proc */
}
