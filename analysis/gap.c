#include "analysis/gap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/config_view.h"
#include "analysis/significance.h"
#include "core/base/memory.h"

static const char lr_key[] = "optimizer.lr";

typedef struct gap_work {
  const pl_arms *arms;
  const pl_gap_options *options;
  pl_gap_table *table;
  pl_notes *warnings;
  size_t row_capacity;
  pl_pairs pairs;
  double *losses;
} gap_work;

static bool is_fixed_lr(const gap_work *w) { return strcmp(w->options->at_key, lr_key) == 0; }

/* The cell that stands for an arm in a reading, or NULL when the arm has no place in it. */
static const pl_arm_cell *chosen(const gap_work *w, const pl_arm *a, pl_reading reading) {
  const pl_arm_cell *sync_best = a->baseline ? a->baseline->best : NULL;
  switch (reading) {
  case PL_READING_BEST:
    return a->best;
  case PL_READING_TRANSFERRED:
    return sync_best ? pl_arm_cell_at(a, sync_best->lr) : NULL;
  case PL_READING_FIXED:
    return is_fixed_lr(w) ? pl_arm_cell_at(a, w->options->at_value) : a->best;
  }
  return NULL;
}

static bool in_reading(const gap_work *w, const pl_arm *a, pl_reading reading) {
  double value = NAN;
  if (reading != PL_READING_FIXED || is_fixed_lr(w)) return true;
  return pl_config_number(a->config, w->options->at_key, &value) && value == w->options->at_value;
}

/* The seed that chose the learning rates of a reading, which is then not compared; NULL when none is left out. */
static const int64_t *left_out(const gap_work *w, pl_reading reading) {
  return reading == PL_READING_FIXED && is_fixed_lr(w) ? NULL : w->arms->select_on;
}

static bool is_stopped(pl_run_state s) { return s == PL_RUN_STOPPED || s == PL_RUN_CANCELLED || s == PL_RUN_LOST; }

static void count_unfinished(const pl_arm_run *r, pl_gap_row *row) {
  row->unfinished++;
  row->failed += r->run->state == PL_RUN_FAILED;
  row->stopped += is_stopped(r->run->state);
}

static void fill_losses(gap_work *w, const pl_arm_cell *cell, pl_gap_row *row) {
  const int64_t *without = row->left_out;
  size_t known = 0;
  double tokens = 0;
  for (size_t i = 0; i < cell->count; i++) {
    const pl_arm_run *r = &cell->runs[i];
    if (without && r->seed == *without) continue;
    row->total++;
    if (pl_arm_finished(r)) {
      tokens += pl_arm_run_tokens(r->run);
      w->losses[row->finished++] = r->loss;
    } else if (isinf(r->loss)) {
      row->diverged++;
    } else {
      count_unfinished(r, row);
    }
  }
  row->tokens = row->finished > 0 ? tokens / (double)row->finished : (double)NAN;
  row->loss = pl_estimate_of(w->losses, row->finished);
  for (known = row->finished; known < row->finished + row->diverged; known++) w->losses[known] = INFINITY;
  row->loss_median = pl_median(w->losses, known);
}

static void fill_gap(gap_work *w, pl_gap_row *row) {
  pl_pairs *p = &w->pairs;
  double resolve = w->table->resolve;
  p->count = 0;
  if (row->sync_cell && !row->sync) pl_pairs_match(row->cell, row->sync_cell, NULL, row->left_out, p);
  row->correlation = pl_correlation(p->a, p->b, p->count);
  for (size_t i = 0; i < p->count; i++) p->a[i] -= p->b[i];
  row->gap = pl_estimate_of(p->a, p->count);
  row->p = row->p_holm = pl_p_value(&row->gap);
  row->pairs_needed = pl_pairs_needed(row->gap.sd, resolve);
}

/* won back = (delayed - corrected) / (delayed - sync), means over the seeds that all three have. */
static void fill_won_back(gap_work *w, const pl_arm_cell *delayed, pl_gap_row *row) {
  pl_pairs *p = &w->pairs;
  double sum = 0;
  p->count = 0;
  if (delayed && row->sync_cell) pl_pairs_match(delayed, row->sync_cell, row->cell, row->left_out, p);
  for (size_t i = 0; i < p->count; i++) {
    p->c[i] = p->a[i] - p->c[i];
    p->b[i] = p->a[i] - p->b[i];
    sum += p->b[i];
  }
  row->won_back = pl_ratio_of_means(p->c, p->b, p->count, &row->gap_resolved);
  if (sum > 0) return;
  /* Delay did no harm here, so there is nothing to win back. */
  row->gap_resolved = false;
  row->won_back.mean = row->won_back.low = row->won_back.high = NAN;
}

