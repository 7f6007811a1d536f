/* JSON values: parse with limits and duplicate-key check, build, look into, write. The only door to jansson. */
#ifndef PL_BASE_JSON_H
#define PL_BASE_JSON_H

#include <stdint.h>

#include "core/base/str.h"

enum { PL_JSON_MAX_DEPTH = 64 };
#define PL_JSON_MAX_BYTES ((size_t)256 << 20)

typedef struct pl_json pl_json; /* reference counted */

typedef enum pl_json_kind {
  PL_JSON_NULL,
  PL_JSON_BOOL,
  PL_JSON_INT,
  PL_JSON_REAL,
  PL_JSON_STRING,
  PL_JSON_ARRAY,
  PL_JSON_OBJECT
} pl_json_kind;

/* Reads a file; *out is a new reference. PL_BAD with "FILE:LINE:COLUMN: ..." for syntax errors and duplicate keys, a
 * message of its own for a missing file, a directory, over PL_JSON_MAX_BYTES (refused by size before reading), binary
 * garbage, and nesting over PL_JSON_MAX_DEPTH. */
PL_MUST_CHECK pl_status pl_json_read(const char *path, pl_json **out, pl_err *e);

/* Parses text; `name` stands for the file name in messages. Any JSON value may be the root. */
PL_MUST_CHECK pl_status pl_json_parse(const char *text, size_t length, const char *name, pl_json **out, pl_err *e);

pl_json *pl_json_retain(const pl_json *value);
void pl_json_release(pl_json *value); /* NULL allowed */

/* Looking. Returned values are borrowed until their container goes. A value of the wrong kind gives 0, false, NULL. */
pl_json_kind pl_json_kind_of(const pl_json *value);
const char *pl_json_kind_name(pl_json_kind kind); /* "a string", "a list", "an object", ... for messages */
bool pl_json_bool(const pl_json *value);
int64_t pl_json_int(const pl_json *value);
double pl_json_number(const pl_json *value); /* of an integer or a real, and of the strings NaN, Infinity, -Infinity */
const char *pl_json_string(const pl_json *value);
size_t pl_json_size(const pl_json *value); /* elements of an array or object */
const pl_json *pl_json_at(const pl_json *array, size_t index);
const pl_json *pl_json_get(const pl_json *object, const char *key);

/* Walks an object in file order: for (void *it = pl_json_iter(o); it; it = pl_json_iter_next(o, it)). */
void *pl_json_iter(const pl_json *object);
void *pl_json_iter_next(const pl_json *object, void *it);
const char *pl_json_iter_key(void *it);
const pl_json *pl_json_iter_value(void *it);

/* Typed members for our own files (result.json, meta.json): the fallback when absent or of another kind. */
double pl_json_get_number(const pl_json *object, const char *key, double fallback);
int64_t pl_json_get_int(const pl_json *object, const char *key, int64_t fallback);
const char *pl_json_get_string(const pl_json *object, const char *key, const char *fallback);

/* Building. Constructors give a new reference, or NULL when memory is out. Setters take (steal) the value also when
 * they fail, accept NULL for the value and for the container (then they fail), and return false on failure; a builder
 * may chain them with && and check once. */
pl_json *pl_json_new_null(void);
pl_json *pl_json_new_bool(bool value);
pl_json *pl_json_new_int(int64_t value);
pl_json *pl_json_new_number(double value);     /* integral values up to 2^53 as integers; non-finite ones as strings */
pl_json *pl_json_new_string(const char *utf8); /* bytes that are not UTF-8 are replaced by U+FFFD */
pl_json *pl_json_new_array(void);
pl_json *pl_json_new_object(void);
pl_json *pl_json_copy(const pl_json *value);       /* deep */
pl_json *pl_json_keep(pl_json *built, bool whole); /* `built` when it is whole, else releases it and gives NULL */
bool pl_json_set(pl_json *object, const char *key, pl_json *value);
bool pl_json_set_path(pl_json *object, const char *dotted, pl_json *value); /* creates the objects on the way */
bool pl_json_append(pl_json *array, pl_json *value);
bool pl_json_equal(const pl_json *a, const pl_json *b); /* numbers by value: 1 equals 1.0 */

/* Writing, to a string that is appended to. Canonical: keys sorted, no blanks, numbers by pl_format_number. Pretty: 2
 * blanks, keys in insertion order, short arrays of numbers on one line, ends with a newline. */
void pl_json_write_canonical(const pl_json *value, pl_str *out);
void pl_json_write_pretty(const pl_json *value, pl_str *out);

/* A value as it is shown in messages: canonical, cut after 60 bytes with "...". `out` holds 80 bytes. Returns `out`. */
char *pl_json_show(const pl_json *value, char *out);

#endif
