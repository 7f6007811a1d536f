#include "results/journal_format.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/hash.h"

/* How far back the tail is looked for: past a record that is just being written, attempts that wrote no point, and a
 * damaged block of the disk. */
enum { TAIL_RECORDS = 1024 };

pl_journal_header pl_journal_header_make(void) {
  pl_journal_header h = {.magic = {'P', 'L', 'J', 'O', 'U', 'R', 'N', 'L'},
                         .version = PL_JOURNAL_VERSION,
                         .record_size = sizeof(pl_journal_record),
                         .series = PL_SERIES_COUNT};
  h.checksum = pl_hash(&h, offsetof(pl_journal_header, checksum));
  return h;
}

pl_status pl_journal_header_check(int fd, const char *path, bool *damaged, pl_err *e) {
  const pl_journal_header ours = pl_journal_header_make();
  pl_journal_header h;
  ssize_t got = pread(fd, &h, sizeof h, 0);
  *damaged = got > 0 && got < (ssize_t)sizeof h;
  if (got < (ssize_t)sizeof h || memcmp(&h, &ours, sizeof h) == 0) return PL_OK;
  if (h.checksum == pl_hash(&h, offsetof(pl_journal_header, checksum)) && memcmp(h.magic, ours.magic, 8) == 0)
    return pl_fail(e, PL_FAIL,
                   "%s: a journal of version %u with records of %u bytes; this pipelag reads version %u with records "
                   "of %u bytes",
                   path, h.version, h.record_size, ours.version, ours.record_size);
  pl_journal_record last;
  *damaged = pl_journal_tail(fd, 0, &last);
  if (*damaged) return PL_OK;
  return pl_fail(e, PL_FAIL, "%s: is no journal of pipelag (neither its header nor any of its last records is whole)",
                 path);
}

void pl_journal_record_seal(pl_journal_record *r) { r->checksum = pl_hash(r, offsetof(pl_journal_record, checksum)); }

bool pl_journal_record_whole(const pl_journal_record *r) {
  return r->checksum == pl_hash(r, offsetof(pl_journal_record, checksum)) &&
         (r->kind == PL_RECORD_ATTEMPT || r->kind == PL_RECORD_POINT);
}

bool pl_journal_tail(int fd, int64_t kind, pl_journal_record *out) {
  const off_t header = sizeof(pl_journal_header), size = sizeof *out;
  struct stat info;
  if (fstat(fd, &info) != 0 || info.st_size < header + size) return false;
  off_t last = (info.st_size - header) / size - 1;
  for (off_t i = last; i >= 0 && i > last - TAIL_RECORDS; i--)
    if (pread(fd, out, sizeof *out, header + i * size) == size && pl_journal_record_whole(out) &&
        (kind == 0 || out->kind == kind))
      return true;
  return false;
}
