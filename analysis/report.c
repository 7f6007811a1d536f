#include "analysis/report.h"

#include <math.h>
#include <stdio.h>

#include "analysis/analysis.h"
#include "analysis/plots.h"
#include "core/base/fs.h"
#include "core/base/memory.h"

typedef struct report {
  pl_plot_input in;
  const char *folder;
  char *plot_folder;
  pl_str figures; /* Markdown that shows them */
  bool no_gnuplot;
  void (*say)(void *self, const char *line);
  void *say_self;
} report;

static void say(const report *r, const char *format, ...) PL_PRINTF(2, 3);

static void say(const report *r, const char *format, ...) {
  char line[PL_ERR_TEXT];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (r->say) r->say(r->say_self, line);
}

static pl_status write_file(const report *r, const char *name, const pl_str *content, pl_err *e) {
  char *path = NULL;
  pl_status st = pl_str_check(content, e);
  if (st == PL_OK) st = pl_path_join(r->folder, name, &path, e);
  if (st == PL_OK) st = pl_file_replace(path, pl_str_text(content), content->length, e);
  if (st == PL_OK) say(r, "%s", path);
  pl_free(path);
  return st;
}

static const struct {
  const char *name;
  pl_plot_function draw;
} figure_kinds[] = {
    {"loss_curves", pl_plot_loss_curves}, {"loss_vs_lr", pl_plot_loss_vs_lr}, {"gap_vs_delay", pl_plot_gap_vs_delay}};

static void report_figure(report *r, const pl_plot *p, const char *group, const pl_drawn *drawn) {
  if (drawn->missing) {
    say(r, "gnuplot is not installed: the plots are left out (their scripts are in %s)", r->plot_folder);
    r->no_gnuplot = true;
    return;
  }
  if (!drawn->svg) {
    say(r, "gnuplot could not draw %s: %s", p->name, drawn->problem);
    return;
  }
  say(r, "%s/%s.svg", r->plot_folder, p->name);
  if (drawn->png)
    say(r, "%s/%s.png", r->plot_folder, p->name);
  else
    say(r, "gnuplot could not write %s.png: %s", p->name, drawn->problem);
  pl_str_printf(&r->figures, "\n%s%s%s.\n\n![%s](plots/%s.svg)\n", pl_str_text(&p->caption), group[0] ? "; " : "",
                group, p->name, p->name);
}

static pl_status draw_figure(report *r, size_t kind, pl_arm_range group, size_t number, pl_err *e) {
  pl_status st = PL_OK;
  pl_plot p = {0};
  pl_drawn drawn = {0};
  if (number == 0)
    snprintf(p.name, sizeof p.name, "%s", figure_kinds[kind].name);
  else
    snprintf(p.name, sizeof p.name, "%s_%zu", figure_kinds[kind].name, number + 1);
  PL_TRY(figure_kinds[kind].draw(&r->in, group, &p, e));
  if (p.blocks == 0) goto out;
  PL_TRY(pl_plot_draw(&p, r->plot_folder, &drawn, e));
  report_figure(r, &p, r->in.arms->arms[group.first].group, &drawn);
out:
  pl_plot_free(&p);
  return st;
}

static pl_status draw_figures(report *r, pl_err *e) {
  pl_status st = PL_OK;
  size_t number = 0;
  PL_TRY(pl_path_join(r->folder, "plots", &r->plot_folder, e));
  PL_TRY(pl_make_folders(r->plot_folder, e));
  for (size_t i = 0; i < r->in.arms->count && !r->no_gnuplot; number++) {
    pl_arm_range group = pl_arms_of_group(r->in.arms, i);
    for (size_t kind = 0; kind < sizeof figure_kinds / sizeof figure_kinds[0] && !r->no_gnuplot; kind++)
      PL_TRY(draw_figure(r, kind, group, number, e));
    i = group.last;
  }
out:
  return st;
}

static bool selected(const report *r, const pl_catalog_run *run) { return run->current || r->in.options->all; }

