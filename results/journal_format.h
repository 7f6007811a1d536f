/* The bytes of a journal, shared by its writer and its reader: a header, then records of one fixed size. */
#ifndef PL_RESULTS_JOURNAL_FORMAT_H
#define PL_RESULTS_JOURNAL_FORMAT_H

#include "results/journal.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "journals are little endian and written as they lie in memory");

enum { PL_JOURNAL_VERSION = 1 };

typedef struct pl_journal_header {
  char magic[8]; /* "PLJOURNL" */
  uint32_t version, record_size, series, unused;
  uint64_t checksum; /* pl_hash of what is before it */
} pl_journal_header;

typedef enum pl_record_kind {
  PL_RECORD_ATTEMPT = 1, /* an attempt opened the journal (step -1), or is about to write its first point (step) */
  PL_RECORD_POINT = 2
} pl_record_kind;

typedef struct pl_journal_record {
  int64_t kind, attempt, step, tokens;
  double values[PL_SERIES_COUNT];
  uint64_t checksum; /* pl_hash of what is before it */
} pl_journal_record;

_Static_assert(sizeof(pl_journal_header) == 32, "no padding in the header");
_Static_assert(sizeof(pl_journal_record) == 40 + 8 * PL_SERIES_COUNT, "no padding in a record");

/* The header that this build writes. */
pl_journal_header pl_journal_header_make(void);

/* Reads the header of an open journal. PL_FAIL for a whole header of another version or record size, and for a file
 * that is no journal. A damaged header (*damaged) is let pass when a whole record follows it: every record carries its
 * own checksum. A file shorter than a header passes as empty (*damaged unless it has no byte at all). */
PL_MUST_CHECK pl_status pl_journal_header_check(int fd, const char *path, bool *damaged, pl_err *e);

void pl_journal_record_seal(pl_journal_record *r); /* sets the checksum */
bool pl_journal_record_whole(const pl_journal_record *r);

/* The last whole record, of kind `kind` or of any kind when it is 0, among the last records of the file; false when
 * there is none. */
bool pl_journal_tail(int fd, int64_t kind, pl_journal_record *out);

/* The highest attempt in a journal, 0 when there is none. */
int64_t pl_journal_last_attempt(const char *path);

#endif
