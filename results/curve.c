#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "results/journal_format.h"

enum { FIRST_ROOM = 256 };

typedef struct reader {
  pl_curve *curve;
  size_t capacity;
} reader;

static void fill_row(const pl_journal_record *r, const void *values, size_t width, pl_curve_row *out) {
  *out = (pl_curve_row){.point = {.step = r->step, .tokens = r->tokens}, .attempt = r->attempt};
  memcpy(out->point.values, values, width * sizeof *out->point.values);
  for (size_t i = width; i < PL_SERIES_COUNT; i++) out->point.values[i] = (double)NAN;
}

static pl_status add(void *self, const pl_journal_record *r, const double *values, size_t width, pl_err *e) {
  reader *to = self;
  pl_curve *c = to->curve;
  if (c->count == to->capacity) {
    size_t larger = to->capacity ? 2 * to->capacity : FIRST_ROOM;
    pl_status st = pl_grow(to->capacity, larger, sizeof *c->rows, "a curve", &c->rows, e);
    if (st != PL_OK) return st;
    to->capacity = larger;
  }
  fill_row(r, values, width, &c->rows[c->count++]);
  return PL_OK;
}

static void drop(void *self, int64_t step) {
  pl_curve *c = ((const reader *)self)->curve;
  while (c->count > 0 && c->rows[c->count - 1].point.step >= step) c->count--;
}

pl_status pl_curve_read(const char *path, pl_curve *out, pl_err *e) {
  reader to = {.curve = out};
  const pl_journal_visitor visitor = {.self = &to, .add = add, .drop = drop};
  *out = (pl_curve){0};
  pl_status st = pl_journal_visit(path, &pl_journal_of_points, &visitor, &out->attempts, &out->damaged, e);
  if (st != PL_OK) pl_curve_free(out);
  return st;
}

void pl_curve_free(pl_curve *c) {
  pl_times_free(&c->times);
  pl_free(c->rows);
  *c = (pl_curve){0};
}

static bool tail_of(const char *path, int64_t kind, pl_curve_row *out) {
  char raw[PL_RECORD_SIZE(PL_SERIES_COUNT)];
  pl_journal_record last;
  size_t width;
  bool damaged;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool found = pl_journal_header_read(fd, path, &pl_journal_of_points, &width, &damaged, NULL) == PL_OK && width > 0 &&
               pl_journal_tail(fd, width, kind, raw, &last);
  close(fd);
  if (found) fill_row(&last, raw + sizeof last, width, out);
  return found;
}

bool pl_journal_last_point(const char *path, pl_curve_row *out) { return tail_of(path, PL_RECORD_POINT, out); }

int64_t pl_journal_last_step(const char *path) {
  pl_curve_row last;
  return pl_journal_last_point(path, &last) ? last.point.step : -1;
}

int64_t pl_journal_last_attempt(const char *path) {
  pl_curve_row last;
  return tail_of(path, 0, &last) ? last.attempt : 0;
}
