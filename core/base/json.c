#include "core/base/json.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/base/memory.h"

/* A pl_json is a json_t. jansson counts references in the value itself, so looking takes const away. */
static json_t *inner(const pl_json *value) { return (json_t *)(uintptr_t)value; }
static pl_json *outer(json_t *value) { return (pl_json *)value; }

/* Start of the string whose closing quote is at `end`. */
static size_t string_start(const char *bytes, size_t end) {
  for (size_t i = end; i-- > 0;) {
    if (bytes[i] != '"') continue;
    size_t slashes = 0;
    while (slashes < i && bytes[i - slashes - 1] == '\\') slashes++;
    if (slashes % 2 == 0) return i;
  }
  return 0;
}

/* Offset of the comma when the bracket at `offset` follows one, else SIZE_MAX. */
static size_t trailing_comma(const char *bytes, size_t offset) {
  if (bytes[offset] != '}' && bytes[offset] != ']') return SIZE_MAX;
  while (offset > 0 && strchr(" \t\r\n", bytes[offset - 1])) offset--;
  return offset > 0 && bytes[offset - 1] == ',' ? offset - 1 : SIZE_MAX;
}

/* What people write that JSON does not have, told by the first bytes of the offending token; NULL for anything else. */
static const char *foreign_syntax(const char *bytes, size_t left) {
  static const struct {
    const char *start, *advice;
  } known[] = {
      {"//", "a comment; JSON has none, so put the text into the key \"notes\""},
      {"/*", "a comment; JSON has none, so put the text into the key \"notes\""},
      {"#", "a comment; JSON has none, so put the text into the key \"notes\""},
      {"'", "a single quote; JSON strings stand in double quotes"},
      {"True", "True; JSON writes true"},
      {"False", "False; JSON writes false"},
      {"None", "None; JSON writes null"},
      {"NaN", "NaN; JSON has no such number"},
      {"Infinity", "Infinity; JSON has no such number"},
      {"-Infinity", "-Infinity; JSON has no such number"},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    size_t length = strlen(known[i].start);
    if (left >= length && memcmp(bytes, known[i].start, length) == 0) return known[i].advice;
  }
  return NULL;
}

/* Start of the word or number that ends at `last`. */
static size_t word_start(const char *bytes, size_t last) {
  static const char marks[] = "+-.";
  while (last > 0 && bytes[last - 1] != '\0' &&
         (isalnum((unsigned char)bytes[last - 1]) || strchr(marks, bytes[last - 1])))
    last--;
  return last;
}

/* jansson says nothing when it runs out of memory. Its position counts the bytes it has consumed: the offending token
 * is the last of them. */
static pl_status explain(const pl_json_text *t, const json_error_t *error, pl_err *e) {
  enum json_error_code code = json_error_code(error);
  size_t used = error->position > 0 ? (size_t)error->position : 0;
  size_t last = used > 0 && used <= t->length ? used - 1 : 0;
  if (code == json_error_out_of_memory || error->text[0] == '\0')
    return pl_fail(e, PL_FAIL, "out of memory: while parsing %s (%zu bytes)", t->name, t->length);
  if (code == json_error_duplicate_key) {
    size_t start = string_start(t->bytes, last);
    int shown = last - start > 60 ? 61 : (int)(last - start) + 1;
    return pl_json_text_fail(t, start, e, "duplicate key %.*s; each key may stand once in an object", shown,
                             t->bytes + start);
  }
  if (code == json_error_premature_end_of_input)
    return pl_json_text_fail(t, t->length, e, "the text ends too early: %s", error->text);
  if (code == json_error_numeric_overflow)
    return pl_json_text_fail(t, word_start(t->bytes, last), e,
                             "number out of range: %s; integers take 64 bits, others a double", error->text);
  size_t comma = trailing_comma(t->bytes, last);
  if (comma != SIZE_MAX)
    return pl_json_text_fail(t, comma, e, "trailing comma before '%c'; JSON allows none there", t->bytes[last]);
  if (code == json_error_null_character)
    return pl_json_text_fail(t, string_start(t->bytes, last), e, "\\u0000 in a string; any other character is allowed");
  if (code == json_error_invalid_syntax && isalnum((unsigned char)t->bytes[last])) last = word_start(t->bytes, last);
  const char *advice = foreign_syntax(t->bytes + last, t->length - last);
  return pl_json_text_fail(t, last, e, "%s", advice ? advice : error->text);
}

