/* The files of a report's folder: what is written now, and what an earlier report left. */
#ifndef PL_ANALYSIS_REPORT_FILES_H
#define PL_ANALYSIS_REPORT_FILES_H

#include <stdint.h>

#include "core/base/str.h"

typedef struct pl_report_file {
  char *name; /* below the folder: "plots/loss_curves.svg" */
  uint64_t hash;
} pl_report_file;

/* {0} with folder and say is empty; released by pl_report_files_free. */
typedef struct pl_report_files {
  const char *folder;
  void (*say)(void *self, const char *line); /* may be NULL */
  void *say_self;
  pl_report_file *list;
  size_t count, capacity;
} pl_report_files;

/* Writes a file below the folder, whose parent exists; `content` may have failed, which is an error then. */
PL_MUST_CHECK pl_status pl_report_file_write(pl_report_files *f, const char *name, const pl_str *content, pl_err *e);

/* Notes a file that somebody else wrote there. */
PL_MUST_CHECK pl_status pl_report_file_note(pl_report_files *f, const char *name, pl_err *e);

/* Removes the files that files.txt names, that are not in the list and that have not changed since they were written,
 * and writes files.txt anew. */
PL_MUST_CHECK pl_status pl_report_files_close(pl_report_files *f, pl_err *e);
void pl_report_files_free(pl_report_files *f);

/* Formats one line for `say`. */
void pl_report_say(const pl_report_files *f, const char *format, ...) PL_PRINTF(2, 3);

#endif
