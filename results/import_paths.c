/* The files of a run that is imported. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "results/import_run.h"

#define FILE_LIMIT ((size_t)4 << 30)

typedef pl_status (*read_function)(const pl_import_text *in, pl_import_table *t, pl_err *e);

static const read_function readers[PL_FORMATS] = {[PL_FORMAT_CSV] = pl_import_csv,
                                                  [PL_FORMAT_JSONL] = pl_import_jsonl,
                                                  [PL_FORMAT_TENSORBOARD] = pl_import_tensorboard,
                                                  [PL_FORMAT_LLMC] = pl_import_llmc,
                                                  [PL_FORMAT_NANOGPT] = pl_import_nanogpt};

static pl_status add_source(pl_import_run *run, const char *path, uint64_t hash, const char *format, pl_err *e) {
  char hex[PL_ID_SIZE];
  pl_json *source = pl_json_new_object();
  pl_hash_hex(hash, hex);
  bool ok = pl_json_set(source, "file", pl_json_new_string(path)) &&
            pl_json_set(source, "hash", pl_json_new_string(hex)) &&
            pl_json_set(source, "format", pl_json_new_string(format));
  ok = pl_json_append(run->sources, source) && ok;
  return ok ? PL_OK : pl_fail(e, PL_FAIL, "%s: out of memory", path);
}

static pl_status read_file(pl_import_run *run, const pl_import_spec *spec, const char *path, pl_err *e) {
  pl_status st = PL_OK;
  pl_import_text in = {.path = path, .map = &spec->map};
  PL_TRY(pl_file_read(path, FILE_LIMIT, &in.bytes, &in.length, e));
  pl_curve_format format = spec->format == PL_FORMAT_AUTO ? pl_import_guess(&in) : spec->format;
  PL_TRY(add_source(run, path, pl_hash(in.bytes, in.length), pl_curve_format_name(format), e));
  PL_TRY(readers[format](&in, &run->table, e));
out:
  pl_free(in.bytes);
  return st;
}

static int is_event_file(const struct dirent *entry) { return strstr(entry->d_name, "tfevents") != NULL; }

/* Their names begin with the time, so that they are read in the order of writing. */
static pl_status read_folder(pl_import_run *run, const pl_import_spec *spec, const char *path, pl_err *e) {
  struct dirent **entries = NULL;
  int count = scandir(path, &entries, is_event_file, alphasort);
  pl_status st = PL_OK;
  if (count <= 0)
    st = pl_fail(e, PL_BAD, "%s: is a folder without event files of TensorBoard; allowed: a file, or such a folder",
                 path);
  for (int i = 0; i < count && st == PL_OK; i++) {
    char *file = NULL;
    st = pl_path_join(path, entries[i]->d_name, &file, e);
    if (st == PL_OK) st = read_file(run, spec, file, e);
    pl_free(file);
  }
  for (int i = 0; i < count; i++) free(entries[i]);
  free(entries);
  return st;
}

/* A run without a file is what its manifest says. */
static pl_status note_manifest(pl_import_run *run, const pl_import_spec *spec, pl_err *e) {
  char *bytes = NULL;
  size_t length;
  if (!spec->manifest) return PL_OK;
  pl_status st = pl_file_read(spec->manifest, FILE_LIMIT, &bytes, &length, e);
  if (st == PL_OK) st = add_source(run, spec->manifest, pl_hash(bytes, length), "manifest", e);
  pl_free(bytes);
  return st;
}

static pl_status missing_column(const pl_import_spec *spec, const pl_import_table *t, size_t column, pl_err *e) {
  const char *name = pl_import_column_name(column), *mapped = spec->map.columns[column];
  return pl_fail(e, PL_BAD, "%s: nothing in it is %s%s%s%s; saw %s; allowed: --map %s=NAME, with a name from there",
                 spec->paths[0], name, mapped ? " (mapped to \"" : "", mapped ? mapped : "", mapped ? "\")" : "",
                 t->seen && t->seen->length > 0 ? t->seen->text : "no names", name);
}

static pl_status check_columns(const pl_import_spec *spec, const pl_import_table *t, pl_err *e) {
  bool loss = pl_json_get(spec->final, "final_val_loss") != NULL || t->found[PL_SERIES_val_loss];
  for (size_t i = 0; i < PL_IMPORT_COLUMNS; i++)
    if (spec->map.columns[i] && !t->found[i] && i != PL_IMPORT_STEP) return missing_column(spec, t, i, e);
  return loss ? PL_OK : missing_column(spec, t, PL_SERIES_val_loss, e);
}

pl_status pl_import_read_paths(pl_import_run *run, const pl_import_spec *spec, pl_err *e) {
  pl_status st = PL_OK;
  pl_str seen = {0};
  run->table.seen = &seen;
  run->sources = pl_json_new_array();
  if (!run->sources) PL_TRY(pl_fail(e, PL_FAIL, "%s: out of memory", spec->where));
  for (size_t i = 0; i < spec->path_count; i++)
    PL_TRY(pl_path_is_folder(spec->paths[i]) ? read_folder(run, spec, spec->paths[i], e)
                                             : read_file(run, spec, spec->paths[i], e));
  if (spec->path_count == 0)
    PL_TRY(note_manifest(run, spec, e));
  else
    PL_TRY(check_columns(spec, &run->table, e));
  pl_import_table_settle(&run->table);
out:
  run->table.seen = NULL;
  pl_str_free(&seen);
  return st;
}
