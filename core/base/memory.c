#include "core/base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20 }; /* bytes */

/* The one place that asks for memory: bytes rounded up to whole cache lines, zeroed; large arrays on huge pages where
 * the system allows them. NULL when there is none. */
static void *take(size_t count, size_t size, size_t *bytes) {
  if (__builtin_mul_overflow(count, size, bytes) || *bytes > PTRDIFF_MAX - PL_ALIGN) {
    *bytes = SIZE_MAX;
    return NULL;
  }
  size_t lines = *bytes / PL_ALIGN + (*bytes % PL_ALIGN != 0 || *bytes == 0);
  bool large = lines * PL_ALIGN >= 2 * (size_t)HUGE_PAGE;
  size_t unit = large ? HUGE_PAGE : PL_ALIGN; /* aligned_alloc takes multiples of the alignment */
  void *memory = aligned_alloc(unit, (lines * PL_ALIGN + unit - 1) / unit * unit);
  if (memory && large) (void)!madvise(memory, lines * PL_ALIGN, MADV_HUGEPAGE); /* only a wish */
  if (memory) memset(memory, 0, lines * PL_ALIGN);
  return memory;
}

static pl_status out_of_memory(size_t bytes, const char *what, pl_err *e) {
  if (bytes == SIZE_MAX) return pl_fail(e, PL_FAIL, "out of memory: the size of %s is beyond any memory", what);
  return pl_fail(e, PL_FAIL, "out of memory: %zu bytes for %s", bytes, what);
}

pl_status pl_alloc(size_t count, size_t size, const char *what, void *out_pointer, pl_err *e) {
  size_t bytes;
  void *memory = take(count, size, &bytes);
  if (!memory) return out_of_memory(bytes, what, e);
  memcpy(out_pointer, &memory, sizeof memory); /* the caller's pointer has a type of its own */
  return PL_OK;
}

pl_status pl_grow(size_t old_count, size_t new_count, size_t size, const char *what, void *pointer, pl_err *e) {
  void *old;
  memcpy(&old, pointer, sizeof old);
  if (old && new_count <= old_count) return PL_OK;
  void *grown = NULL; /* never read unset: -O3 cannot see that a failed call returns first */
  pl_status st = pl_alloc(new_count, size, what, &grown, e);
  if (st != PL_OK) return st;
  if (old) memcpy(grown, old, old_count * size);
  memcpy(pointer, &grown, sizeof grown);
  pl_free(old);
  return PL_OK;
}

void pl_free(void *pointer) { free(pointer); }

pl_status pl_strdup(const char *text, char **out, pl_err *e) {
  size_t length = strlen(text);
  pl_status st = pl_alloc(length + 1, 1, "a string", out, e);
  if (st == PL_OK) memcpy(*out, text, length);
  return st;
}
