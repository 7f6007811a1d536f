/* The gap table as a sheet. */
#include <math.h>
#include <string.h>

#include "analysis/analysis.h"

enum { OPTIMIZER, DELAY, CORRECTION, LR, LOSS, GAP, INTERVAL, P, WON_BACK, N, TOKENS, FINISHED, COLUMNS };

static const pl_sheet_column columns[COLUMNS] = {[OPTIMIZER] = {"optimizer", false},
                                                 [DELAY] = {"delay", false},
                                                 [CORRECTION] = {"correction", false},
                                                 [LR] = {"lr", true},
                                                 [LOSS] = {"loss", true},
                                                 [GAP] = {"gap", true},
                                                 [INTERVAL] = {"95% interval", true},
                                                 [P] = {"p (Holm)", true},
                                                 [WON_BACK] = {"won back", true},
                                                 [N] = {"n", true},
                                                 [TOKENS] = {"tokens", true},
                                                 [FINISHED] = {"finished", false}};

static const char *const reading_names[] = {
    [PL_READING_BEST] = "best", [PL_READING_TRANSFERRED] = "transferred", [PL_READING_FIXED] = "fixed"};

void pl_show_arm(const pl_arm *a, pl_str *cells) {
  pl_str_append(&cells[0], a->optimizer);
  pl_str_printf(&cells[1], "%s%s", a->delay, pl_run_config_is_simulated(a->config) ? "*" : "");
  pl_str_append(&cells[2], a->correction);
}

bool pl_json_set_arm(pl_json *o, const pl_arm *a) {
  return o && pl_json_set(o, "group", pl_json_new_string(a->group)) &&
         pl_json_set(o, "optimizer", pl_json_new_string(a->optimizer)) &&
         pl_json_set(o, "delay", pl_json_new_string(a->delay)) &&
         pl_json_set(o, "correction", pl_json_new_string(a->correction));
}

static void show_won_back(const pl_gap_row *r, pl_str *out) {
  const pl_estimate *w = &r->won_back;
  if (w->n == 0 || isnan(w->mean))
    pl_str_append(out, "-");
  else if (r->gap_resolved)
    pl_str_printf(out, "%.0f%% [%.0f, %.0f]", 100 * w->mean, 100 * w->low, 100 * w->high);
  else if (w->n < 3)
    pl_str_printf(out, "%.0f%%", 100 * w->mean);
  else
    pl_str_append(out, "gap unresolved");
}

static void show_finished(const pl_gap_row *r, pl_str *out) {
  pl_str_printf(out, "%zu/%zu", r->finished, r->total);
  if (r->diverged > 0) {
    pl_str_printf(out, ", %zu diverged (median ", r->diverged);
    if (isinf(r->loss_median))
      pl_str_append(out, "lost)");
    else
      pl_show_number(r->loss_median, r->loss_median, false, out);
    if (!isinf(r->loss_median)) pl_str_append(out, ")");
  }
  if (r->unfinished == 0) return;
  pl_str_printf(out, ", %zu unfinished", r->unfinished);
  if (r->failed > 0 && r->stopped > 0)
    pl_str_printf(out, " (%zu failed, %zu stopped)", r->failed, r->stopped);
  else if (r->failed + r->stopped > 0)
    pl_str_printf(out, " (%zu %s)", r->failed + r->stopped, r->failed > 0 ? "failed" : "stopped");
}

static void show_row(const pl_gap_row *r, pl_str *c) {
  pl_show_arm(r->arm, c);
  if (isnan(r->lr))
    pl_str_append(&c[LR], "-");
  else
    pl_str_printf(&c[LR], "%.6g", r->lr);
  pl_show_number(r->loss.mean, r->loss.mean, false, &c[LOSS]);
  pl_show_number(r->gap.mean, r->loss.mean, true, &c[GAP]);
  pl_show_interval(&r->gap, r->loss.mean, &c[INTERVAL]);
  pl_show_p(r->p_holm, &c[P]);
  show_won_back(r, &c[WON_BACK]);
  pl_str_printf(&c[N], "%zu", r->sync ? r->loss.n : r->gap.n);
  pl_show_count(r->tokens, &c[TOKENS]);
  show_finished(r, &c[FINISHED]);
}

