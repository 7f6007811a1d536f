/* Sentences for the reader: warnings, and legends of tables. */
#ifndef PL_ANALYSIS_NOTES_H
#define PL_ANALYSIS_NOTES_H

#include "core/base/status.h"

/* {0} is empty; released by pl_notes_free. */
typedef struct pl_notes {
  char **texts;
  size_t count, capacity;
} pl_notes;

PL_MUST_CHECK pl_status pl_note(pl_notes *n, pl_err *e, const char *format, ...) PL_PRINTF(3, 4);
void pl_notes_free(pl_notes *n);

#endif
