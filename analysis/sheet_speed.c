/* How fast real pipelines were, as a sheet. */
#include <math.h>

#include "analysis/analysis.h"

static pl_json *speed_json(const pl_speed_row *r) {
  pl_json *o = pl_json_new_object();
  return pl_json_keep(o, pl_json_set_arm(o, r->arm) && pl_json_set(o, "runs", pl_json_count(r->runs)) &&
                             pl_json_set(o, "bubble", pl_json_number_or_null(r->bubble)) &&
                             pl_json_set(o, "communication", pl_json_number_or_null(r->communication)) &&
                             pl_json_set(o, "stages_at_once", pl_json_number_or_null(r->at_once)) &&
                             pl_json_set(o, "tokens_per_second", pl_json_number_or_null(r->tokens_per_second)) &&
                             pl_json_set(o, "seconds_per_update", pl_json_number_or_null(r->seconds_per_update)) &&
                             pl_json_set(o, "gain", pl_json_number_or_null(r->gain)));
}

static void show_speed(const pl_speed_row *r, pl_str *c) {
  pl_show_arm(r->arm, c);
  pl_str_printf(&c[3], "%zu", r->runs);
  pl_str_printf(&c[4], "%.1f%%", 100 * r->bubble);
  pl_str_printf(&c[5], "%.1f%%", 100 * r->communication);
  pl_str_printf(&c[6], "%.2f", r->at_once);
  pl_show_count(r->tokens_per_second, &c[7]);
  pl_str_printf(&c[8], "%.4g", r->seconds_per_update);
  if (isnan(r->gain))
    pl_str_append(&c[9], "-");
  else
    pl_str_printf(&c[9], "%.3f", r->gain);
}

pl_status pl_sheet_fill_speed(const pl_analysis *a, pl_sheet *s, pl_err *e) {
  static const pl_sheet_column columns[] = {
      {"optimizer", false},     {"delay", false},        {"correction", false},    {"runs", true},
      {"bubble", true},         {"communication", true}, {"stages at once", true}, {"tokens/s", true},
      {"seconds/update", true}, {"gain", true}};
  pl_status st = PL_OK;
  *s = (pl_sheet){
      .name = "speed", .file = "speed", .columns = columns, .column_count = sizeof columns / sizeof columns[0]};
  for (size_t i = 0; i < a->speed.count; i++) {
    const pl_speed_row *r = &a->speed.rows[i];
    pl_sheet_row *row = NULL;
    PL_TRY(pl_sheet_add(s, "What the stages spent their time on", r->arm->group, speed_json(r), &row, e));
    show_speed(r, row->cells);
    pl_show_runs(r->arm, r->arm->best, r->arm->baseline ? r->arm->baseline->best : NULL, &row->detail);
  }
  PL_TRY(pl_note(&s->notes, e,
                 "means over the arm's runs at all learning rates. bubble: share of the stages' time in which they do "
                 "not compute, from the first record to the last; communication: share inside the transport, which is "
                 "part of it; stages at once: that compute at the same time, about 1 in one process, where they take "
                 "turns."));
  PL_TRY(pl_note(&s->notes, e,
                 "tokens/s: of training alone, without validation, in the run's last attempt. gain: tokens/s over "
                 "those of the synchronous arm, where the stages of both ran at the same time."));
out:
  return st;
}
