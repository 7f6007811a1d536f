#include <string.h>

#include "core/base/memory.h"
#include "sweeps/parts.h"

enum { FIRST_CAPACITY = 1024 }; /* capacities are powers of two */

/* Ids are hashes already, so their low bits serve as they are. */
static bool put(uint64_t *slots, size_t capacity, uint64_t id) {
  size_t i = (size_t)id & (capacity - 1);
  while (slots[i] != 0) {
    if (slots[i] == id) return false;
    i = (i + 1) & (capacity - 1);
  }
  slots[i] = id;
  return true;
}

static pl_status make_room(pl_id_set *s, pl_err *e) {
  if (s->count < s->capacity / 2) return PL_OK;
  size_t capacity = s->capacity == 0 ? FIRST_CAPACITY : 2 * s->capacity;
  uint64_t *slots = NULL;
  pl_status st = pl_alloc(capacity, sizeof *slots, "the ids of the runs", &slots, e);
  if (st != PL_OK) return st;
  for (size_t i = 0; i < s->capacity; i++)
    if (s->slots[i] != 0) put(slots, capacity, s->slots[i]);
  pl_free(s->slots);
  s->slots = slots;
  s->capacity = capacity;
  return PL_OK;
}

pl_status pl_id_set_add(pl_id_set *s, uint64_t id, bool *added, pl_err *e) {
  pl_status st = make_room(s, e);
  if (st != PL_OK) return st;
  if (id == 0) {
    *added = !s->has_zero;
    s->has_zero = true;
  } else {
    *added = put(s->slots, s->capacity, id);
  }
  if (*added) s->count++;
  return PL_OK;
}

void pl_id_set_clear(pl_id_set *s) {
  if (s->capacity > 0) memset(s->slots, 0, s->capacity * sizeof *s->slots);
  s->count = 0;
  s->has_zero = false;
}

void pl_id_set_free(pl_id_set *s) {
  pl_free(s->slots);
  *s = (pl_id_set){0};
}
