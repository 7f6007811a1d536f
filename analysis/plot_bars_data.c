/* Which arms have a bar, and where the bars stand. */
#include <string.h>

#include "analysis/plot_bars.h"
#include "core/base/memory.h"

/* The arm's row in the fixed reading where there is one, else at its own best. */
static const pl_gap_row *bar_row(const pl_bar_measure *m, const pl_gap_table *t, const pl_arm *a) {
  const pl_gap_row *found = NULL;
  for (size_t i = 0; i < t->count; i++) {
    const pl_gap_row *r = &t->rows[i];
    if (r->sync || r->reading == PL_READING_TRANSFERRED || r->arm != a) continue;
    if (!found || r->reading == PL_READING_FIXED) found = r;
  }
  return found && m->of(found).n > 0 ? found : NULL;
}

bool pl_bar_same_series(const pl_arm *a, const pl_arm *b) {
  return a->optimizer_rank == b->optimizer_rank && a->correction_rank == b->correction_rank;
}

static void note_series(pl_bar_plot *b, const pl_arm *a) {
  for (size_t i = 0; i < b->series_count; i++)
    if (pl_bar_same_series(b->series[i], a)) return;
  b->series[b->series_count++] = a;
}

static void note_delay(pl_bar_plot *b, size_t rank) {
  size_t at = 0;
  while (at < b->delay_count && b->delays[at] < rank) at++;
  if (at < b->delay_count && b->delays[at] == rank) return;
  memmove(&b->delays[at + 1], &b->delays[at], (b->delay_count - at) * sizeof b->delays[0]);
  b->delays[at] = rank;
  b->delay_count++;
}

size_t pl_bar_delay_place(const pl_bar_plot *b, size_t rank) {
  size_t at = 0;
  while (b->delays[at] != rank) at++;
  return at;
}

static bool has_bar(const pl_bar_plot *b, size_t series, size_t rank) {
  for (size_t i = 0; i < b->count; i++)
    if (b->rows[i] && b->arms[i].delay_rank == rank && pl_bar_same_series(&b->arms[i], b->series[series])) return true;
  return false;
}

size_t pl_bars_at(const pl_bar_plot *b, size_t series, size_t rank) {
  size_t count = 0;
  for (size_t i = 0; i < series; i++) count += has_bar(b, i, rank);
  return count;
}

pl_status pl_bars_collect(const pl_bar_measure *m, const pl_plot_input *in, pl_arm_range group, pl_bar_plot *out,
                          pl_err *e) {
  pl_status st = PL_OK;
  pl_bar_plot b = {.measure = m, .arms = &in->arms->arms[group.first], .count = group.last - group.first};
  PL_TRY(pl_alloc(b.count, sizeof b.rows[0], "bars", &b.rows, e));
  PL_TRY(pl_alloc(b.count, sizeof b.series[0], "bars", &b.series, e));
  PL_TRY(pl_alloc(b.count, sizeof b.delays[0], "delays", &b.delays, e));
  for (size_t i = 0; i < b.count; i++) {
    b.rows[i] = bar_row(m, in->table, &b.arms[i]);
    if (!b.rows[i]) continue;
    note_series(&b, &b.arms[i]);
    note_delay(&b, b.arms[i].delay_rank);
  }
out:
  if (st != PL_OK) pl_bars_free(&b);
  *out = b;
  return st;
}

void pl_bars_free(pl_bar_plot *b) {
  pl_free(b->rows);
  pl_free(b->series);
  pl_free(b->delays);
  *b = (pl_bar_plot){0};
}