static bool set_gap(pl_json *o, const pl_gap_row *r) {
  return pl_json_set(o, "gap", pl_json_estimate(&r->gap)) &&
         pl_json_set(o, "correlation", pl_json_number_or_null(r->correlation)) &&
         pl_json_set(o, "p", pl_json_number_or_null(r->p)) &&
         pl_json_set(o, "p_holm", pl_json_number_or_null(r->p_holm)) &&
         pl_json_set(o, "pairs_needed", r->pairs_needed > 0 ? pl_json_count(r->pairs_needed) : pl_json_new_null());
}

static pl_json *row_json(const pl_gap_row *r) {
  pl_json *o = pl_json_new_object();
  bool ok = o && pl_json_set(o, "reading", pl_json_new_string(reading_names[r->reading])) &&
            pl_json_set_arm(o, r->arm) && pl_json_set(o, "sync", pl_json_new_bool(r->sync)) &&
            pl_json_set(o, "simulated", pl_json_new_bool(r->simulated)) &&
            pl_json_set(o, "lr", pl_json_number_or_null(r->lr)) &&
            pl_json_set(o, "lr_edge", pl_json_new_int(r->lr_edge)) &&
            pl_json_set(o, "loss", pl_json_estimate(&r->loss)) &&
            pl_json_set(o, "loss_median", pl_json_number_or_null(r->loss_median)) && set_gap(o, r) &&
            pl_json_set(o, "won_back", pl_json_estimate(&r->won_back)) &&
            pl_json_set(o, "gap_resolved", pl_json_new_bool(r->gap_resolved)) &&
            pl_json_set(o, "tokens", pl_json_number_or_null(r->tokens)) &&
            pl_json_set(o, "finished", pl_json_count(r->finished)) &&
            pl_json_set(o, "diverged", pl_json_count(r->diverged)) &&
            pl_json_set(o, "unfinished", pl_json_count(r->unfinished)) &&
            pl_json_set(o, "failed", pl_json_count(r->failed)) &&
            pl_json_set(o, "stopped", pl_json_count(r->stopped)) && pl_json_set(o, "total", pl_json_count(r->total));
  return pl_json_keep(o, ok);
}

static const char *title_of(const pl_gap_table *t, pl_reading reading) {
  switch (reading) {
  case PL_READING_BEST:
    return "Each arm at its own best learning rate";
  case PL_READING_TRANSFERRED:
    return "Every arm at the sync arm's best learning rate";
  case PL_READING_FIXED:
    return t->at_title;
  }
  return "";
}

static pl_status add_legend(const pl_analysis *a, bool simulated, pl_sheet *s, pl_err *e) {
  pl_status st = PL_OK;
  const int64_t *seed = a->options->select_on;
  PL_TRY(pl_note(&s->notes, e,
                 "loss: mean final validation loss. gap: loss minus that of the synchronous run of the same seed, over "
                 "n pairs; interval and p by paired t, p adjusted by Holm for the gaps of one table."));
  PL_TRY(pl_note(&s->notes, e,
                 "won back: share of the uncorrected arm's gap that the correction recovers, with its 95%% interval by "
                 "Fieller. tokens: of one run."));
  if (seed)
    PL_TRY(pl_note(&s->notes, e,
                   "seed %lld chose the learning rates and takes no part in the means; each gap is over other seeds.",
                   (long long)*seed));
  if (simulated)
    PL_TRY(pl_note(&s->notes, e,
                   "* simulated only: a global clip norm or a tied head on a per-stage delay, which a real pipeline "
                   "cannot have."));
out:
  return st;
}

pl_status pl_sheet_fill_gap(const pl_analysis *a, pl_sheet *s, pl_err *e) {
  pl_status st = PL_OK;
  bool simulated = false;
  *s = (pl_sheet){.name = "rows", .file = "gap", .columns = columns, .column_count = COLUMNS};
  for (size_t i = 0; i < a->gap.count; i++) {
    const pl_gap_row *r = &a->gap.rows[i];
    pl_sheet_row *row = NULL;
    PL_TRY(pl_sheet_add(s, title_of(&a->gap, r->reading), r->group, row_json(r), &row, e));
    show_row(r, row->cells);
    pl_show_runs(r->arm, r->cell, r->sync_cell, &row->detail);
    simulated = simulated || r->simulated;
  }
  PL_TRY(add_legend(a, simulated, s, e));
out:
  return st;
}
