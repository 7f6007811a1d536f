#include "core/train/layout.h"

#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/rng.h"

enum { ALIGN_ELEMENTS = PL_ALIGN / sizeof(pl_real) };

static size_t round_up(size_t n) { return (n + ALIGN_ELEMENTS - 1) / ALIGN_ELEMENTS * ALIGN_ELEMENTS; }

pl_status pl_layout_add(pl_layout *l, const pl_segment *segment, pl_err *e) {
  size_t elements = 0, end = 0;
  if (segment->rows == 0 || segment->cols == 0)
    return pl_fail(e, PL_FAIL, "segment %s is %zu x %zu; both must be at least 1", segment->name, segment->rows,
                   segment->cols);
  if (__builtin_mul_overflow(segment->rows, segment->cols, &elements) ||
      __builtin_add_overflow(l->size, elements, &end) || end > SIZE_MAX / 2 / sizeof(pl_real))
    return pl_fail(e, PL_FAIL, "segment %s of %zu x %zu elements does not fit in memory's address range", segment->name,
                   segment->rows, segment->cols);
  pl_status st = pl_grow(l->count, l->count + 1, sizeof *l->segments, "segments", &l->segments, e);
  if (st != PL_OK) return st;
  pl_segment *added = &l->segments[l->count++];
  *added = *segment;
  added->offset = l->size; /* sizes are rounded up, so that the next offset is aligned */
  l->size = round_up(end);
  l->grad_size = l->size;
  return PL_OK;
}

void pl_layout_free(pl_layout *l) {
  pl_free(l->segments);
  *l = (pl_layout){0};
}

size_t pl_layout_parameters(const pl_layout *l) {
  size_t sum = 0;
  for (size_t i = 0; i < l->count; i++)
    if (!l->segments[i].tied_copy) sum += l->segments[i].rows * l->segments[i].cols;
  return sum;
}

void pl_layout_init(const pl_layout *l, uint64_t seed, pl_real *x) {
  memset(x, 0, l->size * sizeof *x);
  for (size_t i = 0; i < l->count; i++) {
    const pl_segment *s = &l->segments[i];
    pl_rng rng = pl_rng_at(seed, PL_STREAM_INIT, pl_hash_text(s->name), 0);
    pl_rng_fill_normal(&rng, s->rows * s->cols, s->init_mean, s->init_std, x + s->offset);
  }
}
