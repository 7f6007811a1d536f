/* The JSON files that pipelag writes for itself. */
#ifndef PL_RESULTS_JSON_FILE_H
#define PL_RESULTS_JSON_FILE_H

#include "core/base/json.h"

/* Like pl_json_read, but PL_FAIL when the file is missing or damaged: it is not the user who wrote it. */
PL_MUST_CHECK pl_status pl_json_file_read(const char *path, pl_json **out, pl_err *e);

/* Replaces the file by the document, pretty. A NULL document stands for memory that ran out while it was built. */
PL_MUST_CHECK pl_status pl_json_file_write(const char *path, const pl_json *document, pl_err *e);

/* The same without waiting for the disk, see pl_file_replace_unsynced. */
PL_MUST_CHECK pl_status pl_json_file_write_unsynced(const char *path, const pl_json *document, pl_err *e);

#endif
