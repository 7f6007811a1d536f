/* Writing imported runs into their directory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/catalog.h"
#include "results/curves_image.h"
#include "results/import_run.h"
#include "results/json_file.h"
#include "results/sweep_dir.h"

typedef struct commit {
  pl_import *import;
  const char *dir;
  char *name;
  bool *known;    /* of each run */
  size_t written; /* runs before this one may have a folder */
  pl_runs_list list;
} commit;

/* The hashes of the files; a manifest is told by the figures. */
static void append_hashes(const pl_json *sources, pl_str *out) {
  for (size_t i = 0; i < pl_json_size(sources); i++) {
    const pl_json *s = pl_json_at(sources, i);
    if (strcmp(pl_json_get_string(s, "format", ""), "manifest") == 0) continue;
    pl_str_printf(out, "%s; ", pl_json_get_string(s, "hash", ""));
  }
}

static void append_source(const pl_json *provenance, pl_str *out) {
  const pl_json *sources = pl_json_get(provenance, "sources"), *first = pl_json_at(sources, 0);
  pl_str_printf(out, "%s", pl_json_get_string(first, "file", "its settings"));
  if (pl_json_size(sources) > 1) pl_str_printf(out, " and %zu more", pl_json_size(sources) - 1);
  pl_str_append(out, " (");
  append_hashes(sources, out);
  pl_str_printf(out, "figures %s)", pl_json_get_string(provenance, "figures", "unknown"));
}

static bool same_source(const pl_json *a, const pl_json *b) {
  pl_str x = {0}, y = {0};
  append_hashes(pl_json_get(a, "sources"), &x);
  append_hashes(pl_json_get(b, "sources"), &y);
  bool same = !x.failed && !y.failed && strcmp(pl_str_text(&x), pl_str_text(&y)) == 0 &&
              strcmp(pl_json_get_string(a, "figures", ""), pl_json_get_string(b, "figures", "-")) == 0;
  pl_str_free(&x);
  pl_str_free(&y);
  return same;
}

static pl_status refuse_changed(const pl_import_run *run, const pl_json *old, const pl_json *new, pl_err *e) {
  char hex[PL_ID_SIZE];
  pl_str from = {0}, to = {0};
  pl_hash_hex(run->id, hex);
  append_source(old, &from);
  append_source(new, &to);
  pl_status st = pl_fail(e, PL_BAD,
                         "%s: run %s was imported from %s; now it would be %s; other results need another "
                         "configuration or directory",
                         run->where, hex, pl_str_text(&from), pl_str_text(&to));
  pl_str_free(&from);
  pl_str_free(&to);
  return st;
}

/* A run that is listed and has its result was imported before: from the same, or it is refused. */
static pl_status check_known(const commit *c, const pl_import_run *run, bool *known, pl_err *e) {
  pl_status st = PL_OK;
  char *path = NULL;
  pl_json *meta = NULL, *now = NULL;
  pl_result result;
  bool listed = false;
  *known = false;
  for (size_t i = 0; i < c->list.count && !listed; i++) listed = c->list.ids[i] == run->id;
  if (!listed) goto out;
  st = pl_run_read_result(c->dir, run->id, &result, e);
  if (st == PL_NOTHING) {
    st = PL_OK;
    goto out;
  }
  if (st != PL_OK) goto out;
  PL_TRY(pl_run_path(c->dir, run->id, "meta.json", &path, e));
  PL_TRY(pl_json_file_read(path, &meta, e));
  now = pl_import_provenance(run);
  if (!now) PL_TRY(pl_fail(e, PL_FAIL, "%s: out of memory", run->where));
  *known = same_source(pl_json_get(meta, PL_IMPORTED_KEY), now);
  if (!*known) st = refuse_changed(run, pl_json_get(meta, PL_IMPORTED_KEY), now, e);
out:
  pl_json_release(now);
  pl_json_release(meta);
  pl_free(path);
  return st;
}

/* All files are made durable together at the end. */
static pl_status write_file(const commit *c, const pl_import_run *run, const char *file, const char *bytes,
                            size_t count, pl_err *e) {
  char *path = NULL;
  pl_status st = pl_run_path(c->dir, run->id, file, &path, e);
  if (st == PL_OK) st = pl_file_replace_unsynced(path, bytes, count, e);
  pl_free(path);
  return st;
}

static pl_status write_json(const commit *c, const pl_import_run *run, const char *file, const pl_json *document,
                            pl_err *e) {
  pl_str text = {0};
  pl_json_write_pretty(document, &text);
  pl_status st = pl_str_check(&text, e);
  if (st == PL_OK) st = write_file(c, run, file, pl_str_text(&text), text.length, e);
  pl_str_free(&text);
  return st;
}

static pl_status write_meta(const commit *c, const pl_import_run *run, pl_err *e) {
  pl_json *meta = pl_json_new_object();
  bool ok = meta && pl_json_set(meta, PL_IMPORTED_KEY, pl_import_provenance(run));
  pl_status st = ok ? write_json(c, run, "meta.json", meta, e) : pl_fail(e, PL_FAIL, "%s: out of memory", run->where);
  pl_json_release(meta);
  return st;
}

/* The full configuration, which pl_imported_read takes again, with what was noted of the curve. */
static pl_json *config_document(const pl_import_run *run) {
  pl_json *config = pl_run_config_dump(pl_imported_config(run->imported));
  const pl_json *hints = pl_json_get(run->document, PL_IMPORTED_KEY);
  return pl_json_keep(config, config && pl_json_set(config, PL_IMPORTED_KEY, pl_json_retain(hints)));
}

