#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "results/journal_format.h"

enum { BLOCK = 256 }; /* records read at a time */

static pl_status push(pl_curve *c, size_t *capacity, const pl_journal_record *r, pl_err *e) {
  if (c->count == *capacity) {
    size_t larger = *capacity ? 2 * *capacity : BLOCK;
    pl_status st = pl_grow(*capacity, larger, sizeof *c->rows, "a curve", &c->rows, e);
    if (st != PL_OK) return st;
    *capacity = larger;
  }
  pl_curve_row *row = &c->rows[c->count++];
  *row = (pl_curve_row){.point = {.step = r->step, .tokens = r->tokens}, .attempt = r->attempt};
  memcpy(row->point.values, r->values, sizeof r->values);
  return PL_OK;
}

/* Attempts follow each other in the file, so what an attempt writes replaces the rows from its step on. A record of an
 * older attempt behind a newer one comes from a process that had lost the run: it does not count. */
static pl_status merge(pl_curve *c, size_t *capacity, const pl_journal_record *r, pl_err *e) {
  if (!pl_journal_record_whole(r)) {
    c->damaged++;
    return PL_OK;
  }
  if (r->attempt < c->attempts) return PL_OK;
  c->attempts = r->attempt;
  if (r->step < 0) return PL_OK;
  while (c->count > 0 && c->rows[c->count - 1].point.step >= r->step) c->count--;
  return r->kind == PL_RECORD_POINT ? push(c, capacity, r, e) : PL_OK;
}

static pl_status read_records(int fd, const char *path, pl_curve *c, pl_err *e) {
  pl_status st = PL_OK;
  pl_journal_record block[BLOCK];
  size_t capacity = 0;
  ssize_t got;
  bool damaged;
  PL_TRY(pl_journal_header_check(fd, path, &damaged, e));
  c->damaged += damaged;
  off_t at = sizeof(pl_journal_header);
  do {
    got = pread(fd, block, sizeof block, at);
    if (got < 0) PL_TRY(pl_fail(e, PL_FAIL, "%s: reading failed: %s", path, strerror(errno)));
    size_t whole = (size_t)got / sizeof *block;
    for (size_t i = 0; i < whole; i++) PL_TRY(merge(c, &capacity, &block[i], e));
    at += (off_t)(whole * sizeof *block);
  } while (got >= (ssize_t)sizeof *block);
  c->damaged += got > 0;
out:
  return st;
}

pl_status pl_curve_read(const char *path, pl_curve *out, pl_err *e) {
  *out = (pl_curve){0};
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return PL_OK;
  if (fd < 0) return pl_fail(e, PL_FAIL, "%s: cannot be read: %s", path, strerror(errno));
  pl_status st = read_records(fd, path, out, e);
  if (st != PL_OK) pl_curve_free(out);
  close(fd);
  return st;
}

void pl_curve_free(pl_curve *c) {
  pl_free(c->rows);
  *c = (pl_curve){0};
}

static bool tail_of(const char *path, int64_t kind, pl_journal_record *out) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool found = pl_journal_tail(fd, kind, out);
  close(fd);
  return found;
}

int64_t pl_journal_last_step(const char *path) {
  pl_journal_record last;
  return tail_of(path, PL_RECORD_POINT, &last) ? last.step : -1;
}

int64_t pl_journal_last_attempt(const char *path) {
  pl_journal_record last;
  return tail_of(path, 0, &last) ? last.attempt : 0;
}
