#include "results/import.h"

#include <string.h>

#include "core/base/memory.h"
#include "results/import_run.h"

pl_status pl_import_begin(pl_import **out, pl_err *e) {
  pl_status st = pl_alloc(1, sizeof(pl_import), "imported runs", out, e);
  if (st != PL_OK) return st;
  st = pl_import_spill_open(&(*out)->spill, e);
  if (st == PL_OK) return PL_OK;
  pl_import_end(*out);
  *out = NULL;
  return st;
}

void pl_import_run_free(pl_import_run *run) {
  pl_import_table_free(&run->table);
  pl_imported_free(run->imported);
  pl_json_release(run->document);
  pl_json_release(run->sources);
  pl_free(run->label);
  pl_free(run->where);
}

void pl_import_end(pl_import *m) {
  if (!m) return;
  for (size_t i = 0; i < m->count; i++) pl_import_run_free(&m->runs[i]);
  pl_import_spill_close(m->spill);
  pl_free(m->runs);
  pl_free(m);
}

size_t pl_import_count(const pl_import *m) { return m->count; }

static void append_settings(const char *prefix, const pl_json *object, pl_str *out) {
  for (void *it = pl_json_iter(object); it; it = pl_json_iter_next(object, it)) {
    const char *key = pl_json_iter_key(it);
    const pl_json *value = pl_json_iter_value(it);
    pl_str path = {0};
    bool type = prefix[0] && strcmp(key, "type") == 0;
    pl_str_printf(&path, "%s%s%s", prefix, prefix[0] && !type ? "." : "", type ? "" : key);
    out->failed |= path.failed;
    if (pl_json_kind_of(value) == PL_JSON_OBJECT) {
      append_settings(pl_str_text(&path), value, out);
    } else {
      pl_str_printf(out, " %s=", pl_str_text(&path));
      if (pl_json_string(value))
        pl_str_append(out, pl_json_string(value));
      else
        pl_json_write_canonical(value, out);
    }
    pl_str_free(&path);
  }
}

/* What the run states, as it states it. */
static pl_status make_label(pl_import_run *run, pl_err *e) {
  pl_str text = {0};
  pl_str_append(&text, PL_IMPORTED_KEY);
  append_settings("", run->document, &text);
  pl_status st = pl_str_check(&text, e);
  if (st == PL_OK) st = pl_strdup(text.text, &run->label, e);
  pl_str_free(&text);
  return st;
}

static pl_status configure(pl_import_run *run, const pl_import_spec *spec, pl_err *e) {
  pl_status st = PL_OK;
  run->document = pl_json_new_object();
  if (!run->document) PL_TRY(pl_fail(e, PL_FAIL, "out of memory for an imported run"));
  PL_TRY(pl_imported_merge(run->document, spec->base, spec->where, e));
  PL_TRY(pl_imported_merge(run->document, spec->config, spec->where, e));
  PL_TRY(pl_imported_read(run->document, spec->where, &run->imported, e));
  run->id = pl_run_config_id(pl_imported_config(run->imported));
  PL_TRY(make_label(run, e));
out:
  return st;
}

static pl_status check_new(const pl_import *m, const pl_import_run *run, pl_err *e) {
  for (size_t i = 0; i < m->count; i++)
    if (m->runs[i].id == run->id)
      return pl_fail(e, PL_BAD,
                     "%s: has the same configuration as %s (%s); seeds, or a key of one's own, tell runs apart",
                     run->where, m->runs[i].where, run->label);
  return PL_OK;
}

static pl_status make_room(pl_import *m, pl_err *e) {
  size_t larger = m->capacity ? 2 * m->capacity : 16;
  if (m->count < m->capacity) return PL_OK;
  pl_status st = pl_grow(m->capacity, larger, sizeof *m->runs, "imported runs", &m->runs, e);
  if (st == PL_OK) m->capacity = larger;
  return st;
}

pl_status pl_import_add(pl_import *m, const pl_import_spec *spec, pl_err *e) {
  pl_status st = PL_OK;
  pl_import_run run = {0};
  pl_import_table_init(&run.table);
  PL_TRY(make_room(m, e));
  PL_TRY(pl_strdup(spec->where, &run.where, e));
  PL_TRY(configure(&run, spec, e));
  PL_TRY(check_new(m, &run, e));
  PL_TRY(pl_import_read_paths(&run, spec, e));
  PL_TRY(pl_import_conclude(&run, spec->final, spec->where, e));
  PL_TRY(pl_import_spill_put(m->spill, &run.table, &run.rows_at, e));
  m->runs[m->count++] = run;
out:
  if (st != PL_OK) pl_import_run_free(&run);
  return st;
}
