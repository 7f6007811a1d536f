#include "results/h5_file.h"

#include <hdf5.h>
#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"
#include "results/growing_file.h"

struct pl_h5 {
  hid_t file;
  pl_growing *large;          /* holds the file; NULL: HDF5's own memory does */
  hid_t link_list;            /* makes groups on the way, names are UTF-8 */
  hid_t dataset_list;         /* no time stamps */
  hid_t text_type, bool_type; /* UTF-8 of any length; {FALSE, TRUE} */
  char failed[160];           /* what could not be built first; "" while all is well */
};

/* Memory grows by this many bytes. */
enum { INCREMENT = 1 << 16 };

/* Errors are reported by pl_h5_image, not printed by the library. */
static void be_silent(void) { (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL); }

static void note(pl_h5 *f, bool ok, const char *path, const char *name) {
  if (!ok && f->failed[0] == '\0') snprintf(f->failed, sizeof f->failed, "%s %s", path, name);
}

static bool going(const pl_h5 *f) { return f->failed[0] == '\0' && (!f->large || pl_growing_fits(f->large)); }

static hid_t make_text_type(void) {
  hid_t type = H5Tcopy(H5T_C_S1);
  if (type >= 0 && (H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0)) {
    H5Tclose(type);
    type = -1;
  }
  return type;
}

static hid_t make_bool_type(void) {
  const signed char values[2] = {0, 1};
  hid_t type = H5Tenum_create(H5T_STD_I8LE);
  if (type >= 0 && (H5Tenum_insert(type, "FALSE", &values[0]) < 0 || H5Tenum_insert(type, "TRUE", &values[1]) < 0)) {
    H5Tclose(type);
    type = -1;
  }
  return type;
}

static void *begin_memory(size_t size, H5FD_file_image_op_t why, void *large) {
  (void)why;
  return pl_growing_bytes(large, size);
}

static void *grow_memory(void *bytes, size_t size, H5FD_file_image_op_t why, void *large) {
  (void)bytes;
  (void)why;
  return pl_growing_bytes(large, size);
}

/* It is released with the file. */
static herr_t keep_memory(void *bytes, H5FD_file_image_op_t why, void *large) {
  (void)bytes;
  (void)why;
  (void)large;
  return 0;
}

static void *same_large(void *large) { return large; }

static herr_t keep_large(void *large) {
  (void)large;
  return 0;
}

static bool use_growing_file(hid_t access, pl_growing *large) {
  H5FD_file_image_callbacks_t calls = {.image_malloc = begin_memory,
                                       .image_realloc = grow_memory,
                                       .image_free = keep_memory,
                                       .udata_copy = same_large,
                                       .udata_free = keep_large,
                                       .udata = large};
  return H5Pset_file_image_callbacks(access, &calls) >= 0;
}

/* HDF5 tells files in memory apart by their names, which are stored nowhere. */
static hid_t make_file(const pl_h5 *f) {
  hid_t access = H5Pcreate(H5P_FILE_ACCESS), file = -1;
  char name[32];
  snprintf(name, sizeof name, "%p", (const void *)f);
  if (access >= 0 && H5Pset_fapl_core(access, INCREMENT, 0) >= 0 && (!f->large || use_growing_file(access, f->large)))
    file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
  if (access >= 0) H5Pclose(access);
  return file;
}

/* Takes `large`, which may be NULL. */
static pl_status create(pl_growing *large, pl_h5 **out, pl_err *e) {
  pl_h5 *f = NULL;
  *out = NULL;
  pl_status st = pl_alloc(1, sizeof *f, "an HDF5 file", &f, e);
  if (st != PL_OK) {
    pl_growing_close(large);
    return st;
  }
  f->large = large;
  be_silent();
  f->file = make_file(f);
  f->link_list = H5Pcreate(H5P_LINK_CREATE);
  f->dataset_list = H5Pcreate(H5P_DATASET_CREATE);
  f->text_type = make_text_type();
  f->bool_type = make_bool_type();
  if (f->file < 0 || f->text_type < 0 || f->bool_type < 0 || H5Pset_create_intermediate_group(f->link_list, 1) < 0 ||
      H5Pset_char_encoding(f->link_list, H5T_CSET_UTF8) < 0 || H5Pset_obj_track_times(f->dataset_list, false) < 0) {
    pl_h5_free(f);
    return pl_fail(e, PL_FAIL, "HDF5: a file in memory cannot be made (out of memory)");
  }
  *out = f;
  return PL_OK;
}

