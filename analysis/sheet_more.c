/* Learning rates, pairs needed, tokens, and gaps against an axis as sheets. */
#include <math.h>

#include "analysis/analysis.h"

static const char *const mark_texts[] = {[PL_RATE_INSIDE] = "inside",
                                         [PL_RATE_OFF] = "more than half a step off: refine there",
                                         [PL_RATE_FLAT] = "no minimum: flat or noisy",
                                         [PL_RATE_EDGE_LOW] = "at the lower edge: extend downwards",
                                         [PL_RATE_EDGE_HIGH] = "at the upper edge: extend upwards",
                                         [PL_RATE_FEW] = "too few rates to tell"};
static const char *const mark_names[] = {
    [PL_RATE_INSIDE] = "inside", [PL_RATE_OFF] = "off",        [PL_RATE_FLAT] = "flat",
    [PL_RATE_EDGE_LOW] = "low",  [PL_RATE_EDGE_HIGH] = "high", [PL_RATE_FEW] = "few"};

static pl_json *rate_json(const pl_rate_row *r) {
  pl_json *o = pl_json_new_object();
  return pl_json_keep(o, pl_json_set_arm(o, r->arm) && pl_json_set(o, "rates", pl_json_count(r->rates)) &&
                             pl_json_set(o, "seeds", pl_json_count(r->seeds)) &&
                             pl_json_set(o, "lr", pl_json_number_or_null(pl_arm_cell_rate(r->arm->best))) &&
                             pl_json_set(o, "loss", pl_json_number_or_null(r->loss)) &&
                             pl_json_set(o, "parabola_lr", pl_json_number_or_null(r->lr)) &&
                             pl_json_set(o, "parabola_loss", pl_json_number_or_null(r->predicted)) &&
                             pl_json_set(o, "steps_off", pl_json_number_or_null(r->steps_off)) &&
                             pl_json_set(o, "mark", pl_json_new_string(mark_names[r->mark])));
}

pl_status pl_sheet_fill_rates(const pl_analysis *a, pl_sheet *s, pl_err *e) {
  static const pl_sheet_column columns[] = {
      {"optimizer", false}, {"delay", false},      {"correction", false},   {"rates", true},     {"best lr", true},
      {"loss", true},       {"parabola lr", true}, {"parabola loss", true}, {"steps off", true}, {"optimum", false}};
  pl_status st = PL_OK;
  bool several = false;
  *s = (pl_sheet){
      .name = "rates", .file = "rates", .columns = columns, .column_count = sizeof columns / sizeof columns[0]};
  for (size_t i = 0; i < a->rates.count; i++) several = several || a->rates.rows[i].rates > 1;
  for (size_t i = 0; i < a->rates.count && several; i++) {
    const pl_rate_row *r = &a->rates.rows[i];
    pl_sheet_row *row = NULL;
    PL_TRY(pl_sheet_add(s, "Learning rates", r->arm->group, rate_json(r), &row, e));
    pl_str *c = row->cells;
    pl_show_arm(r->arm, c);
    pl_show_runs(r->arm, r->arm->best, NULL, &row->detail);
    pl_str_printf(&c[3], "%zu", r->rates);
    pl_show_rate(pl_arm_cell_rate(r->arm->best), &c[4]);
    pl_show_number(r->loss, r->loss, false, &c[5]);
    pl_show_rate(r->lr, &c[6]);
    pl_show_number(r->predicted, r->loss, false, &c[7]);
    if (isnan(r->steps_off))
      pl_str_append(&c[8], "-");
    else
      pl_str_printf(&c[8], "%+.2f", r->steps_off);
    pl_str_append(&c[9], mark_texts[r->mark]);
  }
  PL_TRY(pl_note(&s->notes, e,
                 "loss: mean over the seeds that choose the rate. parabola: through the three best rates, in log2 of "
                 "the rate; steps off: from the best rate, in grid steps."));
out:
  return st;
}

