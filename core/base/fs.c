#include "core/base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"

pl_status pl_path_join(const char *a, const char *b, char **out, pl_err *e) {
  if (b[0] == '/' || a[0] == '\0') return pl_strdup(b, out, e);
  size_t left = strlen(a), right = strlen(b);
  while (left > 1 && a[left - 1] == '/') left--;
  bool slash = right > 0 && a[left - 1] != '/';
  pl_status st = pl_alloc(left + slash + right + 1, 1, "a path", out, e);
  if (st != PL_OK) return st;
  memcpy(*out, a, left);
  if (slash) (*out)[left] = '/';
  memcpy(*out + left + slash, b, right);
  return PL_OK;
}

pl_status pl_path_folder(const char *path, char **out, pl_err *e) {
  size_t length = strlen(path);
  while (length > 1 && path[length - 1] == '/') length--;
  while (length > 0 && path[length - 1] != '/') length--;
  while (length > 1 && path[length - 1] == '/') length--;
  if (length == 0) return pl_strdup(".", out, e);
  pl_status st = pl_alloc(length + 1, 1, "a path", out, e);
  if (st == PL_OK) memcpy(*out, path, length);
  return st;
}

bool pl_path_exists(const char *path) {
  struct stat info;
  return stat(path, &info) == 0;
}

bool pl_path_is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* The folder is looked at after mkdir failed: a read-only parent answers EROFS or EACCES also for one that is there. */
static pl_status make_folder(const char *path, const char *whole, pl_err *e) {
  if (mkdir(path, 0777) == 0) return PL_OK;
  int reason = errno;
  if (pl_path_is_folder(path)) return PL_OK;
  const char *why = reason == EEXIST || reason == ENOTDIR ? "a file of that name is there" : strerror(reason);
  if (strcmp(path, whole) == 0) return pl_fail(e, PL_FAIL, "%s: cannot make this folder: %s", whole, why);
  return pl_fail(e, PL_FAIL, "%s: cannot make this folder: %s: %s", whole, path, why);
}

pl_status pl_make_folders(const char *path, pl_err *e) {
  char *part = NULL;
  pl_status st = pl_strdup(path, &part, e);
  if (st != PL_OK) return st;
  for (char *slash = strchr(part + (part[0] == '/'), '/'); slash && st == PL_OK; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    st = make_folder(part, path, e);
    *slash = '/';
  }
  if (st == PL_OK) st = make_folder(part, path, e);
  pl_free(part);
  return st;
}

static pl_status too_large(const char *path, uint64_t size, size_t limit, pl_err *e) {
  return pl_fail(e, PL_BAD, "%s: %llu bytes are too many; at most %zu bytes are read", path, (unsigned long long)size,
                 limit);
}

/* Reads to the end, not to the size seen before: files in /proc say 0, and others may grow meanwhile. */
static pl_status read_to_end(int fd, const char *path, size_t limit, size_t expected, char **out, size_t *length,
                             pl_err *e) {
  size_t capacity = (expected ? expected : 4095) + 1, used = 0;
  pl_status st = PL_OK;
  PL_TRY(pl_alloc(capacity, 1, path, out, e));
  for (;;) {
    ssize_t got = read(fd, *out + used, capacity - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      st = pl_fail(e, PL_FAIL, "%s: reading failed: %s", path, strerror(errno));
      goto out;
    }
    if (got == 0) break;
    used += (size_t)got;
    if (used > limit) PL_TRY(too_large(path, used, limit, e));
    if (used == capacity) {
      PL_TRY(pl_grow(used, 2 * capacity, 1, path, out, e));
      capacity *= 2;
    }
  }
  (*out)[used] = '\0';
  *length = used;
out:
  return st;
}

