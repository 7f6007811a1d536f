/* A JSON file that lists runs: their files and settings, or their final figures alone. */
#include <stdio.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/import_run.h"

enum { MOST_FILES = 256, WHERE = 512 };

typedef struct manifest {
  pl_import *import;
  const char *path;
  char *folder;
  pl_json *document;
  pl_json *base; /* the caller's settings under those of the file */
  pl_import_map map;
  pl_curve_format format;
} manifest;

static pl_status check_keys(const pl_json *object, const char *const *allowed, const char *where, pl_err *e) {
  size_t count = 0;
  while (allowed[count]) count++;
  if (pl_json_kind_of(object) != PL_JSON_OBJECT) return pl_fail(e, PL_BAD, "%s: must be an object", where);
  for (void *it = pl_json_iter(object); it; it = pl_json_iter_next(object, it)) {
    const char *key = pl_json_iter_key(it);
    size_t i = 0;
    while (i < count && strcmp(allowed[i], key) != 0) i++;
    if (i < count) continue;
    pl_str names = {0};
    for (i = 0; i < count; i++) pl_str_printf(&names, "%s%s", i > 0 ? ", " : "", allowed[i]);
    size_t near = pl_nearest(key, allowed, count);
    pl_fail(e, PL_BAD, "%s: unknown key \"%s\"%s%s%s; allowed: %s", where, key,
            near == SIZE_MAX ? "" : "; did you mean \"", near == SIZE_MAX ? "" : allowed[near],
            near == SIZE_MAX ? "" : "\"?", pl_str_text(&names));
    pl_str_free(&names);
    return PL_BAD;
  }
  return PL_OK;
}

static pl_status read_map(const pl_json *object, const char *where, pl_import_map *map, pl_err *e) {
  pl_status st = PL_OK;
  if (object && pl_json_kind_of(object) != PL_JSON_OBJECT)
    return pl_fail(e, PL_BAD, "%s.map: must be an object, as in {\"val/loss\": \"eval_loss\"}", where);
  for (void *it = pl_json_iter(object); it && st == PL_OK; it = pl_json_iter_next(object, it)) {
    const char *column = pl_json_string(pl_json_iter_value(it));
    if (!column) return pl_fail(e, PL_BAD, "%s.map.%s: must be the name of a column", where, pl_json_iter_key(it));
    st = pl_import_map_set(map, pl_json_iter_key(it), column, where, e);
  }
  return st;
}

static pl_status read_format(const pl_json *value, const char *where, pl_curve_format *out, pl_err *e) {
  const char *word = pl_json_string(value);
  char shown[80];
  if (!value || (word && pl_curve_format_find(word, out))) return PL_OK;
  return pl_fail(e, PL_BAD, "%s.format: saw %s; allowed: auto, csv, jsonl, tensorboard, llmc, nanogpt", where,
                 pl_json_show(value, shown));
}

/* A name, or a list of names, relative to the manifest. */
static pl_status read_paths(const manifest *m, const pl_json *file, const char *where, char **paths, size_t *count,
                            pl_err *e) {
  bool list = pl_json_kind_of(file) == PL_JSON_ARRAY;
  size_t n = !file ? 0 : list ? pl_json_size(file) : 1;
  if (n > MOST_FILES) return pl_fail(e, PL_BAD, "%s.file: has %zu files; allowed: at most %d", where, n, MOST_FILES);
  for (size_t i = 0; i < n; i++) {
    const char *name = pl_json_string(list ? pl_json_at(file, i) : file);
    if (!name || name[0] == '\0') return pl_fail(e, PL_BAD, "%s.file: must be a path, or a list of paths", where);
    pl_status st = pl_path_join(m->folder, name, &paths[*count], e);
    if (st != PL_OK) return st;
    ++*count;
  }
  return PL_OK;
}

static pl_status add_run(const manifest *m, const pl_json *run, const char *where, pl_err *e) {
  static const char *const keys[] = {"file", "config", "map", "format", "final", NULL};
  pl_status st = PL_OK;
  char *paths[MOST_FILES];
  size_t count = 0;
  pl_import_spec spec = {.map = m->map, .format = m->format, .manifest = m->path, .where = where, .base = m->base};
  PL_TRY(check_keys(run, keys, where, e));
  PL_TRY(read_paths(m, pl_json_get(run, "file"), where, paths, &count, e));
  PL_TRY(read_map(pl_json_get(run, "map"), where, &spec.map, e));
  PL_TRY(read_format(pl_json_get(run, "format"), where, &spec.format, e));
  spec.paths = (const char *const *)paths;
  spec.path_count = count;
  spec.config = pl_json_get(run, "config");
  spec.final = pl_json_get(run, "final");
  if (count == 0 && !spec.final)
    PL_TRY(
        pl_fail(e, PL_BAD, "%s: has neither \"file\" nor \"final\"; allowed: curves, final figures, or both", where));
  PL_TRY(pl_import_add(m->import, &spec, e));
out:
  for (size_t i = 0; i < count; i++) pl_free(paths[i]);
  return st;
}

/* Settings of the command line win over those that the file gives for all its runs. */
static pl_status read_base(manifest *m, const pl_json *settings, pl_err *e) {
  pl_status st = PL_OK;
  m->base = pl_json_new_object();
  if (!m->base) return pl_fail(e, PL_FAIL, "%s: out of memory", m->path);
  PL_TRY(pl_imported_merge(m->base, pl_json_get(m->document, "base"), m->path, e));
  PL_TRY(pl_imported_merge(m->base, settings, "run", e));
out:
  return st;
}

static pl_status read_runs(const manifest *m, pl_err *e) {
  const pl_json *runs = pl_json_get(m->document, "runs");
  char where[WHERE];
  if (pl_json_kind_of(runs) != PL_JSON_ARRAY || pl_json_size(runs) == 0)
    return pl_fail(e, PL_BAD, "%s: has no list \"runs\"", m->path);
  for (size_t i = 0; i < pl_json_size(runs); i++) {
    snprintf(where, sizeof where, "%s: runs[%zu]", m->path, i);
    pl_status st = add_run(m, pl_json_at(runs, i), where, e);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

pl_status pl_import_add_manifest(pl_import *import, const char *path, const pl_json *settings, const pl_import_map *map,
                                 char **name, pl_err *e) {
  static const char *const keys[] = {"name", "notes", "base", "map", "format", "runs", NULL};
  pl_status st = PL_OK;
  manifest m = {.import = import, .path = path, .map = *map};
  PL_TRY(pl_json_read(path, &m.document, e));
  PL_TRY(pl_path_folder(path, &m.folder, e));
  PL_TRY(check_keys(m.document, keys, path, e));
  PL_TRY(read_base(&m, settings, e));
  PL_TRY(read_map(pl_json_get(m.document, "map"), path, &m.map, e));
  PL_TRY(read_format(pl_json_get(m.document, "format"), path, &m.format, e));
  if (!*name && pl_json_get_string(m.document, "name", NULL))
    PL_TRY(pl_strdup(pl_json_get_string(m.document, "name", ""), name, e));
  PL_TRY(read_runs(&m, e));
out:
  pl_json_release(m.base);
  pl_json_release(m.document);
  pl_free(m.folder);
  return st;
}
