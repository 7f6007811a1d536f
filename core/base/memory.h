/* Checked allocation. Everything that pipelag allocates goes through here. */
#ifndef PL_BASE_MEMORY_H
#define PL_BASE_MEMORY_H

#include "core/base/status.h"

enum { PL_ALIGN = 64 }; /* bytes: a cache line, an AVX-512 vector */

/* Allocates count * size bytes, zeroed, aligned to PL_ALIGN; *out is released by pl_free. count or size 0 gives a
 * pointer that may not be read. Overflow and exhaustion are PL_FAIL with the number of bytes and `what` in the text. */
PL_MUST_CHECK pl_status pl_alloc(size_t count, size_t size, const char *what, void *out_pointer, pl_err *e);

/* Grows *pointer (from pl_alloc or NULL) from old_count to at least new_count elements, keeping the old ones and
 * zeroing the new; on failure *pointer is unchanged. */
PL_MUST_CHECK pl_status pl_grow(size_t old_count, size_t new_count, size_t size, const char *what, void *pointer,
                                pl_err *e);

/* Releases what pl_alloc gave; NULL is allowed. */
void pl_free(void *pointer);

/* Copies a string; released by pl_free. */
PL_MUST_CHECK pl_status pl_strdup(const char *text, char **out, pl_err *e);

#endif