pl_status pl_file_read(const char *path, size_t limit, char **out, size_t *length, pl_err *e) {
  pl_status st = PL_OK;
  struct stat info;
  char *bytes = NULL;
  int fd = -1;
  *out = NULL;
  *length = 0;
  if (stat(path, &info) != 0) return pl_fail(e, PL_BAD, "%s: cannot be read: %s", path, strerror(errno));
  if (S_ISDIR(info.st_mode)) return pl_fail(e, PL_BAD, "%s: is a folder; a file is needed", path);
  if (!S_ISREG(info.st_mode)) return pl_fail(e, PL_BAD, "%s: is no regular file; a regular file is needed", path);
  if ((uint64_t)info.st_size > limit) return too_large(path, (uint64_t)info.st_size, limit, e);
  fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return pl_fail(e, PL_BAD, "%s: cannot be opened: %s", path, strerror(errno));
  st = read_to_end(fd, path, limit, (size_t)info.st_size, &bytes, length, e);
  close(fd);
  if (st == PL_OK)
    *out = bytes;
  else
    pl_free(bytes);
  return st;
}

pl_status pl_write_all(int fd, const void *bytes, size_t count, const char *path, pl_err *e) {
  const char *left = bytes;
  while (count > 0) {
    ssize_t written = write(fd, left, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return pl_fail(e, PL_FAIL, "%s: writing failed: %s", path, strerror(errno));
    left += written;
    count -= (size_t)written;
  }
  return PL_OK;
}

/* Filesystems that cannot sync folders say EINVAL: nothing more can be done. */
pl_status pl_path_sync(const char *path, pl_err *e) {
  pl_status st = PL_OK;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
    st = pl_fail(e, PL_FAIL, "%s: cannot be synced to disk: %s", path, strerror(errno));
  if (fd >= 0) close(fd);
  return st;
}

/* Makes a rename last over a power cut. */
static pl_status sync_folder(const char *path, pl_err *e) {
  char *folder = NULL;
  pl_status st = pl_path_folder(path, &folder, e);
  if (st == PL_OK) st = pl_path_sync(folder, e);
  pl_free(folder);
  return st;
}

/* What a replaced file waits for. */
typedef enum wait_for { NOTHING, CONTENT, CONTENT_AND_NAME } wait_for;

static pl_status write_new(const char *path, const void *bytes, size_t count, bool synced, pl_err *e) {
  pl_status st = PL_OK;
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return pl_fail(e, PL_FAIL, "%s: cannot be created: %s", path, strerror(errno));
  PL_TRY(pl_write_all(fd, bytes, count, path, e));
  if (synced && fsync(fd) != 0) st = pl_fail(e, PL_FAIL, "%s: cannot be synced to disk: %s", path, strerror(errno));
out:
  if (close(fd) != 0 && st == PL_OK) st = pl_fail(e, PL_FAIL, "%s: closing failed: %s", path, strerror(errno));
  return st;
}

static pl_status replace(const char *path, const void *bytes, size_t count, wait_for what, pl_err *e) {
  pl_status st = PL_OK;
  pl_str name = {0};
  pl_str_printf(&name, "%s.tmp.%ld", path, (long)getpid());
  PL_TRY(pl_str_check(&name, e));
  PL_TRY(write_new(name.text, bytes, count, what != NOTHING, e));
  if (rename(name.text, path) != 0) st = pl_fail(e, PL_FAIL, "%s: cannot be replaced: %s", path, strerror(errno));
  if (st == PL_OK && what == CONTENT_AND_NAME) st = sync_folder(path, e);
out:
  if (st != PL_OK && name.text) unlink(name.text);
  pl_str_free(&name);
  return st;
}

pl_status pl_file_replace(const char *path, const void *bytes, size_t count, pl_err *e) {
  return replace(path, bytes, count, CONTENT_AND_NAME, e);
}

pl_status pl_file_replace_whole(const char *path, const void *bytes, size_t count, pl_err *e) {
  return replace(path, bytes, count, CONTENT, e);
}

pl_status pl_file_replace_unsynced(const char *path, const void *bytes, size_t count, pl_err *e) {
  return replace(path, bytes, count, NOTHING, e);
}

pl_status pl_sync_all(const char *path, pl_err *e) {
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  pl_status st = PL_OK;
  if (fd < 0 || syncfs(fd) != 0) st = pl_fail(e, PL_FAIL, "%s: cannot be synced to disk: %s", path, strerror(errno));
  if (fd >= 0) close(fd);
  return st;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *at) {
  (void)info, (void)type, (void)at;
  (void)remove(path);
  return 0;
}

void pl_remove_tree(const char *path) { (void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS); }
