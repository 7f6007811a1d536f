#include "models/parts/space.h"

#include <stdint.h>

#include "core/base/memory.h"

size_t pl_times(size_t a, size_t b) {
  size_t product;
  return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

size_t pl_space_take(pl_space *s, size_t rows, size_t cols, size_t size) {
  size_t offset = s->bytes, bytes = pl_times(pl_times(rows, cols), size), end;
  if (__builtin_add_overflow(offset, bytes, &end) || end > SIZE_MAX - PL_ALIGN) {
    s->bytes = SIZE_MAX;
  } else {
    s->bytes = (end + PL_ALIGN - 1) / PL_ALIGN * PL_ALIGN;
  }
  return offset;
}

size_t pl_space_reals(pl_space *s, size_t rows, size_t cols) { return pl_space_take(s, rows, cols, sizeof(pl_real)); }