/* Where the losses of two rows are over other seeds than their gap, a reader's subtraction does not give it. */
static pl_status warn_seeds(gap_work *w, const pl_gap_row *row, pl_err *e) {
  const int64_t *without = row->left_out;
  size_t finished = 0;
  if (row->sync || !row->sync_cell || row->finished == 0) return PL_OK;
  for (size_t i = 0; i < row->sync_cell->count; i++) {
    const pl_arm_run *r = &row->sync_cell->runs[i];
    finished += pl_arm_finished(r) && !(without && r->seed == *without);
  }
  if (row->gap.n == row->finished && row->gap.n == finished) return PL_OK;
  return pl_note(w->warnings, e,
                 "%s: its gap is over %zu pair%s, its loss over %zu seed%s and the sync loss over %zu, so they differ",
                 row->arm->name, row->gap.n, row->gap.n == 1 ? "" : "s", row->finished, row->finished == 1 ? "" : "s",
                 finished);
}

/* A run of fewer tokens than its partner is no partner for a final loss, where both say how many they were. */
static pl_status warn_lengths(gap_work *w, const pl_gap_row *row, pl_err *e) {
  char one[32], other[32];
  size_t j = 0;
  if (row->sync || !row->sync_cell) return PL_OK;
  for (size_t i = 0; i < row->cell->count; i++) {
    const pl_arm_run *r = &row->cell->runs[i], *sync = row->sync_cell->runs;
    while (j < row->sync_cell->count && sync[j].seed < r->seed) j++;
    if (j == row->sync_cell->count || sync[j].seed != r->seed) continue;
    if (!pl_arm_finished(r) || !pl_arm_finished(&sync[j])) continue;
    double tokens = pl_arm_run_tokens(r->run), sync_tokens = pl_arm_run_tokens(sync[j].run);
    if (isnan(tokens) || isnan(sync_tokens) || tokens == sync_tokens) continue;
    return pl_note(w->warnings, e,
                   "%s: seed %lld saw %s tokens and its synchronous run %s; final losses of unequal lengths do not "
                   "compare",
                   row->arm->name, (long long)r->seed, pl_format_number(tokens, one),
                   pl_format_number(sync_tokens, other));
  }
  return PL_OK;
}

/* A new row with the texts of its arm; *row is valid until the next one. */
static pl_status new_row(gap_work *w, const pl_arm *a, pl_reading reading, pl_gap_row **out, pl_err *e) {
  pl_gap_table *t = w->table;
  if (t->count == w->row_capacity) {
    size_t capacity = w->row_capacity ? 2 * w->row_capacity : 32;
    pl_status st = pl_grow(w->row_capacity, capacity, sizeof t->rows[0], "the gap table", &t->rows, e);
    if (st != PL_OK) return st;
    w->row_capacity = capacity;
  }
  const pl_estimate none = pl_estimate_of(NULL, 0);
  *out = &t->rows[t->count++];
  **out = (pl_gap_row){.reading = reading,
                       .arm = a,
                       .left_out = left_out(w, reading),
                       .group = a->group,
                       .optimizer = a->optimizer,
                       .delay = a->delay,
                       .correction = a->correction,
                       .sync = a->sync,
                       .simulated = pl_run_config_is_simulated(a->config),
                       .lr = NAN,
                       .loss = none,
                       .loss_median = NAN,
                       .gap = none,
                       .correlation = NAN,
                       .p = NAN,
                       .p_holm = NAN,
                       .won_back = none,
                       .tokens = NAN};
  return PL_OK;
}

/* An arm without any outcome still has its line. */
static pl_status add_empty_row(gap_work *w, const pl_arm *a, pl_err *e) {
  pl_gap_row *row = NULL;
  pl_status st = new_row(w, a, PL_READING_BEST, &row, e);
  if (st != PL_OK) return st;
  for (size_t i = 0; i < a->cell_count; i++) {
    for (size_t k = 0; k < a->cells[i].count; k++) count_unfinished(&a->cells[i].runs[k], row);
    row->total += a->cells[i].count;
  }
  return PL_OK;
}

static pl_status add_row(gap_work *w, const pl_arm *a, const pl_arm_cell *cell, pl_reading reading, pl_err *e) {
  pl_gap_row *row = NULL;
  pl_status st = PL_OK;
  PL_TRY(new_row(w, a, reading, &row, e));
  row->lr = pl_arm_cell_rate(cell);
  row->cell = cell;
  row->lr_edge = reading == PL_READING_BEST ? a->edge : 0;
  row->sync_cell = a->baseline ? chosen(w, a->baseline, reading) : NULL;
  fill_losses(w, cell, row);
  fill_gap(w, row);
  fill_won_back(w, a->uncorrected ? chosen(w, a->uncorrected, reading) : NULL, row);
  PL_TRY(warn_seeds(w, row, e));
  if (reading == PL_READING_BEST) PL_TRY(warn_lengths(w, row, e));
out:
  return st;
}

static bool has_outcome(const pl_arm *a) {
  for (size_t i = 0; i < a->cell_count; i++)
    for (size_t k = 0; k < a->cells[i].count; k++)
      if (!isnan(a->cells[i].runs[k].loss)) return true;
  return false;
}

