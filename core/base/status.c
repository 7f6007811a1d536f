#include "core/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* User text inside a message may hold line breaks and codes that a terminal obeys; a message is one plain line. */
static void keep_one_line(char *text) {
  for (; *text; text++)
    if ((unsigned char)*text < ' ' || *text == 127) *text = ' ';
}

pl_status pl_fail(pl_err *e, pl_status status, const char *format, ...) {
  if (!e || e->status != PL_OK) return status;
  va_list args;
  va_start(args, format);
  vsnprintf(e->text, sizeof e->text, format, args);
  va_end(args);
  keep_one_line(e->text);
  e->status = status;
  return status;
}

pl_status pl_err_prefix(pl_err *e, const char *format, ...) {
  if (!e) return PL_FAIL;
  if (e->status == PL_OK) return PL_OK;
  char text[PL_ERR_TEXT];
  va_list args;
  va_start(args, format);
  int written = vsnprintf(text, sizeof text - 2, format, args);
  va_end(args);
  if (written < 0) return e->status;
  size_t length = strlen(text);
  memcpy(text + length, ": ", 3);
  length += 2;
  size_t kept = strlen(e->text), room = sizeof e->text - 1 - length;
  if (kept > room) kept = room;
  memmove(e->text + length, e->text, kept);
  memcpy(e->text, text, length);
  e->text[length + kept] = '\0';
  keep_one_line(e->text);
  return e->status;
}
