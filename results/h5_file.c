#include "results/h5_file.h"

#include <hdf5.h>
#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"

struct pl_h5 {
  hid_t file;
  hid_t link_list;            /* makes groups on the way, names are UTF-8 */
  hid_t dataset_list;         /* no time stamps */
  hid_t text_type, bool_type; /* UTF-8 of any length; {FALSE, TRUE} */
  char failed[160];           /* what could not be built first; "" while all is well */
};

/* Memory grows by this many bytes. */
enum { INCREMENT = 1 << 20 };

/* Errors are reported by pl_h5_image, not printed by the library. */
static void be_silent(void) { (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL); }

static void note(pl_h5 *f, bool ok, const char *path, const char *name) {
  if (!ok && f->failed[0] == '\0') snprintf(f->failed, sizeof f->failed, "%s %s", path, name);
}

static bool going(const pl_h5 *f) { return f->failed[0] == '\0'; }

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

/* HDF5 tells files in memory apart by their names, which are stored nowhere. */
static hid_t make_file(const pl_h5 *f) {
  hid_t access = H5Pcreate(H5P_FILE_ACCESS), file = -1;
  char name[32];
  snprintf(name, sizeof name, "%p", (const void *)f);
  if (access >= 0 && H5Pset_fapl_core(access, INCREMENT, 0) >= 0)
    file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
  if (access >= 0) H5Pclose(access);
  return file;
}

pl_status pl_h5_create(pl_h5 **out, pl_err *e) {
  pl_h5 *f = NULL;
  *out = NULL;
  pl_status st = pl_alloc(1, sizeof *f, "an HDF5 file", &f, e);
  if (st != PL_OK) return st;
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

void pl_h5_free(pl_h5 *f) {
  if (!f) return;
  if (f->bool_type >= 0) H5Tclose(f->bool_type);
  if (f->text_type >= 0) H5Tclose(f->text_type);
  if (f->dataset_list >= 0) H5Pclose(f->dataset_list);
  if (f->link_list >= 0) H5Pclose(f->link_list);
  if (f->file >= 0) H5Fclose(f->file);
  pl_free(f);
}

void pl_h5_group(pl_h5 *f, const char *path) {
  if (!going(f)) return;
  hid_t group = H5Gcreate2(f->file, path, f->link_list, H5P_DEFAULT, H5P_DEFAULT);
  note(f, group >= 0, "group", path);
  if (group >= 0) H5Gclose(group);
}

static void write_dataset(pl_h5 *f, const char *path, hid_t stored, hid_t given, const void *values, size_t n) {
  if (!going(f)) return;
  const hsize_t length = n;
  hid_t space = H5Screate_simple(1, &length, NULL);
  hid_t set = H5Dcreate2(f->file, path, stored, space, f->link_list, f->dataset_list, H5P_DEFAULT);
  bool ok = set >= 0 && (n == 0 || H5Dwrite(set, given, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
  note(f, ok, "dataset", path);
  if (set >= 0) H5Dclose(set);
  if (space >= 0) H5Sclose(space);
}

void pl_h5_write_ints(pl_h5 *f, const char *path, const int64_t *values, size_t n) {
  write_dataset(f, path, H5T_STD_I64LE, H5T_NATIVE_INT64, values, n);
}

void pl_h5_write_numbers(pl_h5 *f, const char *path, const double *values, size_t n) {
  write_dataset(f, path, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, values, n);
}

void pl_h5_write_texts(pl_h5 *f, const char *path, const char *const *values, size_t n) {
  write_dataset(f, path, f->text_type, f->text_type, values, n);
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

pl_status pl_h5_image(pl_h5 *f, char **bytes, size_t *count, pl_err *e) {
  *bytes = NULL;
  *count = 0;
  if (!going(f)) return pl_fail(e, PL_FAIL, "HDF5: %s cannot be written (out of memory, or a name twice)", f->failed);
  ssize_t size = H5Fflush(f->file, H5F_SCOPE_GLOBAL) < 0 ? -1 : H5Fget_file_image(f->file, NULL, 0);
  if (size < 0) return pl_fail(e, PL_FAIL, "HDF5: the file in memory cannot be finished (out of memory)");
  pl_status st = pl_alloc((size_t)size, 1, "an HDF5 file", bytes, e);
  if (st != PL_OK) return st;
  if (H5Fget_file_image(f->file, *bytes, (size_t)size) != size) {
    pl_free(*bytes);
    *bytes = NULL;
    return pl_fail(e, PL_FAIL, "HDF5: the file in memory cannot be read back (%zd bytes)", size);
  }
  *count = (size_t)size;
  return PL_OK;
}
