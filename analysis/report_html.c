/* The report as one page that needs nothing but itself. */
#include <stdio.h>
#include <string.h>

#include "analysis/answer.h"
#include "analysis/html_assets.h"
#include "analysis/report_parts.h"
#include "core/base/fs.h"
#include "core/base/memory.h"

#define SVG_LIMIT ((size_t)256 << 20)

static void element(const char *tag, const char *class, const char *text, pl_str *out) {
  pl_str_printf(out, "<%s", tag);
  if (class) pl_str_printf(out, " class=\"%s\"", class);
  pl_str_append(out, ">");
  pl_html_escape(text, out);
  pl_str_printf(out, "</%s>\n", tag);
}

/* The policy keeps the page from asking anything of a network. */
static void append_head(const pl_report *r, pl_str *out) {
  pl_str_append(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                     "'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
                     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
  if (r->in->reload > 0) pl_str_printf(out, "<meta http-equiv=\"refresh\" content=\"%d\">\n", r->in->reload);
  pl_str_append(out, "<link rel=\"icon\" href=\"data:,\">\n<title>");
  pl_html_escape(r->in->catalog->name, out);
  pl_str_append(out, ": what delay costs</title>\n<style>\n");
  pl_str_append(out, pl_html_style);
  pl_str_append(out, "</style>\n</head>\n<body>\n");
}

static void append_answer(const pl_report *r, pl_str *out) {
  pl_str_append(out, "<header>\n");
  element("h1", NULL, r->in->catalog->name, out);
  pl_str_append(out, "<button type=\"button\" id=\"scheme\" hidden>Dark colours</button>\n</header>\n<main>\n"
                     "<section id=\"answer\">\n");
  element("p", "reading", pl_answer_reading(&r->analysis), out);
  for (size_t i = 0; i < r->answer.count; i++) element("p", "sentence", r->answer.texts[i], out);
  element("p", "counts", pl_str_text(&r->counts), out);
  pl_str_append(out, "<nav aria-label=\"Parts\">");
  if (r->warnings.count > 0)
    pl_str_printf(out, "<a href=\"#warnings\">%zu warning%s</a> ", r->warnings.count,
                  r->warnings.count == 1 ? "" : "s");
  if (r->figure_count > 0) pl_str_append(out, "<a href=\"#plots\">Plots</a> ");
  pl_str_append(out, "<a href=\"#tables\">Tables</a> <a href=\"#runs\">Runs</a> <a href=\"#made\">How this was "
                     "made</a></nav>\n</section>\n");
}

static void append_warnings(const pl_report *r, pl_str *out) {
  if (r->warnings.count == 0) return;
  pl_str_append(out, "<section id=\"warnings\">\n<h2>Warnings</h2>\n<ul class=\"warnings\">\n");
  for (size_t i = 0; i < r->warnings.count; i++) element("li", NULL, r->warnings.texts[i], out);
  pl_str_append(out, "</ul>\n</section>\n");
}

static pl_status append_figure(const pl_report *r, const pl_report_figure *f, pl_str *out, pl_err *e) {
  pl_status st = PL_OK;
  char name[96], *path = NULL, *svg = NULL;
  size_t length = 0;
  snprintf(name, sizeof name, "plots/%s.svg", f->name);
  PL_TRY(pl_path_join(r->files.folder, name, &path, e));
  PL_TRY(pl_file_read(path, SVG_LIMIT, &svg, &length, e));
  pl_str_printf(out, "<figure id=\"%s\">\n<div class=\"scroll\">", f->name);
  if (!pl_svg_inline(svg, f->name, f->caption, out)) PL_TRY(pl_fail(e, PL_FAIL, "%s: holds no drawing", path));
  pl_str_append(out, "</div>\n<figcaption>");
  pl_html_escape(f->caption, out);
  for (size_t i = 0; i < PL_DRAWN_FORMATS; i++)
    if (f->as[i])
      pl_str_printf(out, " <a href=\"plots/%s.%s\">%s</a>", f->name, pl_drawn_endings[i], pl_drawn_endings[i]);
  pl_str_printf(out, " <a href=\"plots/%s.csv\">csv</a></figcaption>\n</figure>\n", f->name);
out:
  pl_free(svg);
  pl_free(path);
  return st;
}

static pl_status append_figures(const pl_report *r, pl_str *out, pl_err *e) {
  pl_status st = PL_OK;
  if (r->figure_count == 0) return PL_OK;
  pl_str_append(out, "<section id=\"plots\">\n<h2>Plots</h2>\n");
  for (size_t i = 0; i < r->figure_count; i++) PL_TRY(append_figure(r, &r->figures[i], out, e));
  pl_str_append(out, "</section>\n");
out:
  return st;
}

static void append_origin(const pl_report *r, pl_str *out) {
  pl_str_append(out, "<section id=\"made\">\n<h2>How this was made</h2>\n<ul>\n");
  for (size_t i = 0; i < r->made.count; i++) element("li", NULL, r->made.texts[i], out);
  pl_str_append(out, "</ul>\n");
  for (size_t i = 0; i < r->sweeps.count; i++) {
    pl_str_append(out, "<h3>Sweep file of ");
    pl_html_escape(r->sweeps.texts[i], out);
    pl_str_append(out, "</h3>\n<pre tabindex=\"0\">");
    pl_html_escape(pl_str_text(&r->sweep_texts[i]), out);
    pl_str_append(out, "</pre>\n");
  }
  pl_str_append(out, "</section>\n");
}

pl_status pl_report_html(const pl_report *r, pl_str *out, pl_err *e) {
  append_head(r, out);
  append_answer(r, out);
  pl_status st = append_figures(r, out, e);
  if (st != PL_OK) return st;
  append_warnings(r, out);
  pl_str_append(out, "<section id=\"tables\">\n<h2>Tables</h2>\n");
  for (size_t i = 0; i < PL_SHEETS; i++) pl_sheet_html(&r->sheets.list[i], out);
  pl_str_append(out, "</section>\n<section id=\"runs\">\n<h2>Runs</h2>\n");
  pl_sheet_html(&r->runs, out);
  pl_str_append(out, "</section>\n");
  append_origin(r, out);
  pl_str_append(out, "</main>\n<aside id=\"detail\" aria-live=\"polite\" aria-label=\"The runs behind a row\" "
                     "hidden></aside>\n<script>\n");
  pl_str_append(out, pl_html_script);
  pl_str_append(out, "</script>\n</body>\n</html>\n");
  return PL_OK;
}
