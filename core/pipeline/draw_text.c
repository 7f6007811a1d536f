#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/pipeline/draw.h"
#include "core/pipeline/schedule_marks.h"

enum { LABEL = 40, FINEST = 4 };

/* Euclid's algorithm, blind to rounding errors. */
static double common(double a, double b, double tolerance) {
  while (b > tolerance) {
    double rest = fmod(a, b);
    if (b - rest < tolerance) rest = 0;
    a = b;
    b = rest;
  }
  return a;
}

double pl_draw_unit(const pl_timeline *t) {
  double unit = 0, shortest = (double)INFINITY;
  for (size_t i = 0; i < t->count; i++) {
    double duration = t->events[i].end - t->events[i].start;
    if (duration <= 0) continue;
    if (duration < shortest) shortest = duration;
    unit = common(duration, unit, 1e-6 * duration);
  }
  /* Times without a common measure are drawn rounded. */
  return unit == 0 || unit > shortest / (FINEST + 1) ? unit : shortest / 2;
}

static void label_of(const pl_timeline *t, const pl_event *event, char out[LABEL]) {
  const pl_instruction *in = event->in;
  size_t chunks = pl_schedule_chunks(t->schedule);
  int n = snprintf(out, LABEL, "%s", pl_op_marks[in->op]);
  size_t length = (size_t)n;
  if (in->op == PL_OP_UPDATE) return;
  n = snprintf(out + length, LABEL - length, "%zu", (size_t)event->update * t->schedule->microbatches + in->microbatch);
  length += (size_t)n;
  if (chunks > 26)
    snprintf(out + length, LABEL - length, ":%zu", in->chunk);
  else if (chunks > 1)
    snprintf(out + length, LABEL - length, "%c", 'a' + (int)in->chunk);
}

static size_t column_of(double time, double unit) { return unit > 0 ? (size_t)llround(time / unit) : 0; }

/* Writes the event into its row of characters. */
static void put(const pl_timeline *t, const pl_event *event, size_t width, double unit, char *row, size_t length) {
  char label[LABEL];
  size_t from = column_of(event->start, unit) * width, to = column_of(event->end, unit) * width;
  if (event->in->op == PL_OP_UPDATE && event->end - event->start < unit) {
    if (from > 0 && from - 1 < length) row[from - 1] = '|';
    return;
  }
  label_of(t, event, label);
  for (size_t i = from; i + 1 < to && i < length; i++) row[i] = i - from < strlen(label) ? label[i - from] : '-';
}

pl_status pl_draw_text(const pl_timeline *t, size_t columns, pl_str *out, pl_err *e) {
  return pl_draw_text_in(t, pl_draw_unit(t), columns, out, e);
}

pl_status pl_draw_text_in(const pl_timeline *t, double unit, size_t columns, pl_str *out, pl_err *e) {
  pl_status st = PL_OK;
  const size_t stages = t->schedule->stages;
  char *rows = NULL, label[LABEL];
  size_t width = 0, all = column_of(t->end, unit), shown = columns > 0 && columns < all ? columns : all;
  for (size_t i = 0; i < t->count; i++) {
    label_of(t, &t->events[i], label);
    if (t->events[i].end > t->events[i].start && strlen(label) + 1 > width) width = strlen(label) + 1;
  }
  const size_t length = shown * width;
  PL_TRY(pl_alloc(stages * (length + 1), 1, "the grid", &rows, e));
  for (size_t p = 0; p < stages; p++)
    for (size_t i = 0; i < length; i++) rows[p * (length + 1) + i] = i % width == 0 ? '.' : ' ';
  for (size_t i = 0; i < t->count; i++)
    put(t, &t->events[i], width, unit, rows + t->events[i].stage * (length + 1), length);
  for (size_t p = 0; p < stages; p++) {
    char *row = rows + p * (length + 1);
    for (size_t i = length; i > 0 && row[i - 1] == ' '; i--) row[i - 1] = '\0';
    pl_str_printf(out, "stage %-4zu %s\n", p, row);
  }
  if (shown < all) pl_str_printf(out, "(the first %zu of %zu columns)\n", shown, all);
out:
  pl_free(rows);
  return st;
}
