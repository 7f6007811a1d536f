#include "results/times.h"

#include <math.h>
#include <string.h>

#include "core/base/memory.h"
#include "results/journal_format.h"

enum { FIRST_ROOM = 64, VALUES = sizeof(pl_stage_times) / sizeof(double) };

_Static_assert(sizeof(pl_stage_times) == VALUES * sizeof(double), "the times of a stage are written as they lie");

pl_status pl_times_open(const char *path, size_t stages, int64_t attempt, pl_journal **out, pl_err *e) {
  return pl_journal_open_as(path, &pl_journal_of_times, VALUES * stages, attempt, out, e);
}

pl_status pl_times_write(pl_journal *j, int64_t step, const pl_stage_times *times, pl_err *e) {
  return pl_journal_append(j, step, 0, &times->busy, e);
}

typedef struct reader {
  pl_times *times;
  size_t capacity;
} reader;

static pl_status grow(reader *to, pl_err *e) {
  pl_times *t = to->times;
  pl_status st = PL_OK;
  size_t larger = to->capacity ? 2 * to->capacity : FIRST_ROOM;
  PL_TRY(pl_grow(to->capacity, larger, sizeof *t->steps, "the times of stages", &t->steps, e));
  PL_TRY(pl_grow(to->capacity, larger, sizeof *t->attempts_of, "the times of stages", &t->attempts_of, e));
  PL_TRY(pl_grow(to->capacity * t->stages, larger * t->stages, sizeof *t->times, "the times of stages", &t->times, e));
  to->capacity = larger;
out:
  return st;
}

static pl_status add(void *self, const pl_journal_record *r, const double *values, size_t width, pl_err *e) {
  reader *to = self;
  pl_times *t = to->times;
  t->stages = width / VALUES;
  pl_status st = t->count == to->capacity ? grow(to, e) : PL_OK;
  if (st != PL_OK) return st;
  t->steps[t->count] = r->step;
  t->attempts_of[t->count] = r->attempt;
  memcpy(&t->times[t->count++ * t->stages], values, t->stages * sizeof *t->times);
  return PL_OK;
}

static void drop(void *self, int64_t step) {
  pl_times *t = ((const reader *)self)->times;
  while (t->count > 0 && t->steps[t->count - 1] >= step) t->count--;
}

pl_status pl_times_read(const char *path, pl_times *out, pl_err *e) {
  reader to = {.times = out};
  const pl_journal_visitor visitor = {.self = &to, .add = add, .drop = drop};
  *out = (pl_times){0};
  pl_status st = pl_journal_visit(path, &pl_journal_of_times, &visitor, &out->attempts, &out->damaged, e);
  if (st != PL_OK) pl_times_free(out);
  return st;
}

void pl_times_free(pl_times *t) {
  pl_free(t->steps);
  pl_free(t->attempts_of);
  pl_free(t->times);
  *t = (pl_times){0};
}

pl_stage_times pl_times_total(const pl_times *t) {
  pl_stage_times sum = {0};
  for (size_t i = 0; i < t->count * t->stages; i++) {
    sum.busy += t->times[i].busy;
    sum.communication += t->times[i].communication;
    sum.idle += t->times[i].idle;
  }
  return sum;
}

double pl_stage_times_bubble(const pl_stage_times *total) {
  double whole = total->busy + total->communication + total->idle;
  return whole > 0 ? 1 - total->busy / whole : (double)NAN;
}
