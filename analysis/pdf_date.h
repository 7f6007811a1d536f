/* The date inside a PDF. */
#ifndef PL_ANALYSIS_PDF_DATE_H
#define PL_ANALYSIS_PDF_DATE_H

#include "core/base/status.h"

/* Replaces the dates of making and changing that stand in the file by `date` (2026-11-30T18:00:00Z), or blanks them out
 * when it is "". The file keeps its length, since a PDF holds offsets into itself. A file without such dates stays as
 * it is. */
PL_MUST_CHECK pl_status pl_pdf_set_date(const char *path, const char *date, pl_err *e);

#endif
