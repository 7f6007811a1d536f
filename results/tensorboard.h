/* TensorBoard event files: TFRecord framing with masked CRC-32C around protocol buffers. The little of both that scalar
 * summaries need. */
#ifndef PL_RESULTS_TENSORBOARD_H
#define PL_RESULTS_TENSORBOARD_H

#include <stdint.h>

#include "core/base/str.h"

/* CRC-32C (Castagnoli) rotated and offset as TFRecord stores it. */
uint32_t pl_crc32c_masked(const void *bytes, size_t count);

/* Whether bytes begin like an event file: a length with its checksum. */
bool pl_event_file_begins(const char *bytes, size_t length);

/* Records of a file: a uint64 length, its checksum, the bytes, their checksum. */
typedef struct pl_records {
  const char *path; /* for messages */
  const char *bytes;
  size_t length, at; /* at: where the next one begins */
} pl_records;

/* The next record, PL_NOTHING at the end; PL_BAD names the byte at which a record is torn or damaged. */
PL_MUST_CHECK pl_status pl_records_next(pl_records *r, const char **record, size_t *length, pl_err *e);
void pl_record_append(pl_str *out, const char *record, size_t length);

typedef enum pl_wire { PL_WIRE_VARINT = 0, PL_WIRE_64 = 1, PL_WIRE_BYTES = 2, PL_WIRE_32 = 5 } pl_wire;

/* Fields of a protocol buffer in order. */
typedef struct pl_proto {
  const char *bytes;
  size_t length, at;
  bool damaged;
} pl_proto;

typedef struct pl_field {
  uint64_t number;
  pl_wire wire;
  uint64_t value;    /* of a varint, or the bits of a fixed-size number */
  const char *bytes; /* of PL_WIRE_BYTES */
  size_t length;
} pl_field;

bool pl_proto_next(pl_proto *p, pl_field *out); /* false at the end, or when damaged */
pl_proto pl_proto_in(const pl_field *f);        /* the message in a field of bytes */

double pl_field_double(const pl_field *f);
double pl_field_float(const pl_field *f);

void pl_proto_varint(pl_str *out, uint64_t number, uint64_t value);
void pl_proto_double(pl_str *out, uint64_t number, double value);
void pl_proto_float(pl_str *out, uint64_t number, float value);
void pl_proto_bytes(pl_str *out, uint64_t number, const char *bytes, size_t length);

#endif
