#include "analysis/report.h"

#include <string.h>

#include "analysis/answer.h"
#include "analysis/plots.h"
#include "analysis/report_parts.h"
#include "core/base/fs.h"
#include "core/base/memory.h"

static bool selected(const pl_report *r, const pl_catalog_run *run) { return run->current || r->in->options->all; }

/* How many runs there are, and when the newest of their results was written. */
static void count_runs(pl_report *r) {
  const pl_catalog *c = r->in->catalog;
  size_t by_state[PL_RUN_STATES] = {0}, total = 0, left_out = 0;
  double tokens = 0;
  pl_str *out = &r->counts;
  for (size_t i = 0; i < c->count; i++) {
    const pl_catalog_run *run = &c->runs[i];
    if (!selected(r, run)) {
      left_out++;
      continue;
    }
    total++;
    by_state[run->state]++;
    if (!run->has_result) continue;
    tokens += (double)run->result.outcome.tokens;
    if (strcmp(run->result.ended, r->newest) > 0) memcpy(r->newest, run->result.ended, sizeof r->newest);
  }
  pl_str_printf(out, "%zu run%s:", total, total == 1 ? "" : "s");
  const char *between = " ";
  for (size_t s = 0; s < PL_RUN_STATES; s++) {
    if (by_state[s] == 0) continue;
    pl_str_printf(out, "%s%zu %s", between, by_state[s], pl_run_state_name((pl_run_state)s));
    between = ", ";
  }
  pl_str_printf(out, "; %.4g million tokens trained.", tokens / 1e6);
  if (left_out > 0)
    pl_str_printf(out, " %zu run%s no longer in the sweep file %s left out.", left_out, left_out == 1 ? "" : "s",
                  left_out == 1 ? "is" : "are");
  if (c->unreadable > 0)
    pl_str_printf(out, " %zu run folder%s could not be read.", c->unreadable, c->unreadable == 1 ? "" : "s");
}

/* Whether a path stands here as a word. */
static bool is_word(const char *text, const char *at, size_t length) {
  bool begins = at == text || at[-1] == ' ', ends = at[length] == '\0' || strchr(" ,;:)", at[length]);
  return begins && ends;
}

/* A warning with the directories under the names that the report has for them. */
static void append_renamed(const pl_report_input *in, const char *text, pl_str *out) {
  for (const char *at = text; *at;) {
    size_t d = 0, length = 0;
    for (; d < in->dir_count; d++) {
      length = strlen(in->dirs[d]);
      if (length > 0 && strncmp(at, in->dirs[d], length) == 0 && is_word(text, at, length)) break;
    }
    if (d < in->dir_count) {
      pl_str_append(out, in->names[d]);
      at += length;
    } else {
      pl_str_append_bytes(out, at++, 1);
    }
  }
}

static pl_status rename_warnings(pl_report *r, pl_err *e) {
  pl_status st = PL_OK;
  for (size_t i = 0; i < r->analysis.warnings.count && st == PL_OK; i++) {
    pl_str text = {0};
    append_renamed(r->in, r->analysis.warnings.texts[i], &text);
    st = pl_str_check(&text, e);
    if (st == PL_OK) st = pl_note(&r->warnings, e, "%s", pl_str_text(&text));
    pl_str_free(&text);
  }
  return st;
}

static pl_status write_csv(pl_report *r, const pl_sheet *s, pl_err *e) {
  pl_str csv = {0}, name = {0};
  if (s->count == 0) return PL_OK;
  pl_sheet_csv(s, &csv);
  pl_str_printf(&name, "%s.csv", s->file);
  pl_status st = pl_report_file_write(&r->files, pl_str_text(&name), &csv, e);
  pl_str_free(&csv);
  pl_str_free(&name);
  return st;
}

static pl_status write_json(pl_report *r, pl_err *e) {
  pl_str json = {0};
  pl_json *document = pl_analysis_json(&r->analysis, &r->sheets);
  if (document && !pl_json_set(document, "warnings", pl_warnings_json(&r->warnings))) json.failed = true;
  if (!document) return pl_fail(e, PL_FAIL, "out of memory while writing gap.json");
  pl_json_write_pretty(document, &json);
  pl_status st = pl_report_file_write(&r->files, "gap.json", &json, e);
  pl_json_release(document);
  pl_str_free(&json);
  return st;
}

static pl_status write_data(pl_report *r, pl_err *e) {
  pl_status st = PL_OK;
  for (size_t i = 0; i < PL_SHEETS; i++) PL_TRY(write_csv(r, &r->sheets.list[i], e));
  PL_TRY(write_csv(r, &r->runs, e));
  PL_TRY(write_json(r, e));
out:
  return st;
}

static pl_status write_pages(pl_report *r, pl_err *e) {
  pl_status st = PL_OK;
  pl_str markdown = {0}, html = {0};
  pl_report_markdown(r, &markdown);
  PL_TRY(pl_report_file_write(&r->files, "report.md", &markdown, e));
  PL_TRY(pl_report_latex(r, e));
  PL_TRY(pl_report_html(r, &html, e));
  PL_TRY(pl_report_file_write(&r->files, "report.html", &html, e));
out:
  pl_str_free(&markdown);
  pl_str_free(&html);
  return st;
}

static void report_free(pl_report *r) {
  for (size_t i = 0; i < r->figure_count; i++) pl_free(r->figures[i].caption);
  for (size_t i = 0; r->sweep_texts && i < r->sweeps.count; i++) pl_str_free(&r->sweep_texts[i]);
  pl_free(r->figures);
  pl_free(r->sweep_texts);
  pl_notes_free(&r->sweeps);
  pl_notes_free(&r->made);
  pl_notes_free(&r->warnings);
  pl_notes_free(&r->answer);
  pl_str_free(&r->counts);
  pl_sheet_free(&r->runs);
  pl_sheets_free(&r->sheets);
  pl_analysis_free(&r->analysis);
  pl_report_files_free(&r->files);
}

pl_status pl_report_write(const pl_report_input *in, const char *folder, void (*say)(void *self, const char *line),
                          void *say_self, pl_err *e) {
  pl_status st = PL_OK;
  pl_report r = {.in = in, .files = {.folder = folder, .say = say, .say_self = say_self}};
  PL_TRY(pl_analysis_run(in->catalog, in->known, in->options, &r.analysis, e));
  PL_TRY(pl_plot_heat_check(in->heat, &r.analysis.arms, e));
  PL_TRY(pl_sheets_make(&r.analysis, &r.sheets, e));
  PL_TRY(pl_sheet_fill_runs(in->catalog, in->options->all, &r.runs, e));
  PL_TRY(pl_answer_make(&r.analysis, &r.answer, e));
  PL_TRY(rename_warnings(&r, e));
  count_runs(&r);
  PL_TRY(pl_str_check(&r.counts, e));
  PL_TRY(pl_report_find_origin(&r, e));
  PL_TRY(pl_make_folders(folder, e));
  PL_TRY(write_data(&r, e));
  PL_TRY(pl_report_draw(&r, e));
  PL_TRY(write_pages(&r, e));
  PL_TRY(pl_report_files_close(&r.files, e));
out:
  report_free(&r);
  return st;
}
