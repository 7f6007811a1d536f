/* Places of arrays in one piece of device memory (a tape, a model's scratch): known before the memory exists. */
#ifndef PL_MODELS_PARTS_SPACE_H
#define PL_MODELS_PARTS_SPACE_H

#include <stddef.h>

#include "core/base/real.h"

/* {0} is empty. Sizes saturate at SIZE_MAX, so that a size too large for the machine fails in the allocation. */
typedef struct pl_space {
  size_t bytes;
} pl_space;

/* Appends an array of rows * cols elements of `size` bytes at a PL_ALIGN boundary; returns its offset in bytes. */
size_t pl_space_take(pl_space *s, size_t rows, size_t cols, size_t size);

/* The same for pl_real. */
size_t pl_space_reals(pl_space *s, size_t rows, size_t cols);

/* a * b, at most SIZE_MAX. */
size_t pl_times(size_t a, size_t b);

static inline pl_real *pl_space_at(void *base, size_t offset) { return (pl_real *)(void *)((char *)base + offset); }

#endif
