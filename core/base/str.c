#include "core/base/str.h"

#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"

static bool make_room(pl_str *s, size_t more) {
  if (s->failed) return false;
  if (more < s->capacity - s->length) return true;
  size_t capacity = s->capacity ? s->capacity : 64;
  while (capacity - s->length <= more && capacity <= SIZE_MAX / 2) capacity *= 2;
  size_t kept = s->text ? s->length + 1 : 0;
  s->failed = pl_grow(kept, capacity, 1, "text", &s->text, NULL) != PL_OK;
  if (!s->failed) s->capacity = capacity;
  return !s->failed;
}

void pl_str_append_bytes(pl_str *s, const char *bytes, size_t count) {
  if (!make_room(s, count)) return;
  if (count) memcpy(s->text + s->length, bytes, count);
  s->length += count;
  s->text[s->length] = '\0';
}

void pl_str_append(pl_str *s, const char *text) { pl_str_append_bytes(s, text, strlen(text)); }

void pl_str_printf(pl_str *s, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int needed = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (needed < 0)
    s->failed = true;
  else if (make_room(s, (size_t)needed)) {
    vsnprintf(s->text + s->length, (size_t)needed + 1, format, again);
    s->length += (size_t)needed;
  }
  va_end(again);
}

const char *pl_str_text(const pl_str *s) { return s->text ? s->text : ""; }

pl_status pl_str_check(const pl_str *s, pl_err *e) {
  return s->failed ? pl_fail(e, PL_FAIL, "out of memory: more than %zu bytes of text", s->length) : PL_OK;
}

void pl_str_free(pl_str *s) {
  pl_free(s->text);
  *s = (pl_str){0};
}
