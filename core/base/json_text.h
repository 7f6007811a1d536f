/* JSON as text: what is looked at before parsing, and positions for messages. Used by json*.c alone. */
#ifndef PL_BASE_JSON_TEXT_H
#define PL_BASE_JSON_TEXT_H

#include "core/base/str.h"

typedef struct pl_json_text {
  const char *name; /* the file's, for messages */
  const char *bytes;
  size_t length;
} pl_json_text;

/* Records "NAME:LINE:COLUMN: ..." for the byte at `offset`; columns count characters from 1. Returns PL_BAD. */
pl_status pl_json_text_fail(const pl_json_text *t, size_t offset, pl_err *e, const char *format, ...) PL_PRINTF(4, 5);

/* Refuses an empty text, bytes that are not UTF-8 text, and nesting over PL_JSON_MAX_DEPTH. */
PL_MUST_CHECK pl_status pl_json_text_scan(const pl_json_text *t, pl_err *e);

/* Length of the valid UTF-8 sequence at the start of `bytes`, or 0. */
size_t pl_utf8_length(const char *bytes, size_t left);

/* Appends `text` with bytes that are not UTF-8 replaced by U+FFFD. */
void pl_utf8_repair(const char *text, pl_str *out);

#endif
