/* Gaps against an axis, and the lines through them, as sheets. */
#include <math.h>
#include <string.h>

#include "analysis/analysis.h"

static void show_plain(double value, pl_str *out) {
  char text[32];
  if (isnan(value))
    pl_str_append(out, "-");
  else
    pl_str_append(out, pl_format_number(value, text));
}

static pl_json *point_json(const pl_against_table *t, const pl_against_point *p) {
  pl_json *o = pl_json_new_object();
  return pl_json_keep(o, pl_json_set_arm(o, p->row->arm) && pl_json_set(o, "key", pl_json_new_string(t->key)) &&
                             pl_json_set(o, "value", pl_json_new_number(p->value)) &&
                             pl_json_set(o, "x", pl_json_new_number(p->x)) &&
                             pl_json_set(o, "lr", pl_json_number_or_null(p->row->lr)) &&
                             pl_json_set(o, "gap", pl_json_estimate(&p->row->gap)));
}

pl_status pl_sheet_fill_against(const pl_analysis *a, pl_sheet *s, pl_err *e) {
  static const pl_sheet_column columns[] = {
      {"optimizer", false}, {"delay", false}, {"correction", false},  {"value", true}, {"x", true},
      {"lr", true},         {"gap", true},    {"95% interval", true}, {"n", true},     {"group", false}};
  const pl_against_table *t = &a->against;
  pl_status st = PL_OK;
  *s = (pl_sheet){
      .name = "against", .file = "against", .columns = columns, .column_count = sizeof columns / sizeof columns[0]};
  for (size_t i = 0; i < t->count; i++)
    for (size_t k = t->series[i].begin; k < t->series[i].end; k++) {
      const pl_against_point *p = &t->points[k];
      pl_sheet_row *row = NULL;
      PL_TRY(pl_sheet_add(s, "Gap against an axis", t->key, point_json(t, p), &row, e));
      pl_str *c = row->cells;
      pl_show_arm(p->row->arm, c);
      pl_show_runs(p->row->arm, p->row->cell, p->row->sync_cell, &row->detail);
      show_plain(p->value, &c[3]);
      pl_str_printf(&c[4], "%.4g", p->x);
      pl_show_rate(p->row->lr, &c[5]);
      pl_show_number(p->row->gap.mean, p->row->loss.mean, true, &c[6]);
      pl_show_interval(&p->row->gap, p->row->loss.mean, &c[7]);
      pl_str_printf(&c[8], "%zu", p->row->gap.n);
      pl_str_append(&c[9], p->row->group);
    }
  if (t->key)
    PL_TRY(pl_note(&s->notes, e, "axis: %s; x: %s. %s", t->key, t->inverted ? "1/(1 - value)" : "the value itself",
                   a->gap.at ? "Gaps of the fixed reading." : "Each arm at its own best learning rate."));
out:
  return st;
}

static pl_json *slope_json(const pl_against_table *t, const pl_against_series *x) {
  pl_json *o = pl_json_new_object();
  return pl_json_keep(o, pl_json_set_arm(o, x->first->arm) && pl_json_set(o, "key", pl_json_new_string(t->key)) &&
                             pl_json_set(o, "first", pl_json_new_number(t->points[x->begin].value)) &&
                             pl_json_set(o, "last", pl_json_new_number(t->points[x->end - 1].value)) &&
                             pl_json_set(o, "values", pl_json_count(x->end - x->begin)) &&
                             pl_json_set(o, "intercept", pl_json_number_or_null(x->intercept)) &&
                             pl_json_set(o, "slope", pl_json_number_or_null(x->slope.mean)) &&
                             pl_json_set(o, "low", pl_json_number_or_null(x->slope.low)) &&
                             pl_json_set(o, "high", pl_json_number_or_null(x->slope.high)) &&
                             pl_json_set(o, "interval", pl_json_new_string(x->seeds > 0 ? "seeds" : "scatter")) &&
                             pl_json_set(o, "seeds", pl_json_count(x->seeds)));
}

static void show_slope(const pl_against_table *t, const pl_against_series *x, pl_str *c) {
  pl_show_arm(x->first->arm, c);
  show_plain(t->points[x->begin].value, &c[3]);
  pl_str_append(&c[3], " .. ");
  show_plain(t->points[x->end - 1].value, &c[3]);
  pl_str_printf(&c[3], " (%zu)", x->end - x->begin);
  pl_str_printf(&c[4], "%+.4g", x->intercept);
  pl_str_printf(&c[5], "%+.4g", x->slope.mean);
  if (isnan(x->slope.low))
    pl_str_append(&c[6], "-");
  else
    pl_str_printf(&c[6], "[%+.4g, %+.4g]", x->slope.low, x->slope.high);
  if (x->seeds > 0)
    pl_str_printf(&c[7], "%zu seeds", x->seeds);
  else
    pl_str_printf(&c[7], "scatter of %zu values", x->end - x->begin);
  pl_str_append(&c[8], x->first->group);
}

pl_status pl_sheet_fill_slopes(const pl_analysis *a, pl_sheet *s, pl_err *e) {
  static const pl_sheet_column columns[] = {{"optimizer", false},   {"delay", false}, {"correction", false},
                                            {"values", true},       {"at x=0", true}, {"slope", true},
                                            {"95% interval", true}, {"from", false},  {"group", false}};
  const pl_against_table *t = &a->against;
  pl_status st = PL_OK;
  *s = (pl_sheet){
      .name = "slopes", .file = "slopes", .columns = columns, .column_count = sizeof columns / sizeof columns[0]};
  for (size_t i = 0; i < t->count; i++) {
    const pl_against_series *x = &t->series[i];
    pl_sheet_row *row = NULL;
    if (isnan(x->slope.mean)) continue;
    PL_TRY(pl_sheet_add(s, "Lines through the gaps", t->key, slope_json(t, x), &row, e));
    show_slope(t, x, row->cells);
    for (size_t k = x->begin; k < x->end; k++) {
      const pl_gap_row *r = t->points[k].row;
      pl_show_runs(r->arm, r->cell, r->sync_cell, &row->detail);
    }
  }
  PL_TRY(pl_note(&s->notes, e,
                 "least squares of the mean gap on x; texts are those of the first value. From seeds: t interval over "
                 "the slopes of the single seeds that have every value. From scatter: values weighted by their pairs, "
                 "values - 2 degrees of freedom. A line is a summary, not a law."));
out:
  return st;
}