pl_status pl_h5_create(pl_h5 **out, pl_err *e) { return create(NULL, out, e); }

pl_status pl_h5_create_large(const char *path, pl_h5 **out, pl_err *e) {
  pl_growing *large = NULL;
  *out = NULL;
  pl_status st = pl_growing_open(path, &large, e);
  return st == PL_OK ? create(large, out, e) : st;
}

void pl_h5_free(pl_h5 *f) {
  if (!f) return;
  if (f->bool_type >= 0) H5Tclose(f->bool_type);
  if (f->text_type >= 0) H5Tclose(f->text_type);
  if (f->dataset_list >= 0) H5Pclose(f->dataset_list);
  if (f->link_list >= 0) H5Pclose(f->link_list);
  if (f->file >= 0) H5Fclose(f->file);
  pl_growing_close(f->large);
  pl_free(f);
}

void pl_h5_group(pl_h5 *f, const char *path) {
  if (!going(f)) return;
  hid_t group = H5Gcreate2(f->file, path, f->link_list, H5P_DEFAULT, H5P_DEFAULT);
  note(f, group >= 0, "group", path);
  if (group >= 0) H5Gclose(group);
}

/* columns 0: one-dimensional. */
static void write_dataset(pl_h5 *f, const char *path, hid_t stored, hid_t given, const void *values, size_t n,
                          size_t columns) {
  if (!going(f)) return;
  const hsize_t lengths[] = {n, columns};
  hid_t space = H5Screate_simple(columns > 0 ? 2 : 1, lengths, NULL);
  hid_t set = H5Dcreate2(f->file, path, stored, space, f->link_list, f->dataset_list, H5P_DEFAULT);
  bool ok = set >= 0 && (n == 0 || H5Dwrite(set, given, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
  note(f, ok, "dataset", path);
  if (set >= 0) H5Dclose(set);
  if (space >= 0) H5Sclose(space);
}

void pl_h5_write_ints(pl_h5 *f, const char *path, const int64_t *values, size_t n) {
  write_dataset(f, path, H5T_STD_I64LE, H5T_NATIVE_INT64, values, n, 0);
}

void pl_h5_write_numbers(pl_h5 *f, const char *path, const double *values, size_t n) {
  write_dataset(f, path, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, values, n, 0);
}

void pl_h5_write_texts(pl_h5 *f, const char *path, const char *const *values, size_t n) {
  write_dataset(f, path, f->text_type, f->text_type, values, n, 0);
}

void pl_h5_write_table(pl_h5 *f, const char *path, const double *values, size_t rows, size_t columns) {
  write_dataset(f, path, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, values, rows, columns);
}

/* In the precision that they are trained in. */
void pl_h5_write_reals(pl_h5 *f, const char *path, const pl_real *values, size_t rows, size_t columns) {
  const bool wide = sizeof *values == sizeof(double);
  write_dataset(f, path, wide ? H5T_IEEE_F64LE : H5T_IEEE_F32LE, wide ? H5T_NATIVE_DOUBLE : H5T_NATIVE_FLOAT, values,
                rows, columns);
}

/* n values; a scalar when n is SIZE_MAX. */
static void write_attribute(pl_h5 *f, const char *path, const char *name, hid_t stored, hid_t given, const void *values,
                            size_t n) {
  if (!going(f)) return;
  const hsize_t length = n;
  hid_t space = n == SIZE_MAX ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &length, NULL);
  hid_t attribute = H5Acreate_by_name(f->file, path, name, stored, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  note(f, attribute >= 0 && H5Awrite(attribute, given, values) >= 0, path, name);
  if (attribute >= 0) H5Aclose(attribute);
  if (space >= 0) H5Sclose(space);
}

void pl_h5_set_int(pl_h5 *f, const char *path, const char *name, int64_t value) {
  write_attribute(f, path, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value, SIZE_MAX);
}

void pl_h5_set_number(pl_h5 *f, const char *path, const char *name, double value) {
  write_attribute(f, path, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value, SIZE_MAX);
}

void pl_h5_set_text(pl_h5 *f, const char *path, const char *name, const char *value) {
  write_attribute(f, path, name, f->text_type, f->text_type, &value, SIZE_MAX);
}

static void set_members(pl_h5 *f, const char *path, const char *name, const pl_json *object) {
  for (void *it = pl_json_iter(object); it; it = pl_json_iter_next(object, it)) {
    pl_str dotted = {0};
    pl_str_printf(&dotted, "%s%s%s", name, name[0] ? "." : "", pl_json_iter_key(it));
    note(f, !dotted.failed, path, name);
    pl_h5_set_json(f, path, pl_str_text(&dotted), pl_json_iter_value(it));
    pl_str_free(&dotted);
  }
}

/* The one kind of all elements, or PL_JSON_NULL for a mixed or an empty list. Integers among reals count as reals. */
static pl_json_kind kind_of_all(const pl_json *list) {
  pl_json_kind kind = PL_JSON_NULL;
  for (size_t i = 0; i < pl_json_size(list); i++) {
    pl_json_kind next = pl_json_kind_of(pl_json_at(list, i));
    if (next != PL_JSON_INT && next != PL_JSON_REAL) return PL_JSON_NULL;
    if (kind != PL_JSON_REAL) kind = next;
  }
  return kind;
}

static void set_list(pl_h5 *f, const char *path, const char *name, const pl_json *list) {
  size_t n = pl_json_size(list);
  pl_json_kind kind = kind_of_all(list);
  pl_str text = {0};
  void *values = NULL;
  if (kind == PL_JSON_NULL) {
    pl_json_write_canonical(list, &text);
    note(f, !text.failed, path, name);
    pl_h5_set_text(f, path, name, pl_str_text(&text));
  } else if (pl_alloc(n, 8, "a list", &values, NULL) != PL_OK) {
    note(f, false, path, name);
  } else if (kind == PL_JSON_INT) {
    for (size_t i = 0; i < n; i++) ((int64_t *)values)[i] = pl_json_int(pl_json_at(list, i));
    write_attribute(f, path, name, H5T_STD_I64LE, H5T_NATIVE_INT64, values, n);
  } else {
    for (size_t i = 0; i < n; i++) ((double *)values)[i] = pl_json_number(pl_json_at(list, i));
    write_attribute(f, path, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, values, n);
  }
  pl_free(values);
  pl_str_free(&text);
}

void pl_h5_set_json(pl_h5 *f, const char *path, const char *name, const pl_json *value) {
  const signed char truth = pl_json_bool(value);
  switch (pl_json_kind_of(value)) {
  case PL_JSON_NULL:
    break;
  case PL_JSON_BOOL:
    write_attribute(f, path, name, f->bool_type, f->bool_type, &truth, SIZE_MAX);
    break;
  case PL_JSON_INT:
    pl_h5_set_int(f, path, name, pl_json_int(value));
    break;
  case PL_JSON_REAL:
    pl_h5_set_number(f, path, name, pl_json_number(value));
    break;
  case PL_JSON_STRING:
    pl_h5_set_text(f, path, name, pl_json_string(value));
    break;
  case PL_JSON_ARRAY:
    set_list(f, path, name, value);
    break;
  case PL_JSON_OBJECT:
    set_members(f, path, name, value);
    break;
  }
}

/* Everything that HDF5 holds back is in its memory; *size is that of the file. */
static pl_status finish(pl_h5 *f, ssize_t *size, pl_err *e) {
  if (f->failed[0] != '\0')
    return pl_fail(e, PL_FAIL, "HDF5: %s cannot be written (out of memory, or a name twice)", f->failed);
  *size = H5Fflush(f->file, H5F_SCOPE_GLOBAL) < 0 ? -1 : H5Fget_file_image(f->file, NULL, 0);
  return *size < 0 ? pl_fail(e, PL_FAIL, "HDF5: the file in memory cannot be finished (out of memory)") : PL_OK;
}

/* HDF5 still writes when it closes: that no one has it open, and where it ends, which may be before `size`. */
pl_status pl_h5_commit(pl_h5 *f, pl_err *e) {
  ssize_t size = 0;
  pl_status st = finish(f, &size, e);
  if (st != PL_OK) return st;
  bool closed = H5Fclose(f->file) >= 0;
  f->file = -1;
  return closed ? pl_growing_commit(f->large, (size_t)size, e) : pl_fail(e, PL_FAIL, "HDF5: a file cannot be closed");
}

pl_status pl_h5_image(pl_h5 *f, char **bytes, size_t *count, pl_err *e) {
  ssize_t size = 0;
  *bytes = NULL;
  *count = 0;
  pl_status st = finish(f, &size, e);
  if (st == PL_OK) st = pl_alloc((size_t)size, 1, "an HDF5 file", bytes, e);
  if (st != PL_OK) return st;
  if (H5Fget_file_image(f->file, *bytes, (size_t)size) != size) {
    pl_free(*bytes);
    *bytes = NULL;
    return pl_fail(e, PL_FAIL, "HDF5: the file in memory cannot be read back (%zd bytes)", size);
  }
  *count = (size_t)size;
  return PL_OK;
}

struct pl_h5_in {
  hid_t file;
  char *path; /* for messages */
};

static pl_status cannot_read(const pl_h5_in *f, const char *path, pl_err *e) {
  return pl_fail(e, PL_FAIL, "%s: HDF5: %s is missing, damaged or of another type", f->path, path);
}

/* Shared file systems may know no locks, and nobody writes to a collected file. */
static hid_t open_unlocked(const char *path) {
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
#if H5_VERSION_GE(1, 10, 7)
  if (access >= 0) (void)H5Pset_file_locking(access, false, true);
#endif
  hid_t file = H5Fopen(path, H5F_ACC_RDONLY, access < 0 ? H5P_DEFAULT : access);
  if (access >= 0) H5Pclose(access);
  return file;
}

pl_status pl_h5_open(const char *path, pl_h5_in **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_h5_in *f = NULL;
  *out = NULL;
  be_silent();
  PL_TRY(pl_alloc(1, sizeof *f, "an HDF5 file", &f, e));
  f->file = -1;
  PL_TRY(pl_strdup(path, &f->path, e));
  f->file = open_unlocked(path);
  if (f->file < 0) PL_TRY(pl_fail(e, PL_BAD, "%s: is no HDF5 file, or a damaged one", path));
  *out = f;
out:
  if (st != PL_OK) pl_h5_close(f);
  return st;
}

bool pl_h5_is_file(const char *path) {
  be_silent();
  return H5Fis_hdf5(path) > 0;
}

void pl_h5_close(pl_h5_in *f) {
  if (!f) return;
  if (f->file >= 0) H5Fclose(f->file);
  pl_free(f->path);
  pl_free(f);
}

bool pl_h5_has(const pl_h5_in *f, const char *path) { return H5Oexists_by_name(f->file, path, H5P_DEFAULT) > 0; }

/* Opens a dataset of a class of types with one or two dimensions. */
static hid_t open_dataset(const pl_h5_in *f, const char *path, H5T_class_t class, int rank, hsize_t lengths[2]) {
  hid_t set = H5Dopen2(f->file, path, H5P_DEFAULT);
  hid_t type = set < 0 ? -1 : H5Dget_type(set), space = set < 0 ? -1 : H5Dget_space(set);
  lengths[0] = lengths[1] = 1;
  bool ok = type >= 0 && H5Tget_class(type) == class && space >= 0 && H5Sget_simple_extent_ndims(space) == rank &&
            H5Sget_simple_extent_dims(space, lengths, NULL) == rank;
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  if (ok || set < 0) return set;
  H5Dclose(set);
  return -1;
}

/* Numbers of 8 bytes. */
static pl_status read_dataset(const pl_h5_in *f, const char *path, hid_t wanted, int rank, void **out,
                              hsize_t lengths[2], pl_err *e) {
  size_t n = 0;
  *out = NULL;
  hid_t set = open_dataset(f, path, H5Tget_class(wanted), rank, lengths);
  if (set < 0 || __builtin_mul_overflow(lengths[0], lengths[1], &n)) return cannot_read(f, path, e);
  pl_status st = pl_alloc(n, 8, path, out, e);
  if (st == PL_OK && n > 0 && H5Dread(set, wanted, H5S_ALL, H5S_ALL, H5P_DEFAULT, *out) < 0) {
    pl_free(*out);
    *out = NULL;
    st = cannot_read(f, path, e);
  }
  H5Dclose(set);
  return st;
}

pl_status pl_h5_read_ints(const pl_h5_in *f, const char *path, int64_t **out, size_t *n, pl_err *e) {
  hsize_t lengths[2];
  void *values;
  pl_status st = read_dataset(f, path, H5T_NATIVE_INT64, 1, &values, lengths, e);
  *out = values;
  *n = (size_t)lengths[0];
  return st;
}

pl_status pl_h5_read_numbers(const pl_h5_in *f, const char *path, double **out, size_t *n, pl_err *e) {
  hsize_t lengths[2];
  void *values;
  pl_status st = read_dataset(f, path, H5T_NATIVE_DOUBLE, 1, &values, lengths, e);
  *out = values;
  *n = (size_t)lengths[0];
  return st;
}

pl_status pl_h5_read_table(const pl_h5_in *f, const char *path, double **out, size_t *rows, size_t *columns,
                           pl_err *e) {
  hsize_t lengths[2];
  void *values;
  pl_status st = read_dataset(f, path, H5T_NATIVE_DOUBLE, 2, &values, lengths, e);
  *out = values;
  *rows = (size_t)lengths[0];
  *columns = (size_t)lengths[1];
  return st;
}

/* Copies the library's strings into one block. */
static pl_status keep_texts(char *const *given, size_t n, pl_h5_texts *out, pl_err *e) {
  pl_status st = PL_OK;
  size_t bytes = 0;
  for (size_t i = 0; i < n; i++) bytes += (given[i] ? strlen(given[i]) : 0) + 1;
  PL_TRY(pl_alloc(n, sizeof *out->items, "texts", &out->items, e));
  PL_TRY(pl_alloc(bytes, 1, "texts", &out->bytes, e));
  char *to = out->bytes;
  for (size_t i = 0; i < n; i++) {
    const char *text = given[i] ? given[i] : "";
    size_t size = strlen(text) + 1;
    out->items[i] = memcpy(to, text, size);
    to += size;
  }
  out->count = n;
out:
  if (st != PL_OK) pl_h5_texts_free(out);
  return st;
}

void pl_h5_texts_free(pl_h5_texts *t) {
  pl_free(t->items);
  pl_free(t->bytes);
  *t = (pl_h5_texts){0};
}

pl_status pl_h5_read_texts(const pl_h5_in *f, const char *path, pl_h5_texts *out, pl_err *e) {
  pl_status st = PL_OK;
  hsize_t lengths[2];
  char **given = NULL;
  *out = (pl_h5_texts){0};
  hid_t set = open_dataset(f, path, H5T_STRING, 1, lengths), type = make_text_type(), space = -1;
  if (set < 0 || type < 0) PL_TRY(cannot_read(f, path, e));
  const size_t n = (size_t)lengths[0];
  space = H5Dget_space(set);
  PL_TRY(pl_alloc(n, sizeof *given, path, &given, e));
  if (n > 0 && H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, given) < 0) PL_TRY(cannot_read(f, path, e));
  st = keep_texts(given, n, out, e);
  (void)H5Dvlen_reclaim(type, space, H5P_DEFAULT, given);
out:
  pl_free(given);
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  if (set >= 0) H5Dclose(set);
  return st;
}

/* Reads a scalar attribute; false when there is none of the type. */
static bool read_attribute(const pl_h5_in *f, const char *path, const char *name, H5T_class_t class, hid_t wanted,
                           void *out) {
  hid_t attribute = H5Aopen_by_name(f->file, path, name, H5P_DEFAULT, H5P_DEFAULT);
  if (attribute < 0) return false;
  hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
  bool ok = H5Tget_class(type) == class && (class != H5T_STRING || H5Tis_variable_str(type) > 0) &&
            H5Sget_simple_extent_npoints(space) == 1 && H5Aread(attribute, wanted, out) >= 0;
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  H5Aclose(attribute);
  return ok;
}

pl_status pl_h5_get_text(const pl_h5_in *f, const char *path, const char *name, char **out, pl_err *e) {
  char *given = NULL;
  hid_t type = make_text_type();
  *out = NULL;
  bool ok = type >= 0 && read_attribute(f, path, name, H5T_STRING, type, &given);
  if (type >= 0) H5Tclose(type);
  pl_status st = ok ? pl_strdup(given ? given : "", out, e) : cannot_read(f, name, e);
  if (given) H5free_memory(given);
  return st;
}

pl_status pl_h5_get_int(const pl_h5_in *f, const char *path, const char *name, int64_t *out, pl_err *e) {
  return read_attribute(f, path, name, H5T_INTEGER, H5T_NATIVE_INT64, out) ? PL_OK : cannot_read(f, name, e);
}
