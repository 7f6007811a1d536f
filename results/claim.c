#include "results/claim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/fs.h"
#include "core/base/hash.h"
#include "core/base/memory.h"

/* A process, so that neither a new process with an old pid nor one on another machine is taken for it. */
typedef struct owner {
  char host[65], boot[40], space[40]; /* host name, boot id, PID namespace; "-" when unknown */
  long long pid;
  unsigned long long start; /* ticks after boot, field 22 of /proc/PID/stat */
} owner;

/* A claim holds one line of text, a small file of /proc fits as well. */
enum { TEXT = 1024 };

static bool read_text(const char *path, char text[TEXT]) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t got = read(fd, text, TEXT - 1);
  close(fd);
  if (got < 0) return false;
  text[got] = '\0';
  return true;
}

/* False when there is no such process; one that ended and was not waited for counts as gone. */
static bool process_start(long long pid, unsigned long long *start) {
  char path[48], text[TEXT];
  snprintf(path, sizeof path, "/proc/%lld/stat", pid);
  if (!read_text(path, text)) return false;
  const char *at = strrchr(text, ')'); /* the name before it may hold anything */
  if (!at || at[1] == '\0' || strchr("ZX", at[2])) return false;
  at += 2;
  for (int field = 3; field < 22 && at; field++) at = strchr(at + 1, ' ');
  if (!at) return false;
  *start = strtoull(at, NULL, 10);
  return true;
}

static owner self(void) {
  owner o = {.host = "-", .boot = "-", .space = "-", .pid = getpid()};
  char text[TEXT];
  if (gethostname(o.host, sizeof o.host - 1) != 0 || o.host[0] == '\0') strcpy(o.host, "-");
  if (read_text("/proc/sys/kernel/random/boot_id", text)) sscanf(text, "%39s", o.boot);
  ssize_t length = readlink("/proc/self/ns/pid", o.space, sizeof o.space - 1);
  strcpy(o.space + (length > 0 ? length : 0), length > 0 ? "" : "-");
  if (!process_start(o.pid, &o.start)) o.start = 0;
  return o;
}

static bool parse(const char *text, owner *o) {
  return sscanf(text, "%64s %39s %39s %lld %llu", o->host, o->boot, o->space, &o->pid, &o->start) == 5;
}

static void print_self(char text[TEXT]) {
  const owner o = self();
  snprintf(text, TEXT, "%s %s %s %lld %llu\n", o.host, o.boot, o.space, o.pid, o.start);
}

/* Claims appear whole; a damaged one is what a power cut left, so its process is gone. */
static bool is_dead(const char *text) {
  owner o;
  if (!parse(text, &o)) return true;
  const owner here = self();
  if (strcmp(o.host, here.host) != 0) return false;
  if (strcmp(o.boot, here.boot) != 0) return true;
  if (strcmp(o.space, here.space) != 0 || here.start == 0) return false;
  unsigned long long start;
  if (process_start(o.pid, &start)) return start != o.start;
  return kill((pid_t)o.pid, 0) == 0 || errno != EPERM; /* another user's may be hidden from /proc */
}

pl_claim_state pl_claim_look(const char *path) {
  char text[TEXT];
  if (!read_text(path, text)) return errno == ENOENT || errno == ENOTDIR ? PL_CLAIM_NONE : PL_CLAIM_LIVE;
  return is_dead(text) ? PL_CLAIM_DEAD : PL_CLAIM_LIVE;
}

void pl_claim_describe(const char *path, pl_str *out) {
  char text[TEXT];
  owner o;
  if (read_text(path, text) && parse(text, &o))
    pl_str_printf(out, "process %lld on host %s", o.pid, o.host);
  else
    pl_str_append(out, "an unknown process");
}

static pl_status write_claim(const char *path, pl_err *e) {
  char text[TEXT];
  print_self(text);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return pl_fail(e, PL_FAIL, "%s: cannot be created: %s", path, strerror(errno));
  pl_status st = pl_write_all(fd, text, strlen(text), path, e);
  if (close(fd) != 0 && st == PL_OK) st = pl_fail(e, PL_FAIL, "%s: closing failed: %s", path, strerror(errno));
  return st;
}