pl_status pl_json_parse(const char *text, size_t length, const char *name, pl_json **out, pl_err *e) {
  static const char mark[] = "\xef\xbb\xbf"; /* the byte-order mark that some editors write */
  size_t skip = length >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
  pl_json_text t = {.name = name, .bytes = text + skip, .length = length - skip};
  *out = NULL;
  pl_status st = pl_json_text_scan(&t, e);
  if (st != PL_OK) return st;
  json_error_t error = {0};
  *out = outer(json_loadb(t.bytes, t.length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error));
  return *out ? PL_OK : explain(&t, &error, e);
}

pl_status pl_json_read(const char *path, pl_json **out, pl_err *e) {
  char *text = NULL;
  size_t length = 0;
  pl_status st = PL_OK;
  *out = NULL;
  PL_TRY(pl_file_read(path, PL_JSON_MAX_BYTES, &text, &length, e));
  st = pl_json_parse(text, length, path, out, e);
out:
  pl_free(text);
  return st;
}

pl_json *pl_json_retain(const pl_json *value) { return outer(json_incref(inner(value))); }
void pl_json_release(pl_json *value) { json_decref(inner(value)); }

pl_json_kind pl_json_kind_of(const pl_json *value) {
  const json_t *j = inner(value);
  if (!j) return PL_JSON_NULL;
  switch (json_typeof(j)) {
  case JSON_OBJECT:
    return PL_JSON_OBJECT;
  case JSON_ARRAY:
    return PL_JSON_ARRAY;
  case JSON_STRING:
    return PL_JSON_STRING;
  case JSON_INTEGER:
    return PL_JSON_INT;
  case JSON_REAL:
    return PL_JSON_REAL;
  case JSON_TRUE:
  case JSON_FALSE:
    return PL_JSON_BOOL;
  case JSON_NULL:
    break;
  }
  return PL_JSON_NULL;
}

const char *pl_json_kind_name(pl_json_kind kind) {
  static const char *const names[] = {"null",     "true or false", "a whole number", "a number",
                                      "a string", "a list",        "an object"};
  return names[kind];
}

bool pl_json_bool(const pl_json *value) { return json_is_true(inner(value)); }
int64_t pl_json_int(const pl_json *value) { return json_integer_value(inner(value)); }

double pl_json_number(const pl_json *value) {
  const char *word = json_string_value(inner(value));
  if (!word) return json_number_value(inner(value));
  if (strcmp(word, "NaN") == 0) return (double)NAN;
  if (strcmp(word, "Infinity") == 0) return (double)INFINITY;
  return strcmp(word, "-Infinity") == 0 ? -(double)INFINITY : 0;
}

const char *pl_json_string(const pl_json *value) { return json_string_value(inner(value)); }

size_t pl_json_size(const pl_json *value) {
  const json_t *j = inner(value);
  return json_is_array(j) ? json_array_size(j) : json_object_size(j);
}

const pl_json *pl_json_at(const pl_json *array, size_t index) { return outer(json_array_get(inner(array), index)); }
const pl_json *pl_json_get(const pl_json *object, const char *key) {
  return outer(json_object_get(inner(object), key));
}

void *pl_json_iter(const pl_json *object) { return json_object_iter(inner(object)); }
void *pl_json_iter_next(const pl_json *object, void *it) { return json_object_iter_next(inner(object), it); }
const char *pl_json_iter_key(void *it) { return json_object_iter_key(it); }
const pl_json *pl_json_iter_value(void *it) { return outer(json_object_iter_value(it)); }

pl_json *pl_json_new_null(void) { return outer(json_null()); }
pl_json *pl_json_new_bool(bool value) { return outer(json_boolean(value)); }
pl_json *pl_json_new_int(int64_t value) { return outer(json_integer(value)); }

pl_json *pl_json_new_number(double value) {
  char text[32];
  if (!isfinite(value)) return outer(json_string(pl_format_number(value, text)));
  bool whole = fabs(value) <= 0x1p53 && value == trunc(value) && !(value == 0 && signbit(value));
  return outer(whole ? json_integer((json_int_t)value) : json_real(value));
}

pl_json *pl_json_new_string(const char *utf8) {
  json_t *value = json_string(utf8);
  if (value || !utf8) return outer(value);
  pl_str repaired = {0};
  pl_utf8_repair(utf8, &repaired);
  if (!repaired.failed) value = json_string(pl_str_text(&repaired));
  pl_str_free(&repaired);
  return outer(value);
}

pl_json *pl_json_new_array(void) { return outer(json_array()); }
pl_json *pl_json_new_object(void) { return outer(json_object()); }
pl_json *pl_json_copy(const pl_json *value) { return outer(json_deep_copy(inner(value))); }

bool pl_json_set(pl_json *object, const char *key, pl_json *value) {
  return json_object_set_new(inner(object), key, inner(value)) == 0;
}

bool pl_json_append(pl_json *array, pl_json *value) { return json_array_append_new(inner(array), inner(value)) == 0; }
