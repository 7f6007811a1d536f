#include "results/growing_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "core/base/str.h"

/* So much may stay in memory before it is let go. */
#define RESIDENT ((size_t)64 << 20)

struct pl_growing {
  char *path, *name; /* of the end, and until then; NULL when it has been renamed */
  int fd;
  char *bytes;
  size_t size;    /* of the memory */
  size_t on_disk; /* the first part, which is the file; less than size when the disk is full */
  size_t let_go;  /* size when pages were let go last */
  int why;        /* errno of a disk that is full, else 0 */
};

pl_status pl_growing_open(const char *path, pl_growing **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_growing *g = NULL;
  pl_str name = {0};
  *out = NULL;
  PL_TRY(pl_alloc(1, sizeof *g, "a file", &g, e));
  g->fd = -1;
  pl_str_printf(&name, "%s.tmp.%ld", path, (long)getpid());
  PL_TRY(pl_str_check(&name, e));
  PL_TRY(pl_strdup(path, &g->path, e));
  g->fd = open(name.text, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (g->fd < 0) PL_TRY(pl_fail(e, PL_FAIL, "%s: cannot be created: %s", path, strerror(errno)));
  PL_TRY(pl_strdup(name.text, &g->name, e));
  *out = g;
out:
  if (st != PL_OK) pl_growing_close(g);
  pl_str_free(&name);
  return st;
}

/* A larger piece of memory that begins with the file. */
static char *extend_file(pl_growing *g, size_t size) {
  void *bytes = g->bytes ? mremap(g->bytes, g->size, size, MREMAP_MAYMOVE)
                         : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, g->fd, 0);
  return bytes == MAP_FAILED ? NULL : bytes;
}

/* The file as far as it goes, and memory behind it. */
static char *extend_memory(pl_growing *g, size_t size) {
  void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (bytes == MAP_FAILED) return NULL;
  if (g->size > g->on_disk) memcpy((char *)bytes + g->on_disk, g->bytes + g->on_disk, g->size - g->on_disk);
  if (g->on_disk > 0 && mremap(g->bytes, g->on_disk, g->on_disk, MREMAP_MAYMOVE | MREMAP_FIXED, bytes) == MAP_FAILED) {
    munmap(bytes, size);
    return NULL;
  }
  if (g->size > g->on_disk) munmap(g->bytes + g->on_disk, g->size - g->on_disk);
  return bytes;
}

/* Pages of a mapped file stay in its cache, and are read again when they are used. */
static void let_go(pl_growing *g) {
  if (g->size - g->let_go < RESIDENT) return;
  madvise(g->bytes, g->on_disk, MADV_DONTNEED);
  g->let_go = g->size;
}

void *pl_growing_bytes(pl_growing *g, size_t size) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  if (size <= g->size) return g->bytes;
  size = (size + page - 1) / page * page;
  if (g->why == 0) g->why = posix_fallocate(g->fd, (off_t)g->size, (off_t)(size - g->size));
  char *bytes = g->why == 0 ? extend_file(g, size) : extend_memory(g, size);
  if (!bytes) return NULL;
  g->bytes = bytes;
  g->size = size;
  if (g->why == 0) g->on_disk = size;
  let_go(g);
  return bytes;
}

bool pl_growing_fits(const pl_growing *g) { return g->why == 0; }

static pl_status sync_folder(const char *path, pl_err *e) {
  char *folder = NULL;
  pl_status st = pl_path_folder(path, &folder, e);
  if (st == PL_OK) st = pl_path_sync(folder, e);
  pl_free(folder);
  return st;
}

pl_status pl_growing_commit(pl_growing *g, size_t size, pl_err *e) {
  if (g->why != 0) return pl_fail(e, PL_FAIL, "%s: cannot be written: %s", g->path, strerror(g->why));
  if (msync(g->bytes, g->on_disk, MS_SYNC) != 0 || ftruncate(g->fd, (off_t)size) != 0 || fsync(g->fd) != 0)
    return pl_fail(e, PL_FAIL, "%s: cannot be written: %s", g->path, strerror(errno));
  if (rename(g->name, g->path) != 0) return pl_fail(e, PL_FAIL, "%s: cannot be replaced: %s", g->path, strerror(errno));
  pl_free(g->name);
  g->name = NULL;
  return sync_folder(g->path, e);
}

void pl_growing_close(pl_growing *g) {
  if (!g) return;
  if (g->bytes) munmap(g->bytes, g->size);
  if (g->fd >= 0) close(g->fd);
  if (g->name) unlink(g->name);
  pl_free(g->name);
  pl_free(g->path);
  pl_free(g);
}
