#include "core/base/json_text.h"

#include <stdio.h>
#include <string.h>

#include "core/base/json.h"

size_t pl_utf8_length(const char *bytes, size_t left) {
  static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const unsigned char *b = (const unsigned char *)bytes;
  if (left == 0) return 0;
  if (b[0] < 0x80) return 1;
  size_t length = b[0] < 0xc0 ? 0 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : b[0] < 0xf8 ? 4 : 0;
  if (length == 0 || length > left) return 0;
  uint32_t point = b[0] & (0x7fU >> length);
  for (size_t i = 1; i < length; i++) {
    if ((b[i] & 0xc0) != 0x80) return 0;
    point = point << 6 | (b[i] & 0x3f);
  }
  bool surrogate = point >= 0xd800 && point <= 0xdfff;
  return point < smallest[length] || point > 0x10ffff || surrogate ? 0 : length;
}

void pl_utf8_repair(const char *text, pl_str *out) {
  size_t left = strlen(text);
  while (left > 0) {
    size_t length = pl_utf8_length(text, left);
    if (length > 0)
      pl_str_append_bytes(out, text, length);
    else
      pl_str_append(out, "\xef\xbf\xbd");
    length += length == 0;
    text += length;
    left -= length;
  }
}

pl_status pl_json_text_fail(const pl_json_text *t, size_t offset, pl_err *e, const char *format, ...) {
  size_t line = 1, column = 1;
  for (size_t i = 0; i < offset && i < t->length; i++) {
    if (t->bytes[i] == '\n') {
      line++;
      column = 1;
    } else if ((t->bytes[i] & 0xc0) != 0x80)
      column++;
  }
  char what[PL_ERR_TEXT / 2];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  return pl_fail(e, PL_BAD, "%s:%zu:%zu: %s", t->name, line, column, what);
}

/* Bytes of the character at `offset`, or 0 when it has no place in a text. */
static size_t character(const pl_json_text *t, size_t offset) {
  unsigned char c = (unsigned char)t->bytes[offset];
  if (c < 0x20 && c != '\t' && c != '\n' && c != '\r') return 0;
  return pl_utf8_length(t->bytes + offset, t->length - offset);
}

pl_status pl_json_text_scan(const pl_json_text *t, pl_err *e) {
  size_t depth = 0;
  bool in_string = false, blank = true;
  for (size_t i = 0, step; i < t->length; i += step) {
    char c = t->bytes[i];
    step = character(t, i);
    if (step == 0)
      return pl_json_text_fail(t, i, e, "not a JSON text: byte 0x%02x here; UTF-8 text is needed", (unsigned char)c);
    blank = blank && strchr(" \t\r\n", c);
    if (in_string && c == '\\' && i + 1 < t->length && t->bytes[i + 1] >= 0x20)
      step = 2; /* the escaped character ends no string */
    else if (c == '"')
      in_string = !in_string;
    else if (!in_string && (c == '{' || c == '['))
      depth++;
    else if (!in_string && (c == '}' || c == ']') && depth > 0)
      depth--;
    if (depth > PL_JSON_MAX_DEPTH)
      return pl_json_text_fail(t, i, e, "nested deeper than %d levels; at most %d are allowed", PL_JSON_MAX_DEPTH,
                               PL_JSON_MAX_DEPTH);
  }
  if (blank) return pl_fail(e, PL_BAD, "%s: empty; a JSON value is needed", t->name);
  return PL_OK;
}
