#include "analysis/pdf_date.h"

#include <stdio.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/memory.h"

#define PDF_LIMIT ((size_t)256 << 20)

/* "/CreationDate (D:20261130180000Z)": the parenthesis closes where the new text ends, and blanks fill the rest. */
static void set_one(char *bytes, size_t length, const char *key, const char *digits) {
  char *at = memmem(bytes, length, key, strlen(key));
  if (!at) return;
  char *open = at + strlen(key), *close = memchr(open, ')', length - (size_t)(open - bytes));
  if (!close) return;
  size_t room = (size_t)(close - open);
  memset(open, ' ', room + 1);
  if (digits[0] && strlen(digits) <= room) {
    memcpy(open, digits, strlen(digits));
    open[strlen(digits)] = ')';
  } else {
    memset(at, ' ', strlen(key));
  }
}

pl_status pl_pdf_set_date(const char *path, const char *date, pl_err *e) {
  char *bytes = NULL, digits[32] = "";
  size_t length = 0, n = 0;
  pl_status st = PL_OK;
  PL_TRY(pl_file_read(path, PDF_LIMIT, &bytes, &length, e));
  for (const char *c = date; *c && n + 2 < sizeof digits; c++)
    if (*c >= '0' && *c <= '9') digits[n++] = *c;
  if (n > 0) digits[n] = 'Z';
  set_one(bytes, length, "/CreationDate (D:", digits);
  set_one(bytes, length, "/ModDate (D:", digits);
  PL_TRY(pl_file_replace_unsynced(path, bytes, length, e));
out:
  pl_free(bytes);
  return st;
}
