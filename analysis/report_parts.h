/* What a report is made of, and the writers that turn it into files. Private to report*.c. */
#ifndef PL_ANALYSIS_REPORT_PARTS_H
#define PL_ANALYSIS_REPORT_PARTS_H

#include "analysis/analysis.h"
#include "analysis/gnuplot.h"
#include "analysis/report.h"
#include "analysis/report_files.h"

typedef struct pl_report_figure {
  char name[48];
  char *caption; /* whole sentences */
  bool as[PL_DRAWN_FORMATS];
} pl_report_figure;

typedef struct pl_report {
  const pl_report_input *in;
  pl_analysis analysis;
  pl_sheets sheets;
  pl_sheet runs;
  pl_notes answer, warnings;
  pl_notes made;   /* "program: ...", "command: ..." */
  pl_notes sweeps; /* names of the sweep files, and below each its text */
  pl_str *sweep_texts;
  pl_str counts;   /* how many runs, by state */
  char newest[32]; /* when the newest result was written, "" when none says */
  pl_report_figure *figures;
  size_t figure_count;
  bool no_gnuplot;
  pl_report_files files;
} pl_report;

/* Fill in their members: made and sweeps; figures (drawing them). */
PL_MUST_CHECK pl_status pl_report_find_origin(pl_report *r, pl_err *e);
PL_MUST_CHECK pl_status pl_report_draw(pl_report *r, pl_err *e);

/* Append the page and the document; the second writes the files of latex/. */
PL_MUST_CHECK pl_status pl_report_html(const pl_report *r, pl_str *out, pl_err *e);
void pl_report_markdown(const pl_report *r, pl_str *out);
PL_MUST_CHECK pl_status pl_report_latex(pl_report *r, pl_err *e);

/* Appends a drawing of gnuplot as an element inside a page: with ids that begin with `name`, without a title of its own
 * but with `label` for those who do not see it. False when it is none. */
bool pl_svg_inline(const char *svg, const char *name, const char *label, pl_str *out);

#endif
