/* What the dataset tests share: a folder of small files, and datasets opened from JSON parameters. */
#ifndef PL_TESTS_UNIT_DATA_FILES_H
#define PL_TESTS_UNIT_DATA_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/config/run_config.h"
#include "core/train/dataset.h"

extern const pl_dataset_type pl_dataset_bytes, pl_dataset_none, pl_dataset_synthetic, pl_dataset_tokens;

/* cmocka's state of each test: an empty folder. */
typedef struct folder {
  char path[64];
  char file[400]; /* of the latest in_folder */
} folder;

static inline int make_folder(void **state) {
  folder *f = calloc(1, sizeof *f);
  if (!f) return -1;
  strcpy(f->path, "/tmp/pl_data_XXXXXX");
  *state = f;
  return mkdtemp(f->path) ? 0 : -1;
}

static inline const char *in_folder(folder *f, const char *name) {
  snprintf(f->file, sizeof f->file, "%s/%s", f->path, name);
  return f->file;
}

static inline int remove_folder(void **state) {
  folder *f = *state;
  DIR *d = opendir(f->path);
  for (struct dirent *item; d && (item = readdir(d));)
    if (item->d_name[0] != '.') unlink(in_folder(f, item->d_name));
  if (d) closedir(d);
  rmdir(f->path);
  free(f);
  return 0;
}

static inline void write_file(folder *f, const char *name, const void *bytes, size_t count) {
  FILE *file = fopen(in_folder(f, name), "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, count, file), count);
  assert_int_equal(fclose(file), 0);
}

/* Scrambled bytes: 9 in a row tell where they come from. */
static inline unsigned char text_byte(size_t i) {
  uint64_t x = (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
  return (unsigned char)((x ^ x >> 29) * UINT64_C(0xBF58476D1CE4E5B9) >> 56);
}

static inline void write_text_file(folder *f, const char *name, size_t from, size_t count) {
  unsigned char *text = malloc(count + 1);
  assert_non_null(text);
  for (size_t i = 0; i < count; i++) text[i] = text_byte(from + i);
  write_file(f, name, text, count);
  free(text);
}

typedef struct opened {
  const pl_dataset_type *type;
  pl_dataset *set;
  pl_err e;
} opened;

/* Opens a dataset from JSON with ' for ". Relative paths are taken from the folder. */
static inline pl_status open_with(folder *f, const pl_dataset_type *type, const char *json, size_t context,
                                  int64_t val_tokens, opened *o) {
  static _Alignas(16) unsigned char config[PL_SECTION_SIZE];
  char text[1024];
  pl_json *object = NULL;
  *o = (opened){.type = type};
  snprintf(text, sizeof text, "%s", json);
  for (char *c = text; *c; c++)
    if (*c == '\'') *c = '"';
  assert_int_equal(pl_json_parse(text, strlen(text), "test", &object, &o->e), PL_OK);
  pl_params_defaults(type->base.params, config);
  pl_status st = PL_OK;
  for (void *it = pl_json_iter(object); it && st == PL_OK; it = pl_json_iter_next(object, it)) {
    size_t row = pl_params_find(type->base.params, pl_json_iter_key(it));
    assert_true(row != SIZE_MAX);
    st = pl_param_set(&type->base.params[row], config, pl_json_iter_value(it), pl_json_iter_key(it), &o->e);
  }
  if (st == PL_OK && type->base.check) st = type->base.check(config, &o->e);
  if (st == PL_OK) st = type->open(config, f ? f->path : ".", context, val_tokens, &o->set, &o->e);
  pl_json_release(object);
  return st;
}

static inline void must_open(folder *f, const pl_dataset_type *type, const char *json, size_t context,
                             int64_t val_tokens, opened *o) {
  pl_status st = open_with(f, type, json, context, val_tokens, o);
  if (st != PL_OK) fail_msg("%s", o->e.text);
}

/* The open is refused as bad, with `part` in one sentence of one line. */
static inline void must_refuse(folder *f, const pl_dataset_type *type, const char *json, size_t context,
                               int64_t val_tokens, const char *part) {
  opened o;
  assert_int_equal(open_with(f, type, json, context, val_tokens, &o), PL_BAD);
  if (!strstr(o.e.text, part)) fail_msg("\"%s\" lacks \"%s\"", o.e.text, part);
  assert_null(strchr(o.e.text, '\n'));
  assert_null(o.set);
}

static inline void close_opened(opened *o) { o->type->close(o->set); }

#endif
