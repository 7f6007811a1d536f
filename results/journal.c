#include "results/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/journal_format.h"

struct pl_journal {
  char *path;
  const pl_journal_format *format;
  size_t width; /* values in a record of the file */
  char *raw;    /* a record */
  int fd;
  int64_t attempt;
  uint64_t found;  /* length at open, before this attempt wrote anything */
  uint64_t length; /* of the whole records */
  bool torn;       /* a failed write left bytes beyond `length` that could not be cut off yet */
  bool started;    /* the start step is written */
  char *waiting;   /* [GATHERED records] that are to be written together; NULL: none ever */
  size_t waiting_bytes;
  double gather, since; /* seconds that they may wait; clock: of the first */
};

enum { GATHERED = 64 };

/* One write(2). After a failure the file ends with a whole record again, so that a later attempt can go on. */
static pl_status append(pl_journal *j, const void *bytes, size_t count, pl_err *e) {
  ssize_t written;
  if (j->torn && ftruncate(j->fd, (off_t)j->length) != 0)
    return pl_fail(e, PL_FAIL, "%s: cannot cut off a record that was written in part: %s", j->path, strerror(errno));
  j->torn = false;
  do written = write(j->fd, bytes, count);
  while (written < 0 && errno == EINTR);
  if (written == (ssize_t)count) {
    j->length += count;
    return PL_OK;
  }
  const char *reason = written < 0 ? strerror(errno) : "the disk is full or a size limit is reached";
  pl_status st = pl_fail(e, PL_FAIL, "%s: a record cannot be written: %s", j->path, reason);
  j->torn = written > 0 && ftruncate(j->fd, (off_t)j->length) != 0;
  return st;
}

static pl_status write_waiting(pl_journal *j, pl_err *e) {
  const size_t bytes = j->waiting_bytes;
  j->waiting_bytes = 0;
  return bytes > 0 ? append(j, j->waiting, bytes, e) : PL_OK;
}

static pl_status append_record(pl_journal *j, pl_journal_record r, const double *values, pl_err *e) {
  const size_t size = PL_RECORD_SIZE(j->width);
  pl_journal_record_pack(&r, values, j->width, j->raw);
  if (!j->waiting) return append(j, j->raw, size, e);
  const double now = pl_clock_seconds();
  if (j->waiting_bytes == 0) j->since = now;
  memcpy(j->waiting + j->waiting_bytes, j->raw, size);
  j->waiting_bytes += size;
  return j->waiting_bytes == GATHERED * size || now - j->since >= j->gather ? write_waiting(j, e) : PL_OK;
}

static pl_status append_attempt(pl_journal *j, int64_t start_step, pl_err *e) {
  pl_journal_record r = {.kind = PL_RECORD_ATTEMPT, .attempt = j->attempt, .step = start_step};
  return append_record(j, r, NULL, e);
}

/* A new journal appears with its header; its content and its folder are synced when something counts on them. */
static pl_status create(const pl_journal *j, pl_err *e) {
  const pl_journal_header h = pl_journal_header_make(j->format, j->width);
  return pl_path_exists(j->path) ? PL_OK : pl_file_replace_unsynced(j->path, &h, sizeof h, e);
}

/* Takes the file's own width, cuts a torn last record off and finds the highest attempt. */
static pl_status take_over(pl_journal *j, pl_err *e) {
  pl_status st = PL_OK;
  bool damaged;
  size_t width;
  struct stat info;
  if (fstat(j->fd, &info) != 0) return pl_fail(e, PL_FAIL, "%s: cannot be read: %s", j->path, strerror(errno));
  PL_TRY(pl_journal_header_read(j->fd, j->path, j->format, &width, &damaged, e));
  if (width > 0 && width != j->width && !j->format->grows)
    return pl_fail(e, PL_FAIL, "%s: a %s with %zu values in a record; allowed: the %zu of this run", j->path,
                   j->format->name, width, j->width);
  if (width > 0) j->width = width;
  PL_TRY(pl_alloc(1, PL_RECORD_SIZE(j->width), "a record of a journal", &j->raw, e));
  uint64_t size = (uint64_t)info.st_size;
  if (size >= sizeof(pl_journal_header))
    j->length = size - (size - sizeof(pl_journal_header)) % PL_RECORD_SIZE(j->width);
  j->torn = j->length != size;
  j->found = j->length;
  pl_journal_record last;
  if (pl_journal_tail(j->fd, j->width, 0, j->raw, &last) && last.attempt >= j->attempt) j->attempt = last.attempt + 1;
  if (j->length > 0) return PL_OK;
  const pl_journal_header h = pl_journal_header_make(j->format, j->width);
  st = append(j, &h, sizeof h, e);
out:
  return st;
}

pl_status pl_journal_open_as(const char *path, const pl_journal_format *f, size_t width, int64_t attempt,
                             pl_journal **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_journal *j = NULL;
  *out = NULL;
  PL_TRY(pl_alloc(1, sizeof *j, "a journal", &j, e));
  j->fd = -1;
  j->format = f;
  j->width = width;
  j->attempt = attempt;
  PL_TRY(pl_strdup(path, &j->path, e));
  PL_TRY(create(j, e));
  j->fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
  if (j->fd < 0) PL_TRY(pl_fail(e, PL_FAIL, "%s: cannot be opened for writing: %s", path, strerror(errno)));
  PL_TRY(take_over(j, e));
  PL_TRY(append_attempt(j, -1, e));
  *out = j;
out:
  if (st != PL_OK) pl_journal_close(j);
  return st;
}

pl_status pl_journal_open(const char *path, pl_journal **out, pl_err *e) {
  return pl_journal_open_as(path, &pl_journal_of_points, PL_SERIES_COUNT, 1, out, e);
}

pl_status pl_journal_gather(pl_journal *j, double seconds, pl_err *e) {
  j->gather = seconds;
  return j->waiting ? PL_OK : pl_alloc(GATHERED, PL_RECORD_SIZE(j->width), "records of a journal", &j->waiting, e);
}

void pl_journal_close(pl_journal *j) {
  if (!j) return;
  pl_free(j->waiting);
  if (j->fd >= 0) close(j->fd);
  pl_free(j->raw);
  pl_free(j->path);
  pl_free(j);
}

int64_t pl_journal_attempt(const pl_journal *j) { return j->attempt; }

pl_status pl_journal_append(pl_journal *j, int64_t step, int64_t tokens, const double *values, pl_err *e) {
  const pl_journal_record r = {.kind = PL_RECORD_POINT, .attempt = j->attempt, .step = step, .tokens = tokens};
  pl_status st = PL_OK;
  if (!j->started) PL_TRY(append_attempt(j, step, e));
  j->started = true;
  st = append_record(j, r, values, e);
out:
  return st;
}

pl_status pl_journal_write(void *journal, const pl_point *p, pl_err *e) {
  return pl_journal_append(journal, p->step, p->tokens, p->values, e);
}

pl_status pl_journal_sync(void *journal, uint64_t *length, pl_err *e) {
  pl_journal *j = journal;
  const pl_status st = write_waiting(j, e);
  *length = j->length;
  if (st != PL_OK) return st;
  if (fsync(j->fd) == 0) return PL_OK;
  return pl_fail(e, PL_FAIL, "%s: cannot be synced to disk: %s", j->path, strerror(errno));
}

uint64_t pl_journal_length(void *journal) { return ((const pl_journal *)journal)->found; }
