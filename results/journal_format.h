/* The bytes of a run's journals, shared by their writers and readers: a header, then records of one size. There are
 * two, `journal` with the curves and `times` with the times of the stages; what they say of attempts, damage and torn
 * ends is the same. */
#ifndef PL_RESULTS_JOURNAL_FORMAT_H
#define PL_RESULTS_JOURNAL_FORMAT_H

#include "results/journal.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "journals are little endian and written as they lie in memory");

enum { PL_JOURNAL_VERSION = 1 };

typedef struct pl_journal_format {
  char magic[8];
  const char *name;   /* for messages */
  size_t least, most; /* values in a record */
  size_t step;        /* their number is a multiple of it */
  bool grows;         /* files with fewer values than this build writes are continued as they are */
} pl_journal_format;

/* The values are the series. A journal of an older build has fewer of them and is read and continued as it is. */
extern const pl_journal_format pl_journal_of_points;
extern const pl_journal_format pl_journal_of_times; /* the values are pl_stage_times, one for each stage */

typedef struct pl_journal_header {
  char magic[8]; /* "PLJOURNL", "PLTIMES " */
  uint32_t version, record_size, values, unused;
  uint64_t checksum; /* pl_hash of what is before it */
} pl_journal_header;

typedef enum pl_record_kind {
  PL_RECORD_ATTEMPT = 1, /* an attempt opened the journal (step -1), or is about to write its first point (step) */
  PL_RECORD_POINT = 2
} pl_record_kind;

/* The beginning of a record; float64 values and the checksum of all that, a uint64, follow. */
typedef struct pl_journal_record {
  int64_t kind, attempt, step, tokens;
} pl_journal_record;

_Static_assert(sizeof(pl_journal_header) == 32, "no padding in the header");
_Static_assert(sizeof(pl_journal_record) == 32, "no padding in a record");

/* Bytes of a record with `width` values. */
#define PL_RECORD_SIZE(width) (sizeof(pl_journal_record) + 8 * (width) + sizeof(uint64_t))

/* The header that this build writes. */
pl_journal_header pl_journal_header_make(const pl_journal_format *f, size_t width);

/* Reads the header of an open journal: *width is the number of values in a record, 0 when the file is shorter than a
 * header and counts as empty (*damaged unless it has no byte at all). PL_FAIL for a whole header of another version or
 * number of values, and for a file that is no such journal. A damaged header (*damaged) is let pass when a whole record
 * follows it: every record carries its own checksum. */
PL_MUST_CHECK pl_status pl_journal_header_read(int fd, const char *path, const pl_journal_format *f, size_t *width,
                                               bool *damaged, pl_err *e);

/* Puts a record together in raw[PL_RECORD_SIZE(width)]; NULL values are zeros. */
void pl_journal_record_pack(const pl_journal_record *r, const double *values, size_t width, char *raw);

/* Takes the beginning of a record; false when the record is not whole. */
bool pl_journal_record_unpack(const char *raw, size_t width, pl_journal_record *out);

/* The last whole record, of kind `kind` or of any kind when it is 0, among the last records of the file; false when
 * there is none. raw: room for a record. */
bool pl_journal_tail(int fd, size_t width, int64_t kind, char *raw, pl_journal_record *out);

/* Opens a journal for appending records of `width` values, see pl_journal_open. A file with fewer values gets the first
 * ones of each record, or is PL_FAIL when the format does not grow. `attempt` is this attempt's number, unless the file
 * has it already: the highest found plus one then. */
PL_MUST_CHECK pl_status pl_journal_open_as(const char *path, const pl_journal_format *f, size_t width, int64_t attempt,
                                           pl_journal **out, pl_err *e);

/* values[width as opened] */
PL_MUST_CHECK pl_status pl_journal_append(pl_journal *j, int64_t step, int64_t tokens, const double *values, pl_err *e);

/* What a walk through a journal does with its rows. */
typedef struct pl_journal_visitor {
  void *self;
  pl_status (*add)(void *self, const pl_journal_record *r, const double *values, size_t width, pl_err *e);
  void (*drop)(void *self, int64_t step); /* the rows from that step on, the last ones added: they do not count */
} pl_journal_visitor;

/* Walks through a journal, also while it is being written; see pl_curve_read for what counts. `attempts` and `damaged`
 * are added to. */
PL_MUST_CHECK pl_status pl_journal_visit(const char *path, const pl_journal_format *f, const pl_journal_visitor *v,
                                         int64_t *attempts, size_t *damaged, pl_err *e);

#endif
