/* Scalars of TensorBoard event files. Field numbers are those of event.proto, summary.proto and tensor.proto. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "results/import_read.h"
#include "results/tensorboard.h"

enum { EVENT_STEP = 2, EVENT_SUMMARY = 5, EVENT_SESSION = 7 };
enum { SUMMARY_VALUE = 1, SESSION_STATUS = 1, SESSION_START = 1 };
enum { VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_TENSOR = 8 };
enum { TENSOR_DTYPE = 1, TENSOR_CONTENT = 4, TENSOR_FLOAT = 5, TENSOR_DOUBLE = 6, TENSOR_INT = 7, TENSOR_INT64 = 10 };
enum { DT_FLOAT = 1, DT_DOUBLE = 2, DT_INT32 = 3, DT_INT64 = 9 };
enum { TAG = 256 };

/* The number that raw bytes of a tensor are. */
static bool content_number(uint64_t dtype, const pl_field *f, double *out) {
  const size_t size = dtype == DT_DOUBLE || dtype == DT_INT64 ? 8 : 4;
  pl_field bits = {0};
  int32_t small;
  int64_t large;
  if (f->length != size) return false;
  memcpy(&bits.value, f->bytes, size);
  memcpy(&small, f->bytes, sizeof small);
  memcpy(&large, &bits.value, sizeof large);
  switch (dtype) {
  case DT_FLOAT:
    *out = pl_field_float(&bits);
    return true;
  case DT_DOUBLE:
    *out = pl_field_double(&bits);
    return true;
  case DT_INT32:
    *out = small;
    return true;
  case DT_INT64:
    *out = (double)large;
    return true;
  default:
    return false;
  }
}

/* The only varint in the bytes. */
static bool packed_int(const pl_field *f, double *out) {
  uint64_t value = 0;
  size_t n = 0;
  for (unsigned shift = 0; n < f->length && shift < 64; shift += 7) {
    unsigned char byte = (unsigned char)f->bytes[n++];
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  *out = (double)(int64_t)value;
  return n > 0 && n == f->length;
}

/* An element of one of the typed lists, packed or alone. */
static bool list_number(const pl_field *f, double *out) {
  const bool packed = f->wire == PL_WIRE_BYTES;
  switch (f->number) {
  case TENSOR_FLOAT:
    if (packed) return content_number(DT_FLOAT, f, out);
    *out = pl_field_float(f);
    return f->wire == PL_WIRE_32;
  case TENSOR_DOUBLE:
    if (packed) return content_number(DT_DOUBLE, f, out);
    *out = pl_field_double(f);
    return f->wire == PL_WIRE_64;
  default:
    *out = (double)(int64_t)f->value;
    return packed ? packed_int(f, out) : f->wire == PL_WIRE_VARINT;
  }
}

/* False for what is no tensor of one number: texts, histograms, images. */
static bool tensor_number(const pl_field *tensor, double *out) {
  pl_proto p = pl_proto_in(tensor);
  pl_field f;
  uint64_t dtype = 0;
  size_t numbers = 0;
  while (pl_proto_next(&p, &f)) {
    if (f.number == TENSOR_DTYPE) dtype = f.value;
    if (f.number == TENSOR_CONTENT && f.length > 0) numbers += content_number(dtype, &f, out) ? 1 : 2;
    if (f.number == TENSOR_FLOAT || f.number == TENSOR_DOUBLE || f.number == TENSOR_INT || f.number == TENSOR_INT64)
      numbers += list_number(&f, out) ? 1 : 2;
  }
  return numbers == 1 && !p.damaged;
}

typedef struct reader {
  const pl_import_text *in;
  pl_import_table *table;
  size_t at; /* of the record in the file, for messages */
} reader;

static pl_status damaged(const reader *r, pl_err *e) {
  return pl_fail(e, PL_BAD, "%s: the record at byte %zu is no event of TensorBoard", r->in->path, r->at);
}

static pl_status read_value(const reader *r, const pl_field *summary, int64_t step, pl_err *e) {
  pl_proto p = pl_proto_in(summary);
  pl_field f;
  char tag[TAG] = "";
  double number = NAN;
  bool scalar = false, other = false;
  pl_point *point;
  while (pl_proto_next(&p, &f)) {
    if (f.number == VALUE_TAG && f.wire == PL_WIRE_BYTES)
      snprintf(tag, sizeof tag, "%.*s", (int)(f.length < TAG ? f.length : TAG - 1), f.bytes);
    if (f.number == VALUE_SIMPLE && f.wire == PL_WIRE_32) {
      number = pl_field_float(&f);
      scalar = true;
    }
    if (f.number == VALUE_TENSOR && f.wire == PL_WIRE_BYTES) scalar = tensor_number(&f, &number);
    other |= f.number > VALUE_SIMPLE && f.number < VALUE_TENSOR;
  }
  if (p.damaged) return damaged(r, e);
  pl_import_saw(r->table, tag);
  for (size_t i = 0; i < PL_IMPORT_COLUMNS; i++) {
    if (i == PL_IMPORT_STEP || !pl_import_map_takes(r->in->map, i, tag)) continue;
    if (!scalar || other)
      return pl_fail(e, PL_BAD, "%s: the tag \"%s\" at step %lld is no scalar", r->in->path, tag, (long long)step);
    pl_status st = pl_import_table_add(r->table, step, &point, e);
    if (st != PL_OK) return st;
    r->table->found[i] = true;
    pl_import_put(r->table, point, i, (pl_import_cell){true, number});
  }
  return PL_OK;
}

static bool starts_session(const pl_field *session) {
  pl_proto p = pl_proto_in(session);
  pl_field f;
  while (pl_proto_next(&p, &f))
    if (f.number == SESSION_STATUS && f.value == SESSION_START) return true;
  return false;
}

static pl_status read_event(const reader *r, const char *bytes, size_t length, pl_err *e) {
  pl_proto p = {.bytes = bytes, .length = length}, values;
  pl_field f, summary = {0}, value;
  int64_t step = 0;
  bool restart = false;
  while (pl_proto_next(&p, &f)) {
    if (f.number == EVENT_STEP && f.wire == PL_WIRE_VARINT) step = (int64_t)f.value;
    if (f.number == EVENT_SUMMARY && f.wire == PL_WIRE_BYTES) summary = f;
    if (f.number == EVENT_SESSION && f.wire == PL_WIRE_BYTES) restart = starts_session(&f);
  }
  if (p.damaged || step < 0) return damaged(r, e);
  if (restart) pl_import_table_drop(r->table, step);
  values = pl_proto_in(&summary);
  while (pl_proto_next(&values, &value)) {
    if (value.number != SUMMARY_VALUE || value.wire != PL_WIRE_BYTES) continue;
    pl_status st = read_value(r, &value, step, e);
    if (st != PL_OK) return st;
  }
  return values.damaged ? damaged(r, e) : PL_OK;
}

pl_status pl_import_tensorboard(const pl_import_text *in, pl_import_table *t, pl_err *e) {
  pl_records records = {.path = in->path, .bytes = in->bytes, .length = in->length};
  reader r = {.in = in, .table = t};
  const char *event;
  size_t length;
  pl_status st = PL_OK;
  t->found[PL_IMPORT_STEP] = true;
  while (st == PL_OK) {
    r.at = records.at;
    st = pl_records_next(&records, &event, &length, e);
    if (st == PL_OK) st = read_event(&r, event, length, e);
  }
  return st == PL_NOTHING ? PL_OK : st;
}
