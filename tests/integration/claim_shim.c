/* Preloaded into programs under test: what claims must bear on a shared file system.
 * SHIM_LINK=1: link(2) does its work and then reports EIO. SHIM_LOCKS=1: flock and fcntl locks give ENOLCK.
 * SHIM_STALE=SECONDS: a file whose name holds SHIM_STALE_NAME is read as this process saw it before, for that long.
 * SHIM_SLOW=SECONDS: fsync takes that long.
 * SHIM_LOG=FILE gets a letter for each answer that was not the truth. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int real_open(const char *path, int flags, mode_t mode) {
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static void note(char letter) {
  const char *log = getenv("SHIM_LOG");
  int fd = log ? real_open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
  if (fd < 0) return;
  (void)!write(fd, &letter, 1);
  close(fd);
}

int link(const char *from, const char *to) {
  if (syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0) != 0) return -1;
  if (!getenv("SHIM_LINK")) return 0;
  note('L');
  errno = EIO;
  return -1;
}

int fsync(int fd) {
  const char *slow = getenv("SHIM_SLOW");
  if (slow) usleep((unsigned)(1e6 * atof(slow)));
  return (int)syscall(SYS_fsync, fd);
}

int flock(int fd, int operation) {
  if (!getenv("SHIM_LOCKS")) return (int)syscall(SYS_flock, fd, operation);
  note('F');
  errno = ENOLCK;
  return -1;
}

static int any_fcntl(int fd, int command, void *argument) {
  int locks = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
  if (!locks || !getenv("SHIM_LOCKS")) return (int)syscall(SYS_fcntl, fd, command, argument);
  note('C');
  errno = ENOLCK;
  return -1;
}

int fcntl(int fd, int command, ...) {
  va_list list;
  va_start(list, command);
  void *argument = va_arg(list, void *);
  va_end(list);
  return any_fcntl(fd, command, argument);
}

int fcntl64(int fd, int command, ...) {
  va_list list;
  va_start(list, command);
  void *argument = va_arg(list, void *);
  va_end(list);
  return any_fcntl(fd, command, argument);
}

enum { FILES = 256, NAME = 400, TEXT = 600 };
static struct seen {
  char path[NAME], text[TEXT];
  ssize_t length;
  double at;
} seen[FILES];
static int seen_count;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct seen *find(const char *path) {
  for (int i = 0; i < seen_count; i++)
    if (strcmp(seen[i].path, path) == 0) return &seen[i];
  return NULL;
}

/* A file of its own with the text of before. */
static int stale_copy(const struct seen *s) {
  int fd = memfd_create("stale", MFD_CLOEXEC);
  if (fd < 0 || write(fd, s->text, (size_t)s->length) != s->length || lseek(fd, 0, SEEK_SET) != 0) abort();
  return fd;
}

static void remember(const char *path, int fd) {
  struct seen *s = find(path);
  if (!s && seen_count < FILES) s = &seen[seen_count++];
  if (!s) s = &seen[(size_t)strlen(path) % FILES];
  snprintf(s->path, sizeof s->path, "%s", path);
  s->length = pread(fd, s->text, sizeof s->text, 0);
  s->at = now();
}

static int any_open(const char *path, int flags, mode_t mode) {
  const char *stale = getenv("SHIM_STALE"), *name = getenv("SHIM_STALE_NAME");
  if (!stale || !name || !strstr(path, name) || (flags & O_ACCMODE) != O_RDONLY || (flags & O_DIRECTORY))
    return real_open(path, flags, mode);
  const struct seen *s = find(path);
  int fd = real_open(path, flags, mode);
  if (!s || s->length < 0 || now() - s->at > atof(stale)) {
    if (fd >= 0) remember(path, fd);
    return fd;
  }
  char truth[TEXT];
  ssize_t length = fd >= 0 ? pread(fd, truth, sizeof truth, 0) : -1;
  if (length != s->length || memcmp(truth, s->text, (size_t)length) != 0) note('S');
  if (fd >= 0) close(fd);
  return stale_copy(s);
}

int open(const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? (mode_t)va_arg(list, int) : 0;
  va_end(list);
  return any_open(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? (mode_t)va_arg(list, int) : 0;
  va_end(list);
  return any_open(path, flags, mode);
}
