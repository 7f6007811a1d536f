/* The gap table as terminal text, Markdown, CSV and JSON. */
#ifndef PL_ANALYSIS_TABLES_H
#define PL_ANALYSIS_TABLES_H

#include "analysis/gap.h"

void pl_table_text(const pl_gap_table *t, pl_str *out);
void pl_table_markdown(const pl_gap_table *t, pl_str *out);
void pl_table_csv(const pl_gap_table *t, pl_str *out);
pl_json *pl_table_json(const pl_gap_table *t); /* new reference; NULL when memory is out */

/* Appends text with a backslash before what Markdown would take as its own. */
void pl_markdown_escape(const char *text, pl_str *out);

#endif