static pl_status take(const char *path, int depth, bool *taken, pl_err *e);

/* The right to replace a dead claim is itself a claim, named by the dead one's text. Under it the text is looked at
 * again: whoever had the right before has replaced it. A taker that died in here leaves a dead right, which is taken
 * over in the same way; `depth` bounds how often that may have happened. */
static pl_status replace_dead(const char *path, const char *dead, const char *own, int depth, bool *taken, pl_err *e) {
  enum { DEEPEST = 8 };
  pl_status st = PL_OK;
  pl_str right = {0};
  char hex[PL_ID_SIZE], now[TEXT];
  bool mine = false;
  pl_hash_hex(pl_hash_text(dead), hex);
  pl_str_printf(&right, "%s.%.8s", path, hex);
  PL_TRY(pl_str_check(&right, e));
  if (depth < DEEPEST) PL_TRY(take(right.text, depth + 1, &mine, e));
  if (!mine) goto out;
  if (read_text(path, now) && strcmp(now, dead) == 0) {
    *taken = rename(own, path) == 0;
    if (!*taken) st = pl_fail(e, PL_FAIL, "%s: cannot be taken over: %s", path, strerror(errno));
  }
  pl_claim_release(right.text);
out:
  pl_str_free(&right);
  return st;
}

/* Over NFS a link that was made can be answered with an error when the answer to the first try got lost. */
static bool link_made(const char *own, const char *path) {
  struct stat info;
  if (link(own, path) == 0) return true;
  int reason = errno;
  bool made = stat(own, &info) == 0 && info.st_nlink == 2;
  errno = reason;
  return made;
}

static pl_status take(const char *path, int depth, bool *taken, pl_err *e) {
  pl_status st = PL_OK;
  pl_str own = {0};
  char text[TEXT];
  *taken = false;
  pl_str_printf(&own, "%s.tmp.%ld", path, (long)getpid());
  PL_TRY(pl_str_check(&own, e));
  PL_TRY(write_claim(own.text, e));
  *taken = link_made(own.text, path);
  if (*taken) goto out;
  if (errno != EEXIST)
    st = pl_fail(e, PL_FAIL, "%s: cannot be created: %s", path, strerror(errno));
  else if (read_text(path, text) && is_dead(text))
    st = replace_dead(path, text, own.text, depth, taken, e);
out:
  if (own.text) unlink(own.text);
  pl_str_free(&own);
  return st;
}

pl_status pl_claim_take(const char *path, bool *taken, pl_err *e) { return take(path, 0, taken, e); }

/* NAME.tmp.PID of a process that is gone. */
static bool is_abandoned(const char *name) {
  char *end;
  const char *mark = strstr(name, ".tmp.");
  if (!mark || mark[5] < '1' || mark[5] > '9') return false;
  long pid = strtol(mark + 5, &end, 10);
  return *end == '\0' && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* A file that is just being written is no owner yet and stays. */
static bool is_dead_claim(const char *path) {
  char text[TEXT];
  owner o;
  return read_text(path, text) && parse(text, &o) && is_dead(text);
}

void pl_claim_tidy(const char *path) {
  char *folder = NULL, *file = NULL;
  if (pl_path_folder(path, &folder, NULL) != PL_OK) return;
  const char *own = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  size_t length = strlen(own);
  DIR *entries = opendir(folder);
  for (struct dirent *d = entries ? readdir(entries) : NULL; d; d = readdir(entries)) {
    bool claim = strncmp(d->d_name, own, length) == 0 && d->d_name[length] == '.';
    if (!claim && !is_abandoned(d->d_name)) continue;
    if (pl_path_join(folder, d->d_name, &file, NULL) != PL_OK) continue;
    if (!claim || is_dead_claim(file)) unlink(file);
    pl_free(file);
  }
  if (entries) closedir(entries);
  pl_free(folder);
}

void pl_claim_release(const char *path) {
  char text[TEXT], own[TEXT];
  print_self(own);
  if (read_text(path, text) && strcmp(text, own) == 0) unlink(path);
}
