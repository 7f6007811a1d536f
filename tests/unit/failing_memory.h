/* Makes the n-th allocation of a test program fail, pl_alloc's and jansson's alike. Include it in one file of a
 * program. */
#ifndef PL_TESTS_FAILING_MEMORY_H
#define PL_TESTS_FAILING_MEMORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>

/* Allocations left before one fails, -1: none does. Only one fails, so that reporting and cleaning up may go on. */
static long left = -1;
static bool failed;

static bool is_refused(void) {
  if (left < 0 || left-- > 0) return false;
  failed = true;
  return true;
}

/* Takes the place of the C library's for pl_alloc. */
void *aligned_alloc(size_t alignment, size_t size);
void *aligned_alloc(size_t alignment, size_t size) {
  void *memory = NULL;
  if (is_refused() || posix_memalign(&memory, alignment, size) != 0) return NULL;
  return memory;
}

static void *json_alloc(size_t size) { return is_refused() ? NULL : malloc(size); }

/* Once, at the start of main. */
static inline void let_json_fail(void) { json_set_alloc_funcs(json_alloc, free); }

#endif
