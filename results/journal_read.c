#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "results/journal_format.h"

enum { BLOCK = 1 << 16 }; /* bytes that are read at a time, or one record */

typedef struct walk {
  const pl_journal_visitor *visitor;
  size_t width;
  double *values; /* of a record */
  int64_t *attempts;
  size_t *damaged;
} walk;

/* Attempts follow each other in the file, so what an attempt writes replaces the rows from its step on. A record of an
 * older attempt behind a newer one comes from a process that had lost the run: it does not count. */
static pl_status merge(const walk *w, const char *raw, pl_err *e) {
  const pl_journal_visitor *v = w->visitor;
  pl_journal_record r;
  if (!pl_journal_record_unpack(raw, w->width, &r)) {
    ++*w->damaged;
    return PL_OK;
  }
  if (r.attempt < *w->attempts) return PL_OK;
  *w->attempts = r.attempt;
  if (r.step < 0) return PL_OK;
  v->drop(v->self, r.step);
  if (r.kind != PL_RECORD_POINT) return PL_OK;
  memcpy(w->values, raw + sizeof r, w->width * sizeof *w->values);
  return v->add(v->self, &r, w->values, w->width, e);
}

static pl_status walk_records(const walk *w, int fd, const char *path, char *block, size_t room, pl_err *e) {
  const size_t size = PL_RECORD_SIZE(w->width);
  pl_status st = PL_OK;
  off_t at = sizeof(pl_journal_header);
  ssize_t got;
  do {
    got = pread(fd, block, room * size, at);
    if (got < 0) PL_TRY(pl_fail(e, PL_FAIL, "%s: reading failed: %s", path, strerror(errno)));
    size_t whole = (size_t)got / size;
    for (size_t i = 0; i < whole; i++) PL_TRY(merge(w, block + i * size, e));
    at += (off_t)(whole * size);
  } while (got >= (ssize_t)size);
  *w->damaged += got > 0;
out:
  return st;
}

static pl_status walk_file(walk *w, int fd, const char *path, const pl_journal_format *f, pl_err *e) {
  pl_status st = PL_OK;
  char *block = NULL;
  bool damaged;
  PL_TRY(pl_journal_header_read(fd, path, f, &w->width, &damaged, e));
  *w->damaged += damaged;
  if (w->width == 0) goto out;
  const size_t size = PL_RECORD_SIZE(w->width), room = size < BLOCK ? BLOCK / size : 1;
  PL_TRY(pl_alloc(room, size, "records of a journal", &block, e));
  PL_TRY(pl_alloc(w->width, sizeof *w->values, "a record of a journal", &w->values, e));
  PL_TRY(walk_records(w, fd, path, block, room, e));
out:
  pl_free(w->values);
  pl_free(block);
  return st;
}

pl_status pl_journal_visit(const char *path, const pl_journal_format *f, const pl_journal_visitor *v, int64_t *attempts,
                           size_t *damaged, pl_err *e) {
  walk w = {.visitor = v, .attempts = attempts, .damaged = damaged};
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return PL_OK;
  if (fd < 0) return pl_fail(e, PL_FAIL, "%s: cannot be read: %s", path, strerror(errno));
  pl_status st = walk_file(&w, fd, path, f, e);
  close(fd);
  return st;
}
