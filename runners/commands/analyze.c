/* pipelag analyze DIR...: the gap table and what belongs to it. */
#include <stdio.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/extend.h"
#include "analysis/join.h"
#include "core/base/fs.h"
#include "core/base/memory.h"
#include "runners/command.h"
#include "runners/gap_options.h"
#include "runners/registries.h"
#include "runners/say.h"

/* The sheet that --table names; NULL for all of them. */
static pl_status find_sheet(const pl_options *o, const pl_sheets *sheets, const pl_sheet **out, pl_err *e) {
  pl_str names = {0};
  *out = NULL;
  if (o->table == NULL) return PL_OK;
  for (size_t i = 0; i < PL_SHEETS && *out == NULL; i++) {
    pl_str_printf(&names, "%s%s", i > 0 ? ", " : "", sheets->list[i].file);
    if (strcmp(sheets->list[i].file, o->table) == 0) *out = &sheets->list[i];
  }
  pl_status st = pl_str_check(&names, e);
  if (st == PL_OK && *out == NULL)
    st = pl_fail(e, PL_BAD, "--table: saw \"%s\"; allowed: one of %s", o->table, names.text);
  pl_str_free(&names);
  if (st != PL_OK || o->against != NULL) return st;
  if (*out == &sheets->list[PL_SHEET_AGAINST] || *out == &sheets->list[PL_SHEET_SLOPES])
    return pl_fail(e, PL_BAD,
                   "--table %s: needs --against KEY, the number that the gap is shown against, as in "
                   "--against delay",
                   o->table);
  return PL_OK;
}

/* What a table without rows would need. */
static const char *const needs[PL_SHEETS] = {[PL_SHEET_OVERVIEW] = "it needs delayed arms without a correction",
                                             [PL_SHEET_RATES] = "it needs an arm with several learning rates",
                                             [PL_SHEET_POWER] = "it needs a gap over two pairs of seeds",
                                             [PL_SHEET_REACH] = "it needs runs with curves",
                                             [PL_SHEET_SPEED] = "it needs pipelines of several processes",
                                             [PL_SHEET_MECHANISM] = "no run logged drift, displacement or cosine",
                                             [PL_SHEET_AGAINST] = "no delayed arm has a gap",
                                             [PL_SHEET_SLOPES] = "it needs an arm with gaps at three values"};

static void say_empty(const pl_sheets *sheets, const pl_sheet *only) {
  if (only == NULL || only->count > 0) return;
  const char *why = needs[only - sheets->list];
  fprintf(stderr, "table %s has no rows%s%s\n", only->file, why != NULL ? ": " : "", why != NULL ? why : "");
}

static pl_status print_json(const pl_analysis *a, const pl_sheets *sheets, const pl_sheet *only, pl_err *e) {
  pl_str text = {0};
  pl_json *json = only != NULL ? pl_sheet_json(only) : pl_analysis_json(a, sheets);
  if (json == NULL) return pl_fail(e, PL_FAIL, "out of memory for the tables");
  pl_json_write_pretty(json, &text);
  pl_json_release(json);
  return pl_print(&text, e);
}

static pl_status print_tables(const pl_options *o, const pl_analysis *a, const pl_sheets *sheets, pl_err *e) {
  pl_str text = {0};
  const pl_sheet *only = NULL;
  pl_status st = find_sheet(o, sheets, &only, e);
  if (st != PL_OK) return st;
  say_empty(sheets, only);
  if (o->json) return print_json(a, sheets, only, e);
  if (o->csv) {
    pl_sheet_csv(only != NULL ? only : &sheets->list[PL_SHEET_GAP], &text);
    return pl_print(&text, e);
  }
  for (size_t i = 0; i < PL_SHEETS; i++)
    if (only == NULL || only == &sheets->list[i]) pl_sheet_text(&sheets->list[i], &text);
  pl_warnings_text(&a->warnings, &text);
  return pl_print(&text, e);
}

/* Writes the extended sweep and says how to run it. */
static pl_status extend(const pl_options *o, const pl_registries *r, const pl_analysis *a, pl_err *e) {
  pl_status st = PL_OK;
  pl_json *document = NULL;
  char *folder = NULL;
  pl_str text = {0};
  size_t added = 0;
  PL_TRY(pl_extend(r, &a->rates, &document, &added, e));
  PL_TRY(pl_extend_data_folder(o->args[0], &folder, e));
  pl_json_write_pretty(document, &text);
  PL_TRY(pl_str_check(&text, e));
  PL_TRY(pl_file_replace(o->extend, text.text, text.length, e));
  fflush(stdout);
  fprintf(stderr, "%s: %zu more run%s; pipelag run %s -o %s%s%s\n", o->extend, added, added == 1 ? "" : "s", o->extend,
          o->args[0], folder != NULL ? " -r " : "", folder != NULL ? folder : "");
out:
  pl_str_free(&text);
  pl_free(folder);
  pl_json_release(document);
  return st;
}

static pl_status run(const pl_options *o, pl_err *e) {
  pl_registries registries = pl_registries_all();
  pl_joined joined = {0};
  pl_gap_choice choice = {0};
  pl_analysis a = {0};
  pl_sheets sheets = {0};
  pl_status st = PL_OK;
  PL_TRY(pl_gap_choice_read(o, &choice, e));
  PL_TRY(pl_joined_open(&registries, o->args, o->arg_count, pl_say_stderr, NULL, &joined, e));
  PL_TRY(pl_analysis_run(&joined.all, &joined.warnings, &choice.gap, &a, e));
  PL_TRY(pl_sheets_make(&a, &sheets, e));
  PL_TRY(print_tables(o, &a, &sheets, e));
  if (o->extend != NULL) PL_TRY(extend(o, &registries, &a, e));
out:
  pl_sheets_free(&sheets);
  pl_analysis_free(&a);
  pl_joined_free(&joined);
  pl_gap_choice_free(&choice);
  return st;
}

const pl_command pl_command_analyze = {.name = "analyze",
                                       .arguments = "DIR...",
                                       .summary = "Print what delay costs each optimizer and what corrections win back",
                                       .options = "JCaA123456",
                                       .min_args = 1,
                                       .max_args = PL_MAX_ARGS,
                                       .run = run};
