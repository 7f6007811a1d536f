/* The report for a paper: a file for each table, one for the figures, and a document around them. */
#include "analysis/answer.h"
#include "analysis/report_parts.h"
#include "core/base/fs.h"
#include "core/base/memory.h"

static pl_status write_table(pl_report *r, const pl_sheet *s, pl_str *document, pl_err *e) {
  pl_str text = {0}, name = {0};
  if (s->count == 0) return PL_OK;
  pl_str_printf(&name, "latex/%s.tex", s->file);
  pl_sheet_latex(s, &text);
  pl_str_printf(document, "\\input{%s}\n", s->file);
  pl_status st = pl_report_file_write(&r->files, pl_str_text(&name), &text, e);
  pl_str_free(&text);
  pl_str_free(&name);
  return st;
}

static pl_status write_figures(pl_report *r, pl_str *document, pl_err *e) {
  pl_str text = {0};
  pl_str_append(&text, "% \\usepackage{graphicx}\n% As large as drawn, and no wider than the text.\n\\makeatletter\n"
                       "\\providecommand*{\\pipelagwidth}{\\ifdim\\Gin@nat@width>\\linewidth\\linewidth\\else"
                       "\\Gin@nat@width\\fi}\n\\makeatother\n");
  for (size_t i = 0; i < r->figure_count; i++) {
    const pl_report_figure *f = &r->figures[i];
    if (!f->as[PL_DRAWN_PDF]) continue;
    pl_str_printf(&text,
                  "\n\\begin{figure}\n\\centering\n\\includegraphics[width=\\pipelagwidth,height=0.8\\textheight,"
                  "keepaspectratio]{../plots/%s.pdf}\n\\caption{",
                  f->name);
    pl_latex_escape(f->caption, &text);
    pl_str_printf(&text, "}\n\\label{fig:%s}\n\\end{figure}\n", f->name);
  }
  if (r->figure_count > 0) pl_str_append(document, "\\input{figures}\n");
  pl_status st = r->figure_count > 0 ? pl_report_file_write(&r->files, "latex/figures.tex", &text, e) : PL_OK;
  pl_str_free(&text);
  return st;
}

static void append_answer(const pl_report *r, pl_str *out) {
  pl_str_append(out, "\\paragraph{");
  pl_latex_escape(pl_answer_reading(&r->analysis), out);
  pl_str_append(out, "}\n");
  for (size_t i = 0; i < r->answer.count; i++) {
    pl_latex_escape(r->answer.texts[i], out);
    pl_str_append(out, "\n");
  }
  pl_str_append(out, "\n");
  pl_latex_escape(pl_str_text(&r->counts), out);
  pl_str_append(out, "\n\\clearpage\n");
}

pl_status pl_report_latex(pl_report *r, pl_err *e) {
  pl_status st = PL_OK;
  char *folder = NULL;
  pl_str out = {0};
  PL_TRY(pl_path_join(r->files.folder, "latex", &folder, e));
  PL_TRY(pl_make_folders(folder, e));
  pl_str_append(&out, "\\documentclass{article}\n\\usepackage[utf8]{inputenc}\n"
                      "\\usepackage[margin=2.5cm]{geometry}\n\\usepackage{textcomp}\n"
                      "\\usepackage{booktabs,graphicx,longtable}\n\\setcounter{totalnumber}{6}\\setlength{"
                      "\\belowcaptionskip}{6pt}\n\\title{");
  pl_latex_escape(r->in->catalog->name, &out);
  pl_str_append(&out, "}\n\\date{}\n\\begin{document}\n\\maketitle\n");
  append_answer(r, &out);
  PL_TRY(write_figures(r, &out, e));
  for (size_t i = 0; i < PL_SHEETS; i++) {
    pl_str_append(&out, "\\clearpage\n");
    PL_TRY(write_table(r, &r->sheets.list[i], &out, e));
  }
  pl_str_append(&out, "\\end{document}\n");
  PL_TRY(pl_report_file_write(&r->files, "latex/report.tex", &out, e));
out:
  pl_str_free(&out);
  pl_free(folder);
  return st;
}
