#include "analysis/analysis.h"

#include "core/base/memory.h"

pl_status pl_analysis_run(const pl_catalog *c, const pl_notes *known, const pl_gap_options *o, pl_analysis *out,
                          pl_err *e) {
  pl_status st = PL_OK;
  *out = (pl_analysis){.options = o};
  for (size_t i = 0; known && i < known->count; i++) PL_TRY(pl_note(&out->warnings, e, "%s", known->texts[i]));
  PL_TRY(pl_arms_build(c, o->all, o->select_on, &out->arms, e));
  PL_TRY(pl_gap_compute(&out->arms, o, &out->gap, &out->warnings, e));
  PL_TRY(pl_rates_check(&out->arms, &out->rates, &out->warnings, e));
  PL_TRY(pl_against_compute(&out->gap, &out->arms, o, &out->against, &out->warnings, e));
  PL_TRY(pl_speed_compute(&out->arms, &out->speed, e));
  PL_TRY(pl_reach_compute(&out->arms, o, &out->speed, &out->reach, &out->warnings, e));
  PL_TRY(pl_mechanism_compute(&out->arms, &out->mechanism, e));
  PL_TRY(pl_gap_warn(&out->arms, &out->warnings, e));
out:
  if (st != PL_OK) pl_analysis_free(out);
  return st;
}

void pl_analysis_free(pl_analysis *a) {
  pl_against_free(&a->against);
  pl_mechanism_free(&a->mechanism);
  pl_reach_free(&a->reach);
  pl_speed_free(&a->speed);
  pl_rates_free(&a->rates);
  pl_gap_free(&a->gap);
  pl_arms_free(&a->arms);
  pl_notes_free(&a->warnings);
  *a = (pl_analysis){0};
}

pl_status pl_sheets_make(const pl_analysis *a, pl_sheets *out, pl_err *e) {
  pl_status st = PL_OK;
  *out = (pl_sheets){0};
  PL_TRY(pl_sheet_fill_gap(a, &out->list[PL_SHEET_GAP], e));
  PL_TRY(pl_sheet_fill_overview(a, &out->list[PL_SHEET_OVERVIEW], &out->overview_columns, e));
  PL_TRY(pl_sheet_fill_rates(a, &out->list[PL_SHEET_RATES], e));
  PL_TRY(pl_sheet_fill_power(a, &out->list[PL_SHEET_POWER], e));
  PL_TRY(pl_sheet_fill_reach(a, &out->list[PL_SHEET_REACH], e));
  PL_TRY(pl_sheet_fill_speed(a, &out->list[PL_SHEET_SPEED], e));
  PL_TRY(pl_sheet_fill_mechanism(a, &out->list[PL_SHEET_MECHANISM], &out->mechanism_columns, e));
  PL_TRY(pl_sheet_fill_against(a, &out->list[PL_SHEET_AGAINST], e));
  PL_TRY(pl_sheet_fill_slopes(a, &out->list[PL_SHEET_SLOPES], e));
  for (size_t i = 0; i < PL_SHEETS; i++) PL_TRY(pl_sheet_check(&out->list[i], e));
out:
  if (st != PL_OK) pl_sheets_free(out);
  return st;
}

void pl_sheets_free(pl_sheets *s) {
  for (size_t i = 0; i < PL_SHEETS; i++) pl_sheet_free(&s->list[i]);
  pl_free(s->overview_columns);
  pl_free(s->mechanism_columns);
  *s = (pl_sheets){0};
}

pl_json *pl_analysis_json(const pl_analysis *a, const pl_sheets *s) {
  pl_json *o = pl_json_new_object();
  bool ok = o && pl_json_set(o, "at", a->gap.at ? pl_json_new_string(a->gap.at) : pl_json_new_null());
  for (size_t i = 0; ok && i < PL_SHEETS; i++) ok = pl_json_set(o, s->list[i].name, pl_sheet_json(&s->list[i]));
  return pl_json_keep(o, ok && pl_json_set(o, "warnings", pl_warnings_json(&a->warnings)));
}