/* The selecting seed has to have run at several rates, and others at the one it chose. */
static pl_status warn_selection(gap_work *w, const pl_arm *a, const pl_arm_cell *cell, pl_err *e) {
  char lr[32];
  long long seed = (long long)*w->arms->select_on;
  if (!cell) return pl_note(w->warnings, e, "%s: seed %lld has no result, so it chooses no %s", a->name, seed, lr_key);
  for (size_t i = 0; i < cell->count; i++)
    if (cell->runs[i].seed != *w->arms->select_on) return PL_OK;
  return pl_note(w->warnings, e, "%s: seed %lld chose %s %s, where no other seed was run; there is nothing to compare",
                 a->name, seed, lr_key, pl_format_number(cell->lr, lr));
}

/* Why an arm with results has no line, or no gap, in a reading. */
static pl_status warn_absent(gap_work *w, const pl_arm *a, const pl_arm_cell *cell, pl_reading reading, pl_err *e) {
  char lr[32];
  pl_status st = PL_OK;
  bool best = reading == PL_READING_BEST, transferred = reading == PL_READING_TRANSFERRED;
  if (best && !a->baseline)
    PL_TRY(pl_note(w->warnings, e,
                   "%s: no synchronous run differs from it in delay and correction alone; it has no gap", a->name));
  if (best && w->arms->select_on && has_outcome(a)) PL_TRY(warn_selection(w, a, cell, e));
  if (transferred && !cell && a->baseline && a->baseline->best)
    PL_TRY(pl_note(w->warnings, e, "%s: no run at the sync arm's best %s %s", a->name, lr_key,
                   pl_format_number(a->baseline->best->lr, lr)));
out:
  return st;
}

static pl_status add_reading(gap_work *w, pl_reading reading, pl_err *e) {
  pl_status st = PL_OK;
  for (size_t i = 0; i < w->arms->count; i++) {
    const pl_arm *a = &w->arms->arms[i];
    const pl_arm_cell *cell = in_reading(w, a, reading) ? chosen(w, a, reading) : NULL;
    if (cell) PL_TRY(add_row(w, a, cell, reading, e));
    if (!cell && reading == PL_READING_BEST && !has_outcome(a)) PL_TRY(add_empty_row(w, a, e));
    PL_TRY(warn_absent(w, a, cell, reading, e));
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

static pl_status add_fixed(gap_work *w, pl_err *e) {
  static const char before[] = "At ";
  char value[32], text[128];
  pl_status st = check_fixed(w, e);
  if (st != PL_OK) return st;
  snprintf(text, sizeof text, "%s%s = %s", before, w->options->at_key, pl_format_number(w->options->at_value, value));
  st = pl_strdup(text, &w->table->at_title, e);
  if (st != PL_OK) return st;
  w->table->at = w->table->at_title + strlen(before);
  return add_reading(w, PL_READING_FIXED, e);
}

/* A family: the gaps of one group in one reading. */
static pl_status adjust_families(gap_work *w, pl_err *e) {
  pl_status st = PL_OK;
  double *p = NULL, *scratch = NULL;
  pl_gap_row *rows = w->table->rows;
  PL_TRY(pl_alloc(w->table->count, sizeof p[0], "p-values", &p, e));
  PL_TRY(pl_alloc(w->table->count, sizeof scratch[0], "p-values", &scratch, e));
  for (size_t first = 0, last; first < w->table->count; first = last) {
    for (last = first; last < w->table->count && rows[last].reading == rows[first].reading &&
                       rows[last].arm->group_rank == rows[first].arm->group_rank;
         last++)
      p[last - first] = rows[last].p;
    pl_holm(p, last - first, scratch);
    for (size_t i = first; i < last; i++) rows[i].p_holm = p[i - first];
  }
out:
  pl_free(scratch);
  pl_free(p);
  return st;
}

pl_status pl_gap_compute(const pl_arms *arms, const pl_gap_options *o, pl_gap_table *out, pl_notes *warnings,
                         pl_err *e) {
  pl_status st = PL_OK;
  *out = (pl_gap_table){.resolve = o->resolve > 0 ? o->resolve : PL_RESOLVE};
  gap_work w = {.arms = arms, .options = o, .table = out, .warnings = warnings};
  if (arms->with_result == 0) {
    st = pl_fail(e, PL_NOTHING, "%s: none of the %zu runs has a result yet", arms->catalog->dir, arms->selected);
    goto out;
  }
  PL_TRY(pl_pairs_alloc(arms->max_runs, &w.pairs, e));
  PL_TRY(pl_alloc(arms->max_runs, sizeof w.losses[0], "losses", &w.losses, e));
  PL_TRY(add_reading(&w, PL_READING_BEST, e));
  PL_TRY(add_reading(&w, PL_READING_TRANSFERRED, e));
  if (o->at_key) PL_TRY(add_fixed(&w, e));
  PL_TRY(adjust_families(&w, e));
out:
  pl_free(w.losses);
  pl_pairs_free(&w.pairs);
  if (st != PL_OK) pl_gap_free(out);
  return st;
}

void pl_gap_free(pl_gap_table *t) {
  pl_free(t->rows);
  pl_free(t->at_title);
  *t = (pl_gap_table){0};
}
