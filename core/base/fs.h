/* Files: whole reads, atomic writes, directories. */
#ifndef PL_BASE_FS_H
#define PL_BASE_FS_H

#include <stdint.h>

#include "core/base/str.h"

/* Joins with one slash; an absolute `b` stands alone. *out is released by pl_free. */
PL_MUST_CHECK pl_status pl_path_join(const char *a, const char *b, char **out, pl_err *e);

/* The folder part of a path ("." when there is none); released by pl_free. */
PL_MUST_CHECK pl_status pl_path_folder(const char *path, char **out, pl_err *e);

bool pl_path_exists(const char *path);
bool pl_path_is_folder(const char *path);

/* Makes the folder and its parents; an existing folder is fine. */
PL_MUST_CHECK pl_status pl_make_folders(const char *path, pl_err *e);

/* Removes a file, or a folder with all that is in it, as far as that goes; follows no links. */
void pl_remove_tree(const char *path);

/* Reads a whole regular file of at most `limit` bytes; *out is NUL-terminated beyond *length, released by pl_free.
 * PL_BAD when it is missing, no regular file or too large, PL_FAIL when reading breaks. */
PL_MUST_CHECK pl_status pl_file_read(const char *path, size_t limit, char **out, size_t *length, pl_err *e);

/* Replaces the file by write to PATH.tmp.PID, fsync, rename, fsync of the folder: readers see the old content or the
 * new. */
PL_MUST_CHECK pl_status pl_file_replace(const char *path, const void *bytes, size_t count, pl_err *e);

/* The same without the fsync of the folder: after a power cut the file may be the old one, but it is whole. For files
 * of a folder that is synced later. */
PL_MUST_CHECK pl_status pl_file_replace_whole(const char *path, const void *bytes, size_t count, pl_err *e);

/* Waits until what was written to the file, or the names in the folder, are on the disk. */
PL_MUST_CHECK pl_status pl_path_sync(const char *path, pl_err *e);

/* pl_file_replace without waiting for the disk: for many small files, made durable together by one pl_sync_all of their
 * folder. */
PL_MUST_CHECK pl_status pl_file_replace_unsynced(const char *path, const void *bytes, size_t count, pl_err *e);
PL_MUST_CHECK pl_status pl_sync_all(const char *folder, pl_err *e);

/* write(2) until all is written; PL_FAIL names `path`. */
PL_MUST_CHECK pl_status pl_write_all(int fd, const void *bytes, size_t count, const char *path, pl_err *e);

#endif