static pl_json *power_json(const pl_gap_row *r, double resolve) {
  pl_json *o = pl_json_new_object();
  return pl_json_keep(
      o, pl_json_set_arm(o, r->arm) && pl_json_set(o, "pairs", pl_json_count(r->gap.n)) &&
             pl_json_set(o, "sd", pl_json_number_or_null(r->gap.sd)) &&
             pl_json_set(o, "correlation", pl_json_number_or_null(r->correlation)) &&
             pl_json_set(o, "difference", pl_json_new_number(resolve)) &&
             pl_json_set(o, "pairs_needed", r->pairs_needed > 0 ? pl_json_count(r->pairs_needed) : pl_json_new_null()));
}

pl_status pl_sheet_fill_power(const pl_analysis *a, pl_sheet *s, pl_err *e) {
  static const pl_sheet_column columns[] = {{"optimizer", false},  {"delay", false},     {"correction", false},
                                            {"pairs", true},       {"sd of gaps", true}, {"correlation", true},
                                            {"pairs needed", true}};
  pl_status st = PL_OK;
  char difference[32];
  pl_reading reading = a->gap.at ? PL_READING_FIXED : PL_READING_BEST;
  *s = (pl_sheet){
      .name = "power", .file = "power", .columns = columns, .column_count = sizeof columns / sizeof columns[0]};
  for (size_t i = 0; i < a->gap.count; i++) {
    const pl_gap_row *r = &a->gap.rows[i];
    pl_sheet_row *row = NULL;
    if (r->reading != reading || r->gap.n < 2) continue;
    PL_TRY(pl_sheet_add(s, "How many seeds it takes", r->group, power_json(r, a->gap.resolve), &row, e));
    pl_str *c = row->cells;
    pl_show_arm(r->arm, c);
    pl_show_runs(r->arm, r->cell, r->sync_cell, &row->detail);
    pl_str_printf(&c[3], "%zu", r->gap.n);
    pl_str_printf(&c[4], "%.3g", r->gap.sd);
    if (isnan(r->correlation))
      pl_str_append(&c[5], "-");
    else
      pl_str_printf(&c[5], "%.2f", r->correlation);
    if (r->pairs_needed > 0)
      pl_str_printf(&c[6], "%zu", r->pairs_needed);
    else
      pl_str_append(&c[6], "-");
  }
  PL_TRY(pl_note(&s->notes, e,
                 "pairs needed: for a power of 80%% in a two-sided 5%% paired t test to see a difference of %s, from "
                 "the sd measured over few pairs%s. correlation: of the two losses over seeds; pairing helps as far as "
                 "it is high.",
                 pl_format_number(a->gap.resolve, difference), a->gap.at ? " at the fixed value" : ""));
out:
  return st;
}

static void show_ratio(const pl_estimate *x, bool resolved, pl_str *out) {
  if (x->n == 0 || isnan(x->mean))
    pl_str_append(out, "-");
  else if (resolved)
    pl_str_printf(out, "%.2f [%.2f, %.2f]", x->mean, x->low, x->high);
  else
    pl_str_printf(out, "%.2f", x->mean);
}

static pl_json *reach_json(const pl_reach_row *r) {
  pl_json *o = pl_json_new_object();
  return pl_json_keep(o, pl_json_set_arm(o, r->arm) && pl_json_set(o, "lr", pl_json_number_or_null(r->lr)) &&
                             pl_json_set(o, "target", pl_json_number_or_null(r->target)) &&
                             pl_json_set(o, "runs", pl_json_count(r->runs)) &&
                             pl_json_set(o, "reached", pl_json_count(r->reached)) &&
                             pl_json_set(o, "tokens", pl_json_number_or_null(r->tokens)) &&
                             pl_json_set(o, "steps", pl_json_number_or_null(r->steps)) &&
                             pl_json_set(o, "seconds", pl_json_number_or_null(r->seconds)) &&
                             pl_json_set(o, "overhead", pl_json_estimate(&r->overhead)) &&
                             pl_json_set(o, "overhead_at_own_end", pl_json_estimate(&r->at_own_end)) &&
                             pl_json_set(o, "schedule_gain", pl_json_number_or_null(r->schedule_gain)) &&
                             pl_json_set(o, "measured_gain", pl_json_number_or_null(r->measured_gain)) &&
                             pl_json_set(o, "clipped", pl_json_number_or_null(r->clipped)));
}

