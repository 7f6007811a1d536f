#include "analysis/notes.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/base/memory.h"

pl_status pl_note(pl_notes *n, pl_err *e, const char *format, ...) {
  char text[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (n->count == n->capacity) {
    size_t capacity = n->capacity ? 2 * n->capacity : 16;
    pl_status st = pl_grow(n->capacity, capacity, sizeof n->texts[0], "warnings", &n->texts, e);
    if (st != PL_OK) return st;
    n->capacity = capacity;
  }
  pl_status st = pl_strdup(text, &n->texts[n->count], e);
  if (st == PL_OK) n->count++;
  return st;
}

void pl_notes_free(pl_notes *n) {
  for (size_t i = 0; i < n->count; i++) pl_free(n->texts[i]);
  pl_free(n->texts);
  *n = (pl_notes){0};
}