static void append_summary(const report *r, pl_str *out) {
  const pl_catalog *c = r->in.catalog;
  size_t by_state[PL_RUN_STATES] = {0}, total = 0, left_out = 0;
  double tokens = 0;
  for (size_t i = 0; i < c->count; i++) {
    if (!selected(r, &c->runs[i])) {
      left_out++;
      continue;
    }
    total++;
    by_state[c->runs[i].state]++;
    if (c->runs[i].has_result) tokens += (double)c->runs[i].result.outcome.tokens;
  }
  pl_str_printf(out, "# %s\n\n%zu runs:", c->name, total);
  const char *between = " ";
  for (size_t s = 0; s < PL_RUN_STATES; s++) {
    if (by_state[s] == 0) continue;
    pl_str_printf(out, "%s%zu %s", between, by_state[s], pl_run_state_name((pl_run_state)s));
    between = ", ";
  }
  pl_str_printf(out, "; %.4g million tokens trained.", tokens / 1e6);
  if (left_out > 0) pl_str_printf(out, " %zu runs that are no longer in the sweep file are left out.", left_out);
  if (c->unreadable > 0) pl_str_printf(out, " %zu run folders could not be read.", c->unreadable);
  pl_str_append(out, "\n");
}

static void append_runs(const report *r, pl_str *out) {
  const pl_catalog *c = r->in.catalog;
  pl_str_append(out, "\n## Runs\n\n| id | configuration | state | final validation loss |\n|---|---|---|---:|\n");
  for (size_t i = 0; i < c->count; i++) {
    const pl_catalog_run *run = &c->runs[i];
    char id[PL_ID_SIZE];
    if (!selected(r, run)) continue;
    pl_hash_hex(run->id, id);
    pl_str_printf(out, "| %s | ", id);
    pl_markdown_escape(run->label, out);
    pl_str_printf(out, " | %s | ", pl_run_state_name(run->state));
    if (run->has_result && isfinite(run->result.outcome.final_val_loss))
      pl_str_printf(out, "%.4f |\n", run->result.outcome.final_val_loss);
    else
      pl_str_append(out, "- |\n");
  }
}

static pl_status write_markdown(const report *r, const pl_analysis *a, const pl_sheets *sheets, pl_err *e) {
  pl_str out = {0};
  append_summary(r, &out);
  if (r->figures.length > 0) pl_str_printf(&out, "\n## Plots\n%s", pl_str_text(&r->figures));
  pl_str_append(&out, "\n## Gap\n");
  for (size_t i = 0; i < PL_SHEETS; i++) pl_sheet_markdown(&sheets->list[i], &out);
  pl_warnings_markdown(&a->warnings, &out);
  append_runs(r, &out);
  if (r->figures.failed) out.failed = true;
  pl_status st = write_file(r, "report.md", &out, e);
  pl_str_free(&out);
  return st;
}

static pl_status write_csv(const report *r, const pl_sheet *s, pl_err *e) {
  pl_str csv = {0}, name = {0};
  if (s->count == 0) return PL_OK;
  pl_sheet_csv(s, &csv);
  pl_str_printf(&name, "%s.csv", s->file);
  pl_status st = write_file(r, pl_str_text(&name), &csv, e);
  pl_str_free(&csv);
  pl_str_free(&name);
  return st;
}

static pl_status write_data(const report *r, const pl_analysis *a, const pl_sheets *sheets, pl_err *e) {
  pl_status st = PL_OK;
  pl_str json = {0};
  pl_json *document = pl_analysis_json(a, sheets);
  for (size_t i = 0; i < PL_SHEETS; i++) PL_TRY(write_csv(r, &sheets->list[i], e));
  if (!document) PL_TRY(pl_fail(e, PL_FAIL, "out of memory while writing gap.json"));
  pl_json_write_pretty(document, &json);
  PL_TRY(write_file(r, "gap.json", &json, e));
out:
  pl_json_release(document);
  pl_str_free(&json);
  return st;
}

pl_status pl_report_write(const pl_catalog *c, const pl_notes *known, const pl_gap_options *o, const char *folder,
                          void (*say_line)(void *self, const char *line), void *say_self, pl_err *e) {
  pl_status st = PL_OK;
  pl_analysis a = {0};
  pl_sheets sheets = {0};
  report r = {.in = {.catalog = c, .arms = &a.arms, .table = &a.gap, .options = o},
              .folder = folder,
              .say = say_line,
              .say_self = say_self};
  PL_TRY(pl_analysis_run(c, known, o, &a, e));
  PL_TRY(pl_sheets_make(&a, &sheets, e));
  PL_TRY(pl_make_folders(folder, e));
  PL_TRY(write_data(&r, &a, &sheets, e));
  PL_TRY(draw_figures(&r, e));
  PL_TRY(write_markdown(&r, &a, &sheets, e));
out:
  pl_str_free(&r.figures);
  pl_free(r.plot_folder);
  pl_sheets_free(&sheets);
  pl_analysis_free(&a);
  return st;
}