static void show_reach(const pl_reach_row *r, pl_str *c) {
  pl_show_arm(r->arm, c);
  pl_show_rate(r->lr, &c[3]);
  pl_show_number(r->target, r->target, false, &c[4]);
  pl_show_count(r->tokens, &c[5]);
  pl_show_count(r->steps, &c[6]);
  pl_show_count(r->seconds, &c[7]);
  if (isnan(r->target))
    pl_str_append(&c[8], "-");
  else
    pl_str_printf(&c[8], "%zu/%zu", r->reached, r->runs);
  show_ratio(&r->overhead, r->overhead_resolved, &c[9]);
  show_ratio(&r->at_own_end, r->at_own_end_resolved, &c[10]);
  if (!isnan(r->measured_gain))
    pl_str_printf(&c[11], "%.2f measured", r->measured_gain);
  else if (isnan(r->schedule_gain))
    pl_str_append(&c[11], "-");
  else
    pl_str_printf(&c[11], "%.2f", r->schedule_gain);
  if (isnan(r->clipped))
    pl_str_append(&c[12], "-");
  else
    pl_str_printf(&c[12], "%.1f%%", 100 * r->clipped);
}

pl_status pl_sheet_fill_reach(const pl_analysis *a, pl_sheet *s, pl_err *e) {
  static const pl_sheet_column columns[] = {
      {"optimizer", false}, {"delay", false},        {"correction", false}, {"lr", true},      {"target", true},
      {"tokens", true},     {"steps", true},         {"seconds", true},     {"reached", true}, {"overhead", true},
      {"at own end", true}, {"schedule gain", true}, {"clipped", true}};
  pl_status st = PL_OK;
  *s = (pl_sheet){
      .name = "reach", .file = "reach", .columns = columns, .column_count = sizeof columns / sizeof columns[0]};
  for (size_t i = 0; i < a->reach.count; i++) {
    const pl_reach_row *r = &a->reach.rows[i];
    pl_sheet_row *row = NULL;
    PL_TRY(pl_sheet_add(s, "Tokens to a loss, each arm at its own best learning rate", r->arm->group, reach_json(r),
                        &row, e));
    show_reach(r, row->cells);
    pl_show_runs(r->arm, r->arm->best, r->arm->baseline ? r->arm->baseline->best : NULL, &row->detail);
  }
  PL_TRY(pl_note(
      &s->notes, e,
      "tokens, steps, seconds: medians up to the first validation at or below the target, which is %s; a run "
      "that never gets there counts as infinite. Nothing is interpolated: they are as coarse as the validations.",
      a->options->target ? "the given one" : "the worst final loss of a synchronous run of the group"));
  PL_TRY(pl_note(&s->notes, e,
                 "overhead: tokens to the target over those of the synchronous run of the seed; at own end: all tokens "
                 "of the run over those after which its synchronous run had the same loss (in the middle of its "
                 "schedule, so rather too small). Asynchrony pays when it makes updates faster by more than that."));
  PL_TRY(pl_note(
      &s->notes, e,
      "schedule gain: updates per second of an asynchronous schedule without bubbles (2BW, which needs m >= P) over "
      "1F1B, (m+P-1)/m, from the schedule; where both arms ran as real pipelines their tokens per second, marked as "
      "measured. clipped: share of the logged updates that were clipped."));
out:
  return st;
}
