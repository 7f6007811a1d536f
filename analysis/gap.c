#include "analysis/gap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/arms.h"
#include "analysis/config_view.h"
#include "analysis/mixed.h"
#include "core/base/memory.h"

static const char lr_key[] = "optimizer.lr";

typedef struct gap_work {
  const pl_arms *arms;
  const pl_gap_options *options;
  pl_gap_table *table;
  size_t row_capacity, warning_capacity;
  const pl_arm_cell **best; /* of each arm; NULL without outcomes */
  double *delayed, *sync, *corrected;
  int64_t *seeds;
} gap_work;

static pl_status warn(gap_work *w, pl_err *e, const char *format, ...) PL_PRINTF(3, 4);

static pl_status warn(gap_work *w, pl_err *e, const char *format, ...) {
  pl_gap_table *t = w->table;
  char text[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (t->warning_count == w->warning_capacity) {
    size_t capacity = w->warning_capacity ? 2 * w->warning_capacity : 16;
    pl_status st = pl_grow(w->warning_capacity, capacity, sizeof t->warnings[0], "warnings", &t->warnings, e);
    if (st != PL_OK) return st;
    w->warning_capacity = capacity;
  }
  pl_status st = pl_strdup(text, &t->warnings[t->warning_count], e);
  if (st == PL_OK) t->warning_count++;
  return st;
}

static bool is_fixed_lr(const gap_work *w) { return strcmp(w->options->at_key, lr_key) == 0; }

static const pl_arm_cell *best_of(const gap_work *w, const pl_arm *a) { return w->best[a - w->arms->arms]; }

/* The cell that stands for an arm in a reading, or NULL when the arm has no place in it. */
static const pl_arm_cell *chosen(const gap_work *w, const pl_arm *a, pl_reading reading) {
  const pl_arm_cell *sync_best = a->baseline ? best_of(w, a->baseline) : NULL;
  switch (reading) {
  case PL_READING_BEST:
    return best_of(w, a);
  case PL_READING_TRANSFERRED:
    return sync_best ? pl_arm_cell_at(a, sync_best->lr) : NULL;
  case PL_READING_FIXED:
    return is_fixed_lr(w) ? pl_arm_cell_at(a, w->options->at_value) : best_of(w, a);
  }
  return NULL;
}

static bool in_reading(const gap_work *w, const pl_arm *a, pl_reading reading) {
  double value = NAN;
  if (reading != PL_READING_FIXED || is_fixed_lr(w)) return true;
  return pl_config_number(a->config, w->options->at_key, &value) && value == w->options->at_value;
}

/* Collects the losses of the seeds that finished in every given cell; c may be NULL. */
static size_t pair(gap_work *w, const pl_arm_cell *a, const pl_arm_cell *b, const pl_arm_cell *c) {
  size_t n = 0, j = 0, k = 0;
  for (size_t i = 0; i < a->count; i++) {
    int64_t seed = a->runs[i].seed;
    while (j < b->count && b->runs[j].seed < seed) j++;
    while (c && k < c->count && c->runs[k].seed < seed) k++;
    if (j == b->count || b->runs[j].seed != seed || (c && (k == c->count || c->runs[k].seed != seed))) continue;
    if (!pl_arm_finished(&a->runs[i]) || !pl_arm_finished(&b->runs[j]) || (c && !pl_arm_finished(&c->runs[k])))
      continue;
    w->delayed[n] = a->runs[i].loss;
    w->sync[n] = b->runs[j].loss;
    if (c) w->corrected[n] = c->runs[k].loss;
    n++;
  }
  return n;
}

static void fill_losses(gap_work *w, const pl_arm_cell *cell, pl_gap_row *row) {
  size_t known = 0;
  row->total = cell->count;
  for (size_t i = 0; i < cell->count; i++) {
    const pl_arm_run *r = &cell->runs[i];
    if (pl_arm_finished(r))
      w->delayed[row->finished++] = r->loss;
    else if (r->run->has_result && r->run->result.state == PL_RUN_DIVERGED)
      row->diverged++;
    else
      row->unfinished++;
  }
  row->loss = pl_estimate_of(w->delayed, row->finished);
  for (size_t i = 0; i < cell->count; i++)
    if (!isnan(cell->runs[i].loss)) w->delayed[known++] = cell->runs[i].loss;
  row->loss_median = pl_median(w->delayed, known);
}

static void fill_gap(gap_work *w, const pl_arm_cell *cell, const pl_arm_cell *sync, pl_gap_row *row) {
  size_t n = sync && !row->sync ? pair(w, cell, sync, NULL) : 0;
  for (size_t i = 0; i < n; i++) w->delayed[i] -= w->sync[i];
  row->gap = pl_estimate_of(w->delayed, n);
}

/* won back = (delayed - corrected) / (delayed - sync), means over the seeds that all three have. */
static void fill_won_back(gap_work *w, const pl_arm_cell *corrected, const pl_arm_cell *delayed,
                          const pl_arm_cell *sync, pl_gap_row *row) {
  size_t n = delayed && sync ? pair(w, delayed, sync, corrected) : 0;
  for (size_t i = 0; i < n; i++) {
    w->corrected[i] = w->delayed[i] - w->corrected[i];
    w->sync[i] = w->delayed[i] - w->sync[i];
  }
  row->won_back = pl_ratio_of_means(w->corrected, w->sync, n, &row->gap_resolved);
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += w->sync[i];
  if (sum > 0) return;
  /* Delay did no harm here, so there is nothing to win back. */
  row->gap_resolved = false;
  row->won_back.mean = row->won_back.low = row->won_back.high = NAN;
}

static bool uses_simulation(const pl_arm *a) { return pl_run_config_is_simulated(a->config); }

static pl_status name_row(const pl_arm *a, pl_gap_row *row, pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(pl_strdup(a->group, &row->group, e));
  PL_TRY(pl_strdup(a->optimizer, &row->optimizer, e));
  PL_TRY(pl_strdup(a->delay, &row->delay, e));
  PL_TRY(pl_strdup(a->correction, &row->correction, e));
out:
  return st;
}

/* Where the losses of two rows are over other seeds than their gap, a reader's subtraction does not give it. */
static pl_status warn_seeds(gap_work *w, const pl_arm *a, const pl_gap_row *row, const pl_arm_cell *sync, pl_err *e) {
  size_t finished = 0;
  if (row->sync || !sync || row->finished == 0) return PL_OK;
  for (size_t i = 0; i < sync->count; i++) finished += pl_arm_finished(&sync->runs[i]);
  if (row->gap.n == row->finished && row->gap.n == finished) return PL_OK;
  return warn(w, e,
              "%s: its gap is over %zu pair%s, its loss over %zu seed%s and the sync loss over %zu, so they differ",
              a->name, row->gap.n, row->gap.n == 1 ? "" : "s", row->finished, row->finished == 1 ? "" : "s", finished);
}

/* Losses at every learning rate, also at those that no reading shows. */
static pl_status warn_losses(gap_work *w, const pl_arm *a, pl_err *e) {
  char lr[32];
  pl_str where = {0};
  for (size_t i = 0; i < a->cell_count; i++) {
    size_t bad = 0;
    (void)pl_arm_cell_mean(&a->cells[i], NULL, 0, &bad);
    if (bad > 0)
      pl_str_printf(&where, "%s%s (%zu of %zu)", where.length > 0 ? ", " : "", pl_format_number(a->cells[i].lr, lr),
                    bad, a->cells[i].count);
  }
  pl_status st = pl_str_check(&where, e);
  if (st == PL_OK && where.length > 0)
    st = warn(w, e, "%s: runs diverged at %s %s; loss and gap there are over the others", a->name, lr_key, where.text);
  pl_str_free(&where);
  return st;
}

/* How the runs were made. */
static pl_status warn_mixed(gap_work *w, const char *dir, pl_err *e) {
  pl_str texts[2] = {{0}, {0}};
  pl_status st = pl_mixed_find(dir, w->arms, &texts[0], &texts[1], e);
  for (size_t i = 0; i < 2; i++) {
    if (st == PL_OK && texts[i].length > 0) st = warn(w, e, "%s", texts[i].text);
    pl_str_free(&texts[i]);
  }
  return st;
}

static pl_status add_row(gap_work *w, const pl_arm *a, const pl_arm_cell *cell, pl_reading reading, pl_err *e) {
  pl_gap_table *t = w->table;
  if (t->count == w->row_capacity) {
    size_t capacity = w->row_capacity ? 2 * w->row_capacity : 32;
    pl_status st = pl_grow(w->row_capacity, capacity, sizeof t->rows[0], "the gap table", &t->rows, e);
    if (st != PL_OK) return st;
    w->row_capacity = capacity;
  }
  pl_gap_row *row = &t->rows[t->count++];
  *row = (pl_gap_row){.reading = reading, .sync = a->sync, .simulated = uses_simulation(a), .lr = cell->lr};
  fill_losses(w, cell, row);
  const pl_arm_cell *sync = a->baseline ? chosen(w, a->baseline, reading) : NULL;
  fill_gap(w, cell, sync, row);
  fill_won_back(w, cell, a->uncorrected ? chosen(w, a->uncorrected, reading) : NULL, sync, row);
  pl_status st = warn_seeds(w, a, row, sync, e);
  return st == PL_OK ? name_row(a, row, e) : st;
}

/* Sets the edge mark of a best row and says so. */
static pl_status check_edge(gap_work *w, const pl_arm *a, pl_gap_row *row, pl_err *e) {
  double low = INFINITY, high = -INFINITY;
  char text[3][32];
  for (size_t i = 0; i < a->cell_count; i++) {
    size_t bad = 0;
    if (isnan(pl_arm_cell_mean(&a->cells[i], NULL, 0, &bad)) && bad == 0) continue;
    low = fmin(low, a->cells[i].lr);
    high = fmax(high, a->cells[i].lr);
  }
  if (!(low < high) || (row->lr > low && row->lr < high)) return PL_OK;
  row->lr_edge = row->lr <= low ? -1 : 1;
  return warn(w, e, "%s: the best %s %s is the %s of %s .. %s; extend the axis %s", a->name, lr_key,
              pl_format_number(row->lr, text[0]), row->lr_edge < 0 ? "lowest" : "highest",
              pl_format_number(low, text[1]), pl_format_number(high, text[2]),
              row->lr_edge < 0 ? "downwards" : "upwards");
}

static pl_status add_reading(gap_work *w, pl_reading reading, pl_err *e) {
  pl_status st = PL_OK;
  char lr[32];
  for (size_t i = 0; i < w->arms->count; i++) {
    const pl_arm *a = &w->arms->arms[i];
    const pl_arm_cell *cell = in_reading(w, a, reading) ? chosen(w, a, reading) : NULL;
    if (cell) PL_TRY(add_row(w, a, cell, reading, e));
    if (cell && reading == PL_READING_BEST) PL_TRY(check_edge(w, a, &w->table->rows[w->table->count - 1], e));
    if (reading == PL_READING_BEST && !a->baseline)
      PL_TRY(
          warn(w, e, "%s: no synchronous run differs from it in delay and correction alone; it has no gap", a->name));
    if (reading == PL_READING_TRANSFERRED && !cell && a->baseline && best_of(w, a->baseline))
      PL_TRY(warn(w, e, "%s: no run at the sync arm's best %s %s", a->name, lr_key,
                  pl_format_number(best_of(w, a->baseline)->lr, lr)));
  }
out:
  return st;
}

/* A fixed value that no run has is a slip worth an error of its own. */
static pl_status check_fixed(const gap_work *w, pl_err *e) {
  const pl_gap_options *o = w->options;
  char shown[32];
  bool is_number = false;
  if (strcmp(o->at_key, "seed") == 0) return pl_fail(e, PL_BAD, "--at takes any key but the seed");
  for (size_t i = 0; i < w->arms->count; i++) {
    const pl_arm *a = &w->arms->arms[i];
    double value = NAN;
    if (!pl_config_number(a->config, o->at_key, &value)) continue;
    is_number = true;
    if (is_fixed_lr(w) ? pl_arm_cell_at(a, o->at_value) != NULL : value == o->at_value) return PL_OK;
  }
  if (!is_number) return pl_fail(e, PL_BAD, "--at %s: no run has a number of that name", o->at_key);
  return pl_fail(e, PL_NOTHING, "--at: no run has %s = %s", o->at_key, pl_format_number(o->at_value, shown));
}

static pl_status prepare(gap_work *w, pl_err *e) {
  pl_status st = PL_OK;
  size_t n = w->arms->max_runs;
  PL_TRY(pl_alloc(w->arms->count, sizeof w->best[0], "the best learning rates", &w->best, e));
  PL_TRY(pl_alloc(n, sizeof w->delayed[0], "losses", &w->delayed, e));
  PL_TRY(pl_alloc(n, sizeof w->sync[0], "losses", &w->sync, e));
  PL_TRY(pl_alloc(n, sizeof w->corrected[0], "losses", &w->corrected, e));
  PL_TRY(pl_alloc(n, sizeof w->seeds[0], "seeds", &w->seeds, e));
  for (size_t i = 0; i < w->arms->count; i++) w->best[i] = pl_arm_best(&w->arms->arms[i], w->seeds);
out:
  return st;
}

static pl_status add_fixed(gap_work *w, pl_err *e) {
  char value[32], text[128];
  pl_status st = check_fixed(w, e);
  if (st != PL_OK) return st;
  snprintf(text, sizeof text, "%s = %s", w->options->at_key, pl_format_number(w->options->at_value, value));
  st = pl_strdup(text, &w->table->at, e);
  return st == PL_OK ? add_reading(w, PL_READING_FIXED, e) : st;
}

pl_status pl_gap_compute(const pl_catalog *c, const pl_gap_options *o, pl_gap_table *out, pl_err *e) {
  pl_status st = PL_OK;
  pl_arms arms = {0};
  *out = (pl_gap_table){0};
  gap_work w = {.arms = &arms, .options = o, .table = out};
  PL_TRY(pl_arms_build(c, o->all, &arms, e));
  if (arms.with_result == 0) {
    st = pl_fail(e, PL_NOTHING, "%s: none of the %zu runs has a result yet", c->dir, arms.selected);
    goto out;
  }
  PL_TRY(prepare(&w, e));
  PL_TRY(add_reading(&w, PL_READING_BEST, e));
  PL_TRY(add_reading(&w, PL_READING_TRANSFERRED, e));
  if (o->at_key) PL_TRY(add_fixed(&w, e));
  for (size_t i = 0; i < arms.count; i++) PL_TRY(warn_losses(&w, &arms.arms[i], e));
  if (arms.with_result < arms.selected)
    PL_TRY(warn(&w, e,
                arms.failed > 0 ? "%zu of %zu runs have no result (%zu failed)" : "%zu of %zu runs have no result yet",
                arms.selected - arms.with_result, arms.selected, arms.failed));
  PL_TRY(warn_mixed(&w, c->dir, e));
out:
  pl_free(w.best);
  pl_free(w.delayed);
  pl_free(w.sync);
  pl_free(w.corrected);
  pl_free(w.seeds);
  pl_arms_free(&arms);
  if (st != PL_OK) pl_gap_free(out);
  return st;
}

void pl_gap_free(pl_gap_table *t) {
  for (size_t i = 0; i < t->count; i++) {
    pl_free(t->rows[i].group);
    pl_free(t->rows[i].optimizer);
    pl_free(t->rows[i].delay);
    pl_free(t->rows[i].correction);
  }
  for (size_t i = 0; i < t->warning_count; i++) pl_free(t->warnings[i]);
  pl_free(t->rows);
  pl_free(t->warnings);
  pl_free(t->at);
  *t = (pl_gap_table){0};
}
