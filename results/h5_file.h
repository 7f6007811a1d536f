/* Building an HDF5 file: groups, datasets, attributes. The only door to HDF5.
 *
 * The file is built in memory, a large one in pages of the file to be (results/growing_file.h), and becomes a file on
 * the disk at once, by our own write, fsync and rename: HDF5 1.10 crashes when its own writes hit a full disk, and
 * without its files there are no locks of it on shared file systems either. Nothing in it depends on the time: the same
 * calls give the same bytes. HDF5 is not thread-safe: one thread of a process builds files. */
#ifndef PL_RESULTS_H5_FILE_H
#define PL_RESULTS_H5_FILE_H

#include "core/base/json.h"
#include "core/base/real.h"

typedef struct pl_h5 pl_h5;

PL_MUST_CHECK pl_status pl_h5_create(pl_h5 **out, pl_err *e);

/* The same for a file that may be larger than the memory that is free: what is written goes to PATH, under another name
 * until pl_h5_commit. */
PL_MUST_CHECK pl_status pl_h5_create_large(const char *path, pl_h5 **out, pl_err *e);

/* Finishes a large file, in place of pl_h5_image; the file has its name when this succeeds. */
PL_MUST_CHECK pl_status pl_h5_commit(pl_h5 *f, pl_err *e);

void pl_h5_free(pl_h5 *f); /* NULL allowed */

/* The functions below remember the first failure, and do nothing after it, until pl_h5_image reports it. Paths are from
 * the root ("train/loss"); groups on the way are made. n may be 0. */
void pl_h5_group(pl_h5 *f, const char *path);
void pl_h5_write_ints(pl_h5 *f, const char *path, const int64_t *values, size_t n);
void pl_h5_write_numbers(pl_h5 *f, const char *path, const double *values, size_t n);
void pl_h5_write_texts(pl_h5 *f, const char *path, const char *const *values, size_t n);                /* UTF-8 */
void pl_h5_write_table(pl_h5 *f, const char *path, const double *values, size_t rows, size_t columns);  /* by row */
void pl_h5_write_reals(pl_h5 *f, const char *path, const pl_real *values, size_t rows, size_t columns); /* by row */

/* Attributes of the group or dataset `path` ("/" is the root). */
void pl_h5_set_int(pl_h5 *f, const char *path, const char *name, int64_t value);
void pl_h5_set_number(pl_h5 *f, const char *path, const char *name, double value);
void pl_h5_set_text(pl_h5 *f, const char *path, const char *name, const char *value); /* UTF-8 */

/* A JSON value as an attribute: numbers, truth values (as h5py writes them) and strings as they are, lists of numbers
 * as arrays, other lists as JSON text, null not at all; an object's members under dotted names ("optimizer.lr"). */
void pl_h5_set_json(pl_h5 *f, const char *path, const char *name, const pl_json *value);

/* The whole file as bytes; *bytes is released by pl_free. PL_FAIL names what could not be built. */
PL_MUST_CHECK pl_status pl_h5_image(pl_h5 *f, char **bytes, size_t *count, pl_err *e);

/* Reading such a file; it is opened without locks and read in parts. PL_BAD when it is no HDF5 file. */
typedef struct pl_h5_in pl_h5_in;

PL_MUST_CHECK pl_status pl_h5_open(const char *path, pl_h5_in **out, pl_err *e);
void pl_h5_close(pl_h5_in *f);        /* NULL allowed */
bool pl_h5_is_file(const char *path); /* whether a file begins like one of HDF5 */
bool pl_h5_has(const pl_h5_in *f, const char *path);

/* A whole one-dimensional dataset; *out is released by pl_free. PL_FAIL when it is missing, damaged or of another type.
 */
PL_MUST_CHECK pl_status pl_h5_read_ints(const pl_h5_in *f, const char *path, int64_t **out, size_t *n, pl_err *e);
PL_MUST_CHECK pl_status pl_h5_read_numbers(const pl_h5_in *f, const char *path, double **out, size_t *n, pl_err *e);

/* One of two dimensions, by row. */
PL_MUST_CHECK pl_status pl_h5_read_table(const pl_h5_in *f, const char *path, double **out, size_t *rows,
                                         size_t *columns, pl_err *e);

typedef struct pl_h5_texts {
  const char **items;
  char *bytes; /* holds them */
  size_t count;
} pl_h5_texts;

PL_MUST_CHECK pl_status pl_h5_read_texts(const pl_h5_in *f, const char *path, pl_h5_texts *out, pl_err *e);
void pl_h5_texts_free(pl_h5_texts *t);

/* Attributes as above; *out is released by pl_free. */
PL_MUST_CHECK pl_status pl_h5_get_text(const pl_h5_in *f, const char *path, const char *name, char **out, pl_err *e);
PL_MUST_CHECK pl_status pl_h5_get_int(const pl_h5_in *f, const char *path, const char *name, int64_t *out, pl_err *e);

#endif
