/* How a report was made: the command, the programs, the sweep files. */
#include <string.h>

#include "analysis/mixed.h"
#include "analysis/report_parts.h"
#include "core/base/memory.h"
#include "results/sweep_dir.h"

static pl_status note_text(pl_notes *n, const char *name, const char *text, pl_err *e) {
  return text && text[0] ? pl_note(n, e, "%s: %s", name, text) : PL_OK;
}

static pl_status note_programs(pl_report *r, pl_err *e) {
  pl_status st = PL_OK;
  pl_str facts[PL_FACTS] = {0}, name = {0}, differences = {0}, resumed = {0};
  PL_TRY(pl_facts_list(&r->analysis.arms, facts, e));
  PL_TRY(pl_mixed_find(&r->analysis.arms, &differences, &resumed, e));
  for (pl_fact f = 0; f < PL_FACTS; f++) {
    name.length = 0;
    pl_str_printf(&name, "%s of the runs", pl_fact_names[f]);
    PL_TRY(pl_str_check(&name, e));
    PL_TRY(pl_str_check(&facts[f], e));
    PL_TRY(note_text(&r->made, pl_str_text(&name), pl_str_text(&facts[f]), e));
  }
  if (differences.length > 0)
    PL_TRY(note_text(&r->made, "mixed", pl_str_text(&differences), e));
  else if (facts[PL_FACT_PROGRAM].length > 0)
    PL_TRY(pl_note(&r->made, e,
                   "mixed: no; all compared runs were made by the same program, kernels, processor and "
                   "number of threads"));
  PL_TRY(note_text(&r->made, "resumed", pl_str_text(&resumed), e));
out:
  for (pl_fact f = 0; f < PL_FACTS; f++) pl_str_free(&facts[f]);
  pl_str_free(&name);
  pl_str_free(&differences);
  pl_str_free(&resumed);
  return st;
}

/* The newest frozen sweep of each directory; what cannot be read has been said elsewhere. */
static pl_status read_sweeps(pl_report *r, pl_err *e) {
  pl_status st = pl_alloc(r->in->dir_count, sizeof r->sweep_texts[0], "sweep files", &r->sweep_texts, e);
  for (size_t i = 0; i < r->in->dir_count && st == PL_OK; i++) {
    pl_json *document = NULL;
    int next = 0;
    if (pl_sweep_dir_newest(r->in->dirs[i], &document, &next, NULL) != PL_OK || !document) continue;
    pl_str *text = &r->sweep_texts[r->sweeps.count];
    st = pl_note(&r->sweeps, e, "%s", r->in->names[i]);
    if (st == PL_OK) {
      pl_json_write_pretty(document, text);
      st = pl_str_check(text, e);
    }
    pl_json_release(document);
  }
  return st;
}

pl_status pl_report_find_origin(pl_report *r, pl_err *e) {
  pl_status st = PL_OK;
  pl_str gnuplot = {0};
  pl_gnuplot_version(&gnuplot);
  PL_TRY(note_text(&r->made, "command", r->in->command, e));
  PL_TRY(note_text(&r->made, "report by", r->in->program, e));
  PL_TRY(note_text(&r->made, "plots by", pl_str_text(&gnuplot), e));
  PL_TRY(note_text(&r->made, "newest result", r->newest, e));
  PL_TRY(note_programs(r, e));
  PL_TRY(read_sweeps(r, e));
out:
  pl_str_free(&gnuplot);
  return st;
}
