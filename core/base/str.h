/* A growing string, and small string questions. */
#ifndef PL_BASE_STR_H
#define PL_BASE_STR_H

#include <stdarg.h>
#include <stdint.h>

#include "core/base/status.h"

/* {0} is an empty string. After an allocation failure `failed` stays set and appends do nothing, so a writer checks
 * once at the end with pl_str_check. `text` is NUL-terminated once anything was appended; use pl_str_text for a
 * never-NULL view. */
typedef struct pl_str {
  char *text;
  size_t length, capacity;
  bool failed;
} pl_str;

void pl_str_append(pl_str *s, const char *text);
void pl_str_append_bytes(pl_str *s, const char *bytes, size_t count);
void pl_str_printf(pl_str *s, const char *format, ...) PL_PRINTF(2, 3);
const char *pl_str_text(const pl_str *s);
PL_MUST_CHECK pl_status pl_str_check(const pl_str *s, pl_err *e);
void pl_str_free(pl_str *s);

/* The shortest decimal text that reads back as the same double ("0.008", "1e-08", "1200"); integers without exponent up
 * to 2^53. Non-finite values give NaN, Infinity, -Infinity. `out` holds at least 32 bytes. Returns `out`. */
char *pl_format_number(double value, char *out);

/* Index of the candidate nearest to `text` by Damerau-Levenshtein distance, or SIZE_MAX when none is near enough
 * (distance <= 1 + length/3) to be worth a hint. Ties: the lowest index. `candidates` has `count` entries. */
size_t pl_nearest(const char *text, const char *const *candidates, size_t count);

/* Whole-string parses: no leading blanks, no trailing characters. */
bool pl_parse_int(const char *text, int64_t *out);
bool pl_parse_real(const char *text, double *out);

#endif
