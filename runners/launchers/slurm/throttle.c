#include "runners/launchers/slurm/throttle.h"

#include <string.h>

#include "core/base/memory.h"

/* Arrays of which each waits for all before it, or that were brought together by one that waits for all of them: never
 * more than `capacity` runs of a lane run at once. */
typedef struct lane {
  int64_t capacity;
  double work; /* runs that are left */
} lane;

typedef struct lanes {
  lane *items;     /* [count of arrays]: the lane begun by that array, or taken over by it */
  size_t *lane_of; /* [count of arrays] */
  size_t count;    /* arrays that were placed */
} lanes;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t runs_at_once(const pl_throttled *a) {
  return a->pack * (a->throttle > 0 ? smaller(a->throttle, a->tasks) : a->tasks);
}

/* Whether array i waits for some array of the lane; *all tells whether it waits for each of them. */
static bool waits_for(const lanes *l, const pl_throttled *array, size_t which, bool *all) {
  bool any = false;
  *all = true;
  for (size_t j = 0; j < l->count; j++) {
    if (l->lane_of[j] != which) continue;
    any = any || array->after[j];
    *all = *all && array->after[j];
  }
  return any;
}

static bool is_lane(const lanes *l, size_t which) { return which < l->count && l->lane_of[which] == which; }

/* Places the next array: it begins a lane, or takes over those that it waits for. */
static void place(lanes *l, const pl_throttled *array) {
  const size_t own = l->count;
  const int64_t runs = runs_at_once(array);
  lane merged = {.work = (double)(array->tasks * array->pack)};
  bool waits_for_all = true;
  for (size_t i = 0; i < own; i++) {
    bool all = false;
    if (!is_lane(l, i) || !waits_for(l, array, i, &all)) continue;
    waits_for_all = waits_for_all && all;
    merged.capacity += l->items[i].capacity;
    merged.work += l->items[i].work;
    for (size_t j = 0; j < own; j++)
      if (l->lane_of[j] == i) l->lane_of[j] = own;
  }
  if (!waits_for_all)
    merged.capacity += runs;
  else if (merged.capacity < runs)
    merged.capacity = runs;
  l->items[own] = merged;
  l->lane_of[own] = own;
  l->count++;
}

static int64_t peak(const lanes *l) {
  int64_t sum = 0;
  for (size_t i = 0; i < l->count; i++)
    if (is_lane(l, i)) sum += l->items[i].capacity;
  return sum;
}

static pl_status make_lanes(size_t count, lanes *l, pl_err *e) {
  *l = (lanes){0};
  pl_status st = pl_alloc(count, sizeof *l->items, "the arrays in the queue", &l->items, e);
  if (st == PL_OK) st = pl_alloc(count, sizeof *l->lane_of, "the arrays in the queue", &l->lane_of, e);
  return st;
}

static void free_lanes(lanes *l) {
  pl_free(l->items);
  pl_free(l->lane_of);
}

/* Throttles of the first arrays that get a slot each out of `room` runs; the others keep 0. Returns how many. */
static size_t share(int64_t room, pl_throttled *arrays, size_t count) {
  size_t got = 0;
  double work = 0;
  int64_t left = room;
  while (got < count && arrays[got].pack <= left) {
    left -= arrays[got].pack;
    work += (double)(arrays[got].tasks * arrays[got].pack);
    arrays[got++].throttle = 1;
  }
  const double extra = (double)left;
  for (size_t i = 0; i < got; i++) {
    double part = extra * (double)arrays[i].tasks / work; /* tasks, since both have the factor pack */
    int64_t more = smaller(smaller((int64_t)part, arrays[i].tasks - 1), left / arrays[i].pack);
    arrays[i].throttle += more;
    left -= more * arrays[i].pack;
  }
  for (size_t i = 0; i < got; i++) {
    int64_t more = smaller(arrays[i].tasks - arrays[i].throttle, left / arrays[i].pack);
    arrays[i].throttle += more;
    left -= more * arrays[i].pack;
  }
  return got;
}

/* The lane with the least work for its capacity among those that let one task run; SIZE_MAX when none does. */
static size_t shortest(const lanes *l, int64_t pack) {
  size_t best = SIZE_MAX;
  double least = 0;
  for (size_t i = 0; i < l->count; i++) {
    if (!is_lane(l, i) || l->items[i].capacity < pack) continue;
    double wait = l->items[i].work / (double)l->items[i].capacity;
    if (best == SIZE_MAX || wait < least) {
      best = i;
      least = wait;
    }
  }
  return best;
}

/* Puts an array behind a lane; where none has room for one of its tasks, behind everything. */
static void queue_up(const lanes *l, int64_t limit, pl_throttled *array) {
  const size_t lane_at = shortest(l, array->pack);
  const bool everything = lane_at == SIZE_MAX;
  const int64_t room = everything ? limit : smaller(limit, l->items[lane_at].capacity);
  for (size_t j = 0; j < l->count; j++) array->after[j] = everything || l->lane_of[j] == lane_at;
  array->throttle = smaller(array->tasks, room / array->pack);
}

pl_status pl_throttle_share(int64_t limit, pl_throttled *arrays, size_t first, size_t count, pl_err *e) {
  pl_status st = PL_OK;
  lanes l = {0};
  for (size_t i = first; i < count; i++) {
    memset(arrays[i].after, 0, count * sizeof *arrays[i].after);
    arrays[i].throttle = 0;
  }
  if (limit == 0) return PL_OK;
  PL_TRY(make_lanes(count, &l, e));
  for (size_t i = 0; i < first; i++) place(&l, &arrays[i]);
  const int64_t room = limit - peak(&l);
  const size_t got = share(room > 0 ? room : 0, arrays + first, count - first);
  for (size_t i = first; i < count; i++) {
    if (i >= first + got) queue_up(&l, limit, &arrays[i]);
    place(&l, &arrays[i]);
  }
out:
  free_lanes(&l);
  return st;
}

pl_status pl_throttle_peak(const pl_throttled *arrays, size_t count, int64_t *out, pl_err *e) {
  lanes l = {0};
  pl_status st = make_lanes(count, &l, e);
  for (size_t i = 0; i < count && st == PL_OK; i++) place(&l, &arrays[i]);
  if (st == PL_OK) *out = peak(&l);
  free_lanes(&l);
  return st;
}
