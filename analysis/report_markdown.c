/* The report as Markdown. */
#include "analysis/answer.h"
#include "analysis/report_parts.h"

static void append_answer(const pl_report *r, pl_str *out) {
  pl_str_append(out, "**");
  pl_markdown_escape(pl_answer_reading(&r->analysis), out);
  pl_str_append(out, ":**");
  for (size_t i = 0; i < r->answer.count; i++) {
    pl_str_append(out, " ");
    pl_markdown_escape(r->answer.texts[i], out);
  }
  pl_str_append(out, "\n\n");
}

static void append_figures(const pl_report *r, pl_str *out) {
  if (r->figure_count > 0) pl_str_append(out, "\n## Plots\n");
  for (size_t i = 0; i < r->figure_count; i++) {
    const pl_report_figure *f = &r->figures[i];
    pl_str_append(out, "\n");
    pl_markdown_escape(f->caption, out);
    pl_str_printf(out, "\n\n![%s](plots/%s.svg)\n", f->name, f->name);
  }
}

static void append_origin(const pl_report *r, pl_str *out) {
  pl_str_append(out, "\n## How this was made\n\n");
  for (size_t i = 0; i < r->made.count; i++) {
    pl_str_append(out, "* ");
    pl_markdown_escape(r->made.texts[i], out);
    pl_str_append(out, "\n");
  }
  for (size_t i = 0; i < r->sweeps.count; i++) {
    pl_str_append(out, "\nSweep file of ");
    pl_markdown_escape(r->sweeps.texts[i], out);
    pl_str_printf(out, ":\n\n~~~~~~~~json\n%s~~~~~~~~\n", pl_str_text(&r->sweep_texts[i]));
  }
}

void pl_report_markdown(const pl_report *r, pl_str *out) {
  pl_str_append(out, "# ");
  pl_markdown_escape(r->in->catalog->name, out);
  pl_str_append(out, "\n\n");
  append_answer(r, out);
  pl_markdown_escape(pl_str_text(&r->counts), out);
  pl_str_append(out, "\n");
  append_figures(r, out);
  pl_str_append(out, "\n## Gap\n");
  for (size_t i = 0; i < PL_SHEETS; i++) pl_sheet_markdown(&r->sheets.list[i], out);
  pl_warnings_markdown(&r->warnings, out);
  pl_sheet_markdown(&r->runs, out);
  append_origin(r, out);
}
