/* The report: tables, plots and the answer in words, for people (HTML, Markdown), papers (LaTeX, PDF) and programs
 * (CSV, JSON). */
#ifndef PL_ANALYSIS_REPORT_H
#define PL_ANALYSIS_REPORT_H

#include "analysis/gap.h"

typedef struct pl_report_input {
  const pl_catalog *catalog;
  const pl_notes *known; /* warnings to begin with, may be NULL */
  const pl_gap_options *options;
  const char *const *dirs;  /* [dir_count] the directories of the catalog, as they were given; may be NULL */
  const char *const *names; /* [dir_count] what the report calls them, so that it does not depend on where they are */
  size_t dir_count;
  const char *command; /* how it was asked for, with these names; may be NULL */
  const char *program; /* which program writes it; may be NULL */
  const char *heat[2]; /* keys of the heat map's axes; NULL: learning rate and delay, where both vary */
  int reload;          /* seconds after which the page loads itself again; 0: never */
} pl_report_input;

/* Writes into `folder`, made when missing:
 *   report.html         one page with everything in it
 *   report.md           the same as Markdown
 *   TABLE.csv gap.json  every table, and all of them
 *   plots/              each figure as SVG, PNG and PDF, with its numbers, its gnuplot script and that script's data
 *   latex/              a file for each table, one for the figures, and a document around them
 *   files.txt           what was written, by which the next report removes what it does not write again and what nobody
 *                       changed since
 * The same catalog gives the same bytes, whatever the folder, the time, the locale and the time zone; dates are that of
 * the newest result. `say` gets one line per file written. Without gnuplot the plots are left out and `say` tells.
 * PL_NOTHING when no run has a result, PL_BAD for a key that no run has. */
PL_MUST_CHECK pl_status pl_report_write(const pl_report_input *in, const char *folder,
                                        void (*say)(void *self, const char *line), void *say_self, pl_err *e);

#endif
