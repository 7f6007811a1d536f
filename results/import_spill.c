#include "results/import_spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/fs.h"
#include "core/base/memory.h"

struct pl_import_spill {
  char *path; /* for messages; the name is gone */
  int fd;
  int64_t size;
};

static pl_status make_file(pl_import_spill *s, pl_err *e) {
  const char *folder = getenv("TMPDIR");
  pl_status st = pl_path_join(folder && folder[0] ? folder : "/var/tmp", "pipelag-import-XXXXXX", &s->path, e);
  if (st != PL_OK) return st;
  s->fd = mkostemp(s->path, O_CLOEXEC);
  if (s->fd < 0)
    return pl_fail(e, PL_FAIL, "%s: cannot be created: %s; TMPDIR says where curves wait until all are checked",
                   s->path, strerror(errno));
  unlink(s->path);
  return PL_OK;
}

pl_status pl_import_spill_open(pl_import_spill **out, pl_err *e) {
  pl_status st = pl_alloc(1, sizeof **out, "imported curves", out, e);
  if (st == PL_OK) (*out)->fd = -1;
  return st;
}

void pl_import_spill_close(pl_import_spill *s) {
  if (!s) return;
  if (s->fd >= 0) close(s->fd);
  pl_free(s->path);
  pl_free(s);
}

pl_status pl_import_spill_put(pl_import_spill *s, pl_import_table *t, int64_t *at, pl_err *e) {
  pl_status st = PL_OK;
  *at = s->size;
  if (t->count == 0) return PL_OK;
  if (s->fd < 0) PL_TRY(make_file(s, e));
  PL_TRY(pl_write_all(s->fd, t->rows, t->count * sizeof *t->rows, s->path, e));
  s->size += (int64_t)(t->count * sizeof *t->rows);
  pl_free(t->rows);
  t->rows = NULL;
  t->capacity = 0;
out:
  return st;
}

pl_status pl_import_spill_get(pl_import_spill *s, pl_import_table *t, int64_t at, pl_err *e) {
  size_t length = t->count * sizeof *t->rows;
  if (t->count == 0 || t->rows) return PL_OK;
  pl_status st = pl_alloc(t->count, sizeof *t->rows, "an imported curve", &t->rows, e);
  if (st != PL_OK) return st;
  t->capacity = t->count;
  for (size_t done = 0; done < length;) {
    ssize_t n = pread(s->fd, (char *)t->rows + done, length - done, at + (int64_t)done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return pl_fail(e, PL_FAIL, "%s: cannot be read back: %s", s->path, n < 0 ? strerror(errno) : "it ends");
    done += (size_t)n;
  }
  return PL_OK;
}
