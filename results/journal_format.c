#include "results/journal_format.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/hash.h"
#include "core/base/memory.h"

/* How far back the tail is looked for: past a record that is just being written, attempts that wrote no point, and a
 * damaged block of the disk. Without a header, a few records tell whether a width fits. */
enum { TAIL_RECORDS = 1024, GUESS_RECORDS = 16 };

enum {
  FIRST_SERIES = 11, /* of the first journals */
  STAGE_TIMES = sizeof(pl_stage_times) / sizeof(double),
  MOST_STAGES = 4096 /* with their replicas */
};

const pl_journal_format pl_journal_of_points = {.magic = {'P', 'L', 'J', 'O', 'U', 'R', 'N', 'L'},
                                                .name = "journal",
                                                .least = FIRST_SERIES,
                                                .most = PL_SERIES_COUNT,
                                                .step = 1,
                                                .grows = true};
const pl_journal_format pl_journal_of_times = {.magic = {'P', 'L', 'T', 'I', 'M', 'E', 'S', ' '},
                                               .name = "journal of stage times",
                                               .least = STAGE_TIMES,
                                               .most = STAGE_TIMES * MOST_STAGES,
                                               .step = STAGE_TIMES};

static uint64_t header_checksum(const pl_journal_header *h) {
  return pl_hash(h, offsetof(pl_journal_header, checksum));
}

pl_journal_header pl_journal_header_make(const pl_journal_format *f, size_t width) {
  pl_journal_header h = {
      .version = PL_JOURNAL_VERSION, .record_size = (uint32_t)PL_RECORD_SIZE(width), .values = (uint32_t)width};
  memcpy(h.magic, f->magic, sizeof h.magic);
  h.checksum = header_checksum(&h);
  return h;
}

static bool fits(const pl_journal_format *f, size_t width) {
  return width >= f->least && width <= f->most && width % f->step == 0;
}

/* The last whole record among the last `records`. */
static bool find_last(int fd, size_t width, int64_t kind, int records, char *raw, pl_journal_record *out) {
  const off_t header = sizeof(pl_journal_header), size = (off_t)PL_RECORD_SIZE(width);
  struct stat info;
  if (fstat(fd, &info) != 0 || info.st_size < header + size) return false;
  off_t last = (info.st_size - header) / size - 1;
  for (off_t i = last; i >= 0 && i > last - records; i--)
    if (pread(fd, raw, (size_t)size, header + i * size) == size && pl_journal_record_unpack(raw, width, out) &&
        (kind == 0 || out->kind == kind))
      return true;
  return false;
}

bool pl_journal_tail(int fd, size_t width, int64_t kind, char *raw, pl_journal_record *out) {
  return find_last(fd, width, kind, TAIL_RECORDS, raw, out);
}

/* The width with which there are whole records at the beginning or the end of the file; 0: none. */
static pl_status guess_width(int fd, const pl_journal_format *f, size_t *width, pl_err *e) {
  char *raw = NULL;
  pl_journal_record r;
  pl_status st = pl_alloc(1, PL_RECORD_SIZE(f->most), "a record of a journal", &raw, e);
  if (st != PL_OK) return st;
  *width = 0;
  for (size_t w = f->most; w >= f->least && *width == 0; w -= f->step) {
    ssize_t size = (ssize_t)PL_RECORD_SIZE(w);
    bool first =
        pread(fd, raw, (size_t)size, sizeof(pl_journal_header)) == size && pl_journal_record_unpack(raw, w, &r);
    if (first || find_last(fd, w, 0, GUESS_RECORDS, raw, &r)) *width = w;
  }
  pl_free(raw);
  return PL_OK;
}

pl_status pl_journal_header_read(int fd, const char *path, const pl_journal_format *f, size_t *width, bool *damaged,
                                 pl_err *e) {
  pl_journal_header h;
  ssize_t got = pread(fd, &h, sizeof h, 0);
  *damaged = got > 0 && got < (ssize_t)sizeof h;
  *width = 0;
  if (got < (ssize_t)sizeof h) return PL_OK;
  if (h.checksum == header_checksum(&h) && memcmp(h.magic, f->magic, sizeof h.magic) == 0) {
    *width = h.values;
    if (h.version == PL_JOURNAL_VERSION && fits(f, h.values) && h.record_size == PL_RECORD_SIZE((size_t)h.values))
      return PL_OK;
    return pl_fail(e, PL_FAIL,
                   "%s: a %s of version %u with records of %u bytes; this pipelag reads version %d with records of %zu "
                   "to %zu bytes",
                   path, f->name, h.version, h.record_size, PL_JOURNAL_VERSION, PL_RECORD_SIZE(f->least),
                   PL_RECORD_SIZE(f->most));
  }
  *damaged = true;
  pl_status st = guess_width(fd, f, width, e);
  if (st != PL_OK || *width > 0) return st;
  return pl_fail(e, PL_FAIL, "%s: is no %s of pipelag (neither its header nor any of its records is whole)", path,
                 f->name);
}

void pl_journal_record_pack(const pl_journal_record *r, const double *values, size_t width, char *raw) {
  char *at = raw + sizeof *r;
  memcpy(raw, r, sizeof *r);
  if (values)
    memcpy(at, values, width * sizeof *values);
  else
    memset(at, 0, width * sizeof *values);
  at += width * sizeof *values;
  const uint64_t checksum = pl_hash(raw, (size_t)(at - raw));
  memcpy(at, &checksum, sizeof checksum);
}

bool pl_journal_record_unpack(const char *raw, size_t width, pl_journal_record *out) {
  const size_t hashed = PL_RECORD_SIZE(width) - sizeof(uint64_t);
  uint64_t checksum;
  memcpy(&checksum, raw + hashed, sizeof checksum);
  memcpy(out, raw, sizeof *out);
  return checksum == pl_hash(raw, hashed) && (out->kind == PL_RECORD_ATTEMPT || out->kind == PL_RECORD_POINT);
}
