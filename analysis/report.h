/* The report: tables and plots in DIR/report/. */
#ifndef PL_ANALYSIS_REPORT_H
#define PL_ANALYSIS_REPORT_H

#include "analysis/gap.h"

/* Writes report.md, a CSV file for each table, gap.json (all of them) and the plots (SVG and PNG by gnuplot: loss
 * curves, loss against learning rate, gap against delay) into `folder`, made when missing. The same catalog gives the
 * same bytes. `say` gets one line per file written. Without gnuplot the plots are left out and `say` tells. */
PL_MUST_CHECK pl_status pl_report_write(const pl_catalog *c, const pl_notes *known, const pl_gap_options *o,
                                        const char *folder, void (*say)(void *self, const char *line), void *say_self,
                                        pl_err *e);

#endif
