/* The files of a corpus: lists of paths and glob patterns, read-only maps of their content. */
#ifndef PL_MODELS_DATA_PARTS_FILES_H
#define PL_MODELS_DATA_PARTS_FILES_H

#include <stdint.h>

#include "core/base/status.h"
#include "core/config/params.h"

/* {0} is an empty list. */
typedef struct pl_files {
  char **paths;
  size_t count;
} pl_files;

/* Appends the files that `patterns` name, in the order given; the matches of one pattern are sorted by byte value.
 * Relative paths are taken from `root`; a file whose name is literally the pattern wins over its matches. PL_BAD, with
 * `key` in the message, for a missing file, a folder and a pattern that matches nothing. On failure *out still needs
 * pl_files_free. */
PL_MUST_CHECK pl_status pl_files_add(const pl_text_list *patterns, const char *root, const char *key, pl_files *out,
                                     pl_err *e);
void pl_files_free(pl_files *f);

/* PL_BAD when one file (by device and inode) is named twice, within the first list, within the second or across them:
 * what is trained on would then be validated on, or counted double. */
PL_MUST_CHECK pl_status pl_files_check_distinct(const pl_files *train, const pl_files *val, pl_err *e);

/* A file's content, mapped read-only; bytes is NULL when it is empty. Released by pl_unmap. */
typedef struct pl_map {
  const unsigned char *bytes;
  size_t size;
} pl_map;

PL_MUST_CHECK pl_status pl_map_file(const char *path, pl_map *out, pl_err *e);
void pl_unmap(pl_map *m); /* {0} is allowed */

#endif
