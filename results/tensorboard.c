#include "results/tensorboard.h"

#include <string.h>

enum { HEAD = 12, FOOT = 4 }; /* bytes of a record before and after its content */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are little endian and copied as they lie in memory");

/* Half a byte at a time: a table of 16 entries is exact and small, and event files are not. */
static const uint32_t nibbles[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
                                     0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                     0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};

uint32_t pl_crc32c_masked(const void *bytes, size_t count) {
  const unsigned char *b = bytes;
  uint32_t crc = 0xffffffffu;
  for (size_t i = 0; i < count; i++) {
    crc ^= b[i];
    crc = crc >> 4 ^ nibbles[crc & 15];
    crc = crc >> 4 ^ nibbles[crc & 15];
  }
  crc ^= 0xffffffffu;
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static bool is_sealed(const char *bytes, size_t count) {
  uint32_t stored;
  memcpy(&stored, bytes + count, sizeof stored);
  return stored == pl_crc32c_masked(bytes, count);
}

bool pl_event_file_begins(const char *bytes, size_t length) { return length >= HEAD && is_sealed(bytes, 8); }

static pl_status damaged(const pl_records *r, const char *what, pl_err *e) {
  return pl_fail(e, PL_BAD, "%s: the record at byte %zu %s", r->path, r->at, what);
}

pl_status pl_records_next(pl_records *r, const char **record, size_t *length, pl_err *e) {
  size_t left = r->length - r->at;
  uint64_t size;
  if (left == 0) return PL_NOTHING;
  if (left < HEAD) return damaged(r, "is torn", e);
  const char *head = r->bytes + r->at;
  memcpy(&size, head, sizeof size);
  if (!is_sealed(head, sizeof size)) return damaged(r, "has a wrong checksum over its length", e);
  if (size > left || left - (size_t)size < HEAD + FOOT) return damaged(r, "is torn", e);
  if (!is_sealed(head + HEAD, (size_t)size)) return damaged(r, "has a wrong checksum", e);
  *record = head + HEAD;
  *length = (size_t)size;
  r->at += HEAD + (size_t)size + FOOT;
  return PL_OK;
}

void pl_record_append(pl_str *out, const char *record, size_t length) {
  const uint64_t size = length;
  const uint32_t of_size = pl_crc32c_masked(&size, sizeof size), of_record = pl_crc32c_masked(record, length);
  pl_str_append_bytes(out, (const char *)&size, sizeof size);
  pl_str_append_bytes(out, (const char *)&of_size, sizeof of_size);
  pl_str_append_bytes(out, record, length);
  pl_str_append_bytes(out, (const char *)&of_record, sizeof of_record);
}

static bool read_varint(pl_proto *p, uint64_t *out) {
  *out = 0;
  for (unsigned shift = 0; shift < 64 && p->at < p->length; shift += 7) {
    unsigned char byte = (unsigned char)p->bytes[p->at++];
    *out |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

static bool read_fixed(pl_proto *p, size_t size, uint64_t *out) {
  *out = 0;
  if (p->length - p->at < size) return false;
  memcpy(out, p->bytes + p->at, size);
  p->at += size;
  return true;
}

static bool read_bytes(pl_proto *p, pl_field *out) {
  if (!read_varint(p, &out->value) || p->length - p->at < out->value) return false;
  out->bytes = p->bytes + p->at;
  out->length = (size_t)out->value;
  p->at += out->length;
  return true;
}

static bool read_field(pl_proto *p, pl_field *out) {
  uint64_t tag;
  *out = (pl_field){0};
  if (!read_varint(p, &tag)) return false;
  out->number = tag >> 3;
  switch (tag & 7) {
  case PL_WIRE_VARINT:
    out->wire = PL_WIRE_VARINT;
    return read_varint(p, &out->value);
  case PL_WIRE_64:
    out->wire = PL_WIRE_64;
    return read_fixed(p, 8, &out->value);
  case PL_WIRE_BYTES:
    out->wire = PL_WIRE_BYTES;
    return read_bytes(p, out);
  case PL_WIRE_32:
    out->wire = PL_WIRE_32;
    return read_fixed(p, 4, &out->value);
  default:
    return false;
  }
}

bool pl_proto_next(pl_proto *p, pl_field *out) {
  if (p->damaged || p->at >= p->length) return false;
  p->damaged = !read_field(p, out);
  return !p->damaged;
}

pl_proto pl_proto_in(const pl_field *f) { return (pl_proto){.bytes = f->bytes, .length = f->length}; }

double pl_field_double(const pl_field *f) {
  double value;
  memcpy(&value, &f->value, sizeof value);
  return value;
}

double pl_field_float(const pl_field *f) {
  float value;
  memcpy(&value, &f->value, sizeof value);
  return (double)value;
}

static void append_varint(pl_str *out, uint64_t value) {
  char bytes[10];
  size_t n = 0;
  do {
    bytes[n++] = (char)(unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    value >>= 7;
  } while (value > 0);
  pl_str_append_bytes(out, bytes, n);
}

static void append_tag(pl_str *out, uint64_t number, pl_wire wire) { append_varint(out, number << 3 | (uint64_t)wire); }

void pl_proto_varint(pl_str *out, uint64_t number, uint64_t value) {
  append_tag(out, number, PL_WIRE_VARINT);
  append_varint(out, value);
}

void pl_proto_double(pl_str *out, uint64_t number, double value) {
  append_tag(out, number, PL_WIRE_64);
  pl_str_append_bytes(out, (const char *)&value, sizeof value);
}

void pl_proto_float(pl_str *out, uint64_t number, float value) {
  append_tag(out, number, PL_WIRE_32);
  pl_str_append_bytes(out, (const char *)&value, sizeof value);
}

void pl_proto_bytes(pl_str *out, uint64_t number, const char *bytes, size_t length) {
  append_tag(out, number, PL_WIRE_BYTES);
  append_varint(out, length);
  pl_str_append_bytes(out, bytes, length);
}