static pl_status write_curve(const commit *c, pl_import_run *run, const pl_json *config, pl_err *e) {
  pl_status st = PL_OK;
  char *journal = NULL, *bytes = NULL;
  pl_journal *j = NULL;
  pl_curve curve = {0};
  size_t count;
  PL_TRY(pl_run_path(c->dir, run->id, "journal", &journal, e));
  unlink(journal); /* of an import that was killed */
  if (run->table.count == 0) goto out;
  PL_TRY(pl_import_spill_get(c->import->spill, &run->table, run->rows_at, e));
  PL_TRY(pl_journal_open(journal, &j, e));
  for (size_t i = 0; i < run->table.count; i++) PL_TRY(pl_journal_write(j, &run->table.rows[i].point, e));
  PL_TRY(pl_curve_read(journal, &curve, e));
  PL_TRY(pl_curves_image(&curve, config, run->id, &bytes, &count, e));
  PL_TRY(write_file(c, run, "curves.h5", bytes, count, e));
out:
  pl_curve_free(&curve);
  pl_journal_close(j);
  pl_import_table_free(&run->table);
  pl_free(bytes);
  pl_free(journal);
  return st;
}

static pl_status write_run(const commit *c, pl_import_run *run, pl_err *e) {
  pl_status st = PL_OK;
  char *folder = NULL;
  pl_json *config = config_document(run);
  if (!config) PL_TRY(pl_fail(e, PL_FAIL, "%s: out of memory", run->where));
  PL_TRY(pl_run_path(c->dir, run->id, "", &folder, e));
  PL_TRY(pl_make_folders(folder, e));
  PL_TRY(write_json(c, run, "config.json", config, e));
  PL_TRY(write_meta(c, run, e));
  PL_TRY(write_curve(c, run, config, e));
  PL_TRY(pl_run_write_result(c->dir, run->id, run->state, &run->outcome, NULL, e));
out:
  pl_json_release(config);
  pl_free(folder);
  return st;
}

/* Folders of runs that are not listed are nobody's. */
static void take_back(const commit *c) {
  for (size_t i = 0; i < c->written; i++) {
    char *folder;
    if (c->known[i] || pl_run_path(c->dir, c->import->runs[i].id, "", &folder, NULL) != PL_OK) continue;
    pl_remove_tree(folder);
    pl_free(folder);
  }
}

/* Of a new directory: the name that was given, or that of its folder. */
static pl_status name_it(commit *c, const char *name, pl_err *e) {
  pl_json *newest;
  pl_str path = {0};
  int next;
  pl_status st = pl_sweep_dir_newest(c->dir, &newest, &next, e);
  if (st != PL_OK) return st;
  size_t length = strlen(c->dir);
  while (length > 1 && c->dir[length - 1] == '/') length--;
  pl_str_append_bytes(&path, c->dir, length);
  const char *folder = path.text ? strrchr(path.text, '/') : NULL;
  if (newest)
    name = pl_json_get_string(newest, "name", "");
  else if (!name)
    name = folder ? folder + 1 : pl_str_text(&path);
  st = pl_strdup(name, &c->name, e);
  pl_str_free(&path);
  pl_json_release(newest);
  return st;
}

/* The runs of one freeze are the current ones, so that those of earlier imports are named again. */
static pl_status freeze(const commit *c, bool with_new, pl_err *e) {
  pl_status st = PL_OK;
  pl_freeze *f = NULL;
  uint64_t index;
  pl_json *document = pl_json_new_object();
  if (!pl_json_set(document, PL_IMPORTED_KEY, pl_json_new_bool(true)))
    PL_TRY(pl_fail(e, PL_FAIL, "%s: out of memory", c->dir));
  PL_TRY(pl_freeze_begin(c->dir, c->name, document, ".", &f, e));
  for (size_t i = 0; i < c->list.count; i++) PL_TRY(pl_freeze_add(f, c->list.ids[i], c->list.labels[i], &index, e));
  for (size_t i = 0; with_new && i < c->import->count; i++)
    PL_TRY(pl_freeze_add(f, c->import->runs[i].id, c->import->runs[i].label, &index, e));
  PL_TRY(pl_freeze_commit(f, e));
out:
  pl_freeze_end(f);
  pl_json_release(document);
  return st;
}

/* The directory is made ours first and the runs are listed last: until then nobody sees them. */
static pl_status write_all(commit *c, pl_import_counts *counts, pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(freeze(c, false, e));
  for (size_t i = 0; i < c->import->count; i++) {
    if (c->known[i]) continue;
    c->written = i + 1;
    PL_TRY(write_run(c, &c->import->runs[i], e));
    counts->added++;
  }
  PL_TRY(pl_sync_all(c->dir, e));
  PL_TRY(freeze(c, true, e));
out:
  if (st != PL_OK) take_back(c);
  return st;
}

pl_status pl_import_commit(pl_import *m, const char *dir, const char *name, pl_import_counts *counts, pl_err *e) {
  pl_status st = PL_OK;
  commit c = {.import = m, .dir = dir};
  *counts = (pl_import_counts){0};
  PL_TRY(pl_alloc(m->count, sizeof *c.known, "imported runs", &c.known, e));
  PL_TRY(pl_runs_list_read(dir, &c.list, e));
  PL_TRY(name_it(&c, name, e));
  for (size_t i = 0; i < m->count; i++) {
    PL_TRY(check_known(&c, &m->runs[i], &c.known[i], e));
    counts->known += c.known[i];
  }
  if (counts->known < m->count) st = write_all(&c, counts, e);
out:
  pl_runs_list_free(&c.list);
  pl_free(c.known);
  pl_free(c.name);
  return st;
}
