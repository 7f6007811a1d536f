#include "core/pipeline/rounds.h"

#include "core/base/memory.h"

pl_status pl_rounds_open(size_t size, size_t window, pl_rounds *out, pl_err *e) {
  *out = (pl_rounds){.size = size, .window = window};
  return pl_alloc(window, size * sizeof *out->numbers, "numbers of all processes", &out->numbers, e);
}

void pl_rounds_close(pl_rounds *r) {
  pl_free(r->numbers);
  *r = (pl_rounds){0};
}

pl_status pl_rounds_post(pl_rounds *r, size_t *place, pl_err *e) {
  if (r->posted - r->popped == r->window)
    return pl_fail(e, PL_FAIL, "a gather of %zu numbers has %zu rounds that were not read; no more are allowed",
                   r->size, r->window);
  *place = r->posted++ % r->window;
  return PL_OK;
}

double *pl_rounds_at(const pl_rounds *r, size_t place) { return r->numbers + place * r->size; }

bool pl_rounds_oldest(const pl_rounds *r, size_t *place) {
  if (r->posted == r->popped) return false;
  *place = r->popped % r->window;
  return true;
}

void pl_rounds_pop(pl_rounds *r) {
  if (r->popped < r->posted) r->popped++;
}
