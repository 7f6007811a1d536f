#include "models/data/parts/files.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/fs.h"
#include "core/base/memory.h"

static const char glob_characters[] = "*?[";

static pl_status add_path(const char *path, const char *key, pl_files *out, pl_err *e) {
  pl_status st = PL_OK;
  struct stat s;
  if (stat(path, &s) != 0) return pl_fail(e, PL_BAD, "%s: cannot open \"%s\": %s", key, path, strerror(errno));
  if (!S_ISREG(s.st_mode))
    return pl_fail(e, PL_BAD, "%s: \"%s\" is no regular file; give a file or a pattern", key, path);
  PL_TRY(pl_grow(out->count, out->count + 1, sizeof *out->paths, "list of data files", &out->paths, e));
  PL_TRY(pl_strdup(path, &out->paths[out->count], e));
  out->count++;
out:
  return st;
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The matches of a pattern whose folder part `root` must be taken literally. */
static pl_status add_matches(const char *root, const char *pattern, const char *key, pl_files *out, pl_err *e) {
  pl_status st = PL_OK;
  pl_str quoted = {0};
  char *full = NULL;
  glob_t found = {0};
  for (const char *c = root; *c; c++) {
    if (strchr("*?[\\", *c)) pl_str_append(&quoted, "\\");
    pl_str_append_bytes(&quoted, c, 1);
  }
  PL_TRY(pl_str_check(&quoted, e));
  PL_TRY(pl_path_join(pl_str_text(&quoted), pattern, &full, e));
  int rc = glob(full, GLOB_NOSORT, NULL, &found);
  if (rc == GLOB_NOMATCH || (rc == 0 && found.gl_pathc == 0)) {
    st = pl_fail(e, PL_BAD, "%s: no file matches \"%s\" below \"%s\"", key, pattern, root);
    goto out;
  }
  if (rc != 0) {
    st = pl_fail(e, PL_FAIL, "%s: cannot list the files that match \"%s\"", key, full);
    goto out;
  }
  qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_bytes);
  for (size_t i = 0; i < found.gl_pathc; i++) PL_TRY(add_path(found.gl_pathv[i], key, out, e));
out:
  globfree(&found);
  pl_free(full);
  pl_str_free(&quoted);
  return st;
}

pl_status pl_files_add(const pl_text_list *patterns, const char *root, const char *key, pl_files *out, pl_err *e) {
  pl_status st = PL_OK;
  char *path = NULL;
  for (size_t i = 0; i < patterns->count; i++) {
    const char *pattern = patterns->values[i];
    pl_free(path);
    path = NULL;
    PL_TRY(pl_path_join(root, pattern, &path, e));
    if (strpbrk(pattern, glob_characters) && !pl_path_exists(path))
      PL_TRY(add_matches(root, pattern, key, out, e));
    else
      PL_TRY(add_path(path, key, out, e));
  }
out:
  pl_free(path);
  return st;
}

void pl_files_free(pl_files *f) {
  for (size_t i = 0; i < f->count; i++) pl_free(f->paths[i]);
  pl_free(f->paths);
  *f = (pl_files){0};
}

typedef struct identity {
  dev_t device;
  ino_t inode;
  const char *path;
} identity;

static int by_inode(const void *a, const void *b) {
  const identity *x = a, *y = b;
  if (x->device != y->device) return x->device < y->device ? -1 : 1;
  return (x->inode > y->inode) - (x->inode < y->inode);
}

pl_status pl_files_check_distinct(const pl_files *train, const pl_files *val, pl_err *e) {
  pl_status st = PL_OK;
  size_t count = train->count + val->count;
  identity *files = NULL;
  PL_TRY(pl_alloc(count, sizeof *files, "list of data files", &files, e));
  for (size_t i = 0; i < count; i++) {
    const char *path = i < train->count ? train->paths[i] : val->paths[i - train->count];
    struct stat s;
    if (stat(path, &s) != 0) {
      st = pl_fail(e, PL_BAD, "cannot open \"%s\": %s", path, strerror(errno));
      goto out;
    }
    files[i] = (identity){s.st_dev, s.st_ino, path};
  }
  qsort(files, count, sizeof *files, by_inode);
  for (size_t i = 1; i < count; i++)
    if (by_inode(&files[i - 1], &files[i]) == 0) {
      st = pl_fail(e, PL_BAD,
                   "data.train and data.val name one file twice: \"%s\" and \"%s\"; each file may appear once",
                   files[i - 1].path, files[i].path);
      goto out;
    }
out:
  pl_free(files);
  return st;
}

pl_status pl_map_file(const char *path, pl_map *out, pl_err *e) {
  pl_status st = PL_OK;
  *out = (pl_map){0};
  struct stat s;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &s) != 0) {
    st = pl_fail(e, PL_BAD, "cannot open \"%s\": %s", path, strerror(errno));
    goto out;
  }
  if (!S_ISREG(s.st_mode)) {
    st = pl_fail(e, PL_BAD, "\"%s\" is no regular file", path);
    goto out;
  }
  if (s.st_size == 0) goto out;
  void *bytes = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (bytes == MAP_FAILED) {
    st = pl_fail(e, PL_FAIL, "cannot map \"%s\" of %lld bytes: %s", path, (long long)s.st_size, strerror(errno));
    goto out;
  }
  *out = (pl_map){.bytes = bytes, .size = (size_t)s.st_size};
out:
  if (fd >= 0) close(fd);
  return st;
}

void pl_unmap(pl_map *m) {
  if (m->bytes) munmap((void *)(uintptr_t)m->bytes, m->size);
  *m = (pl_map){0};
}
