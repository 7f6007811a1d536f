#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/memory.h"

static void write_int(int64_t value, pl_str *out) {
  char digits[24];
  size_t at = sizeof digits;
  uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  do digits[--at] = (char)('0' + left % 10);
  while (left /= 10);
  if (value < 0) digits[--at] = '-';
  pl_str_append_bytes(out, digits + at, sizeof digits - at);
}

static void write_real(double value, pl_str *out) {
  char text[32];
  pl_str_append(out, pl_format_number(value, text));
}

static void write_escape(unsigned char c, pl_str *out) {
  static const char *const shorts[] = {
      ['\b'] = "\\b", ['\f'] = "\\f", ['\n'] = "\\n", ['\r'] = "\\r", ['\t'] = "\\t", ['"'] = "\\\"", ['\\'] = "\\\\"};
  if (shorts[c])
    pl_str_append(out, shorts[c]);
  else
    pl_str_printf(out, "\\u%04x", c);
}

static bool needs_escape(unsigned char c) { return c < 0x20 || c == '"' || c == '\\'; }

static void write_string(const char *text, pl_str *out) {
  pl_str_append_bytes(out, "\"", 1);
  while (*text) {
    size_t plain = 0;
    while (text[plain] && !needs_escape((unsigned char)text[plain])) plain++;
    pl_str_append_bytes(out, text, plain);
    text += plain;
    if (*text) write_escape((unsigned char)*text++, out);
  }
  pl_str_append_bytes(out, "\"", 1);
}

static void write_scalar(const pl_json *value, pl_str *out) {
  switch (pl_json_kind_of(value)) {
  case PL_JSON_BOOL:
    pl_str_append(out, pl_json_bool(value) ? "true" : "false");
    return;
  case PL_JSON_INT:
    write_int(pl_json_int(value), out);
    return;
  case PL_JSON_REAL:
    write_real(pl_json_number(value), out);
    return;
  case PL_JSON_STRING:
    write_string(pl_json_string(value), out);
    return;
  default:
    pl_str_append(out, "null");
  }
}

static int by_key(const void *a, const void *b) {
  return strcmp(pl_json_iter_key(*(void *const *)a), pl_json_iter_key(*(void *const *)b));
}

static void write_sorted(const pl_json *object, pl_str *out) {
  enum { USUAL = 48 };
  void *few[USUAL], **members = few;
  size_t count = pl_json_size(object), i = 0;
  if (count > USUAL && pl_alloc(count, sizeof *members, "keys", &members, NULL) != PL_OK) {
    out->failed = true;
    return;
  }
  for (void *it = pl_json_iter(object); it; it = pl_json_iter_next(object, it)) members[i++] = it;
  qsort(members, count, sizeof *members, by_key);
  pl_str_append(out, "{");
  for (i = 0; i < count; i++) {
    if (i > 0) pl_str_append(out, ",");
    write_string(pl_json_iter_key(members[i]), out);
    pl_str_append(out, ":");
    pl_json_write_canonical(pl_json_iter_value(members[i]), out);
  }
  pl_str_append(out, "}");
  if (members != few) pl_free(members);
}

void pl_json_write_canonical(const pl_json *value, pl_str *out) {
  pl_json_kind kind = pl_json_kind_of(value);
  if (kind == PL_JSON_OBJECT) {
    write_sorted(value, out);
  } else if (kind == PL_JSON_ARRAY) {
    pl_str_append(out, "[");
    for (size_t i = 0; i < pl_json_size(value); i++) {
      if (i > 0) pl_str_append(out, ",");
      pl_json_write_canonical(pl_json_at(value, i), out);
    }
    pl_str_append(out, "]");
  } else
    write_scalar(value, out);
}

static void new_line(size_t depth, pl_str *out) {
  pl_str_append(out, "\n");
  for (size_t i = 0; i < depth; i++) pl_str_append(out, "  ");
}

static bool fits_one_line(const pl_json *array) {
  enum { SHORT = 16 };
  size_t count = pl_json_size(array);
  for (size_t i = 0; i < count; i++) {
    pl_json_kind kind = pl_json_kind_of(pl_json_at(array, i));
    if (kind != PL_JSON_INT && kind != PL_JSON_REAL) return false;
  }
  return count <= SHORT;
}

static void write_indented(const pl_json *value, size_t depth, pl_str *out);

static void indent_array(const pl_json *array, size_t depth, pl_str *out) {
  bool one_line = fits_one_line(array);
  pl_str_append(out, "[");
  for (size_t i = 0; i < pl_json_size(array); i++) {
    if (i > 0) pl_str_append(out, one_line ? ", " : ",");
    if (!one_line) new_line(depth + 1, out);
    write_indented(pl_json_at(array, i), depth + 1, out);
  }
  if (!one_line) new_line(depth, out);
  pl_str_append(out, "]");
}

static void indent_object(const pl_json *object, size_t depth, pl_str *out) {
  const char *between = "";
  pl_str_append(out, "{");
  for (void *it = pl_json_iter(object); it; it = pl_json_iter_next(object, it)) {
    pl_str_append(out, between);
    between = ",";
    new_line(depth + 1, out);
    write_string(pl_json_iter_key(it), out);
    pl_str_append(out, ": ");
    write_indented(pl_json_iter_value(it), depth + 1, out);
  }
  if (pl_json_size(object) > 0) new_line(depth, out);
  pl_str_append(out, "}");
}

static void write_indented(const pl_json *value, size_t depth, pl_str *out) {
  pl_json_kind kind = pl_json_kind_of(value);
  if (kind == PL_JSON_OBJECT)
    indent_object(value, depth, out);
  else if (kind == PL_JSON_ARRAY)
    indent_array(value, depth, out);
  else
    write_scalar(value, out);
}

void pl_json_write_pretty(const pl_json *value, pl_str *out) {
  write_indented(value, 0, out);
  pl_str_append(out, "\n");
}

char *pl_json_show(const pl_json *value, char *out) {
  enum { SHOWN = 60 };
  pl_str text = {0};
  pl_json_write_canonical(value, &text);
  size_t length = text.length;
  if (length > SHOWN) {
    length = SHOWN;
    while (length > 0 && (text.text[length] & 0xc0) == 0x80) length--; /* no half characters */
  }
  memcpy(out, pl_str_text(&text), length);
  strcpy(out + length, length < text.length ? "..." : "");
  pl_str_free(&text);
  return out;
}
