#include "results/export.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/figures.h"
#include "results/json_file.h"

typedef struct exporter {
  const pl_catalog *catalog;
  pl_curve_format format;
  const char *folder;
  void (*say)(void *self, const char *line);
  void *say_self;
  pl_json *runs; /* of the manifest */
} exporter;

static void say(const exporter *x, const char *id, const char *what) {
  char line[PL_ERR_TEXT + 64];
  snprintf(line, sizeof line, "run %s: %s", id, what);
  if (x->say) x->say(x->say_self, line);
}

/* The name below the folder, and what is in the file. */
static void make_file(const exporter *x, const pl_json *config, const pl_curve *c, const char *id, char *name,
                      size_t size, pl_str *out) {
  switch (x->format) {
  case PL_FORMAT_JSONL:
    snprintf(name, size, "%s.jsonl", id);
    pl_export_jsonl(c, out);
    break;
  case PL_FORMAT_TENSORBOARD:
    snprintf(name, size, "%s/events.out.tfevents.0.pipelag", id);
    pl_export_tensorboard(c, config, out);
    break;
  default:
    snprintf(name, size, "%s.csv", id);
    pl_export_csv(c, out);
    break;
  }
}

static pl_status write_file(const exporter *x, const char *name, const pl_str *text, pl_err *e) {
  pl_status st = PL_OK;
  char *path = NULL, *folder = NULL;
  PL_TRY(pl_str_check(text, e));
  PL_TRY(pl_path_join(x->folder, name, &path, e));
  PL_TRY(pl_path_folder(path, &folder, e));
  PL_TRY(pl_make_folders(folder, e));
  st = pl_file_replace_unsynced(path, pl_str_text(text), text->length, e);
out:
  pl_free(folder);
  pl_free(path);
  return st;
}

/* Figures that say something; -1 is the word for none. */
static pl_json *final_of(const pl_catalog_run *r) {
  pl_json *final = pl_json_new_object();
  const pl_outcome *o = &r->result.outcome;
  bool ok = pl_json_set(final, "state", pl_json_new_string(pl_run_state_name(r->state)));
  for (size_t i = 0; i < PL_FIGURES && ok; i++) {
    const pl_figure *f = &pl_figures[i];
    double number = f->integer ? 0 : pl_figure_number(f, o);
    if (f->integer)
      ok = pl_json_set(final, f->name, pl_json_new_int(pl_figure_int(f, o)));
    else if (!isnan(number))
      ok = pl_json_set(final, f->name, pl_json_new_number(number));
  }
  if (o->reason[0]) ok = ok && pl_json_set(final, "reason", pl_json_new_string(o->reason));
  return pl_json_keep(final, ok);
}

static pl_status list_run(const exporter *x, const pl_catalog_run *r, const pl_json *config, const char *file,
                          pl_err *e) {
  pl_json *run = pl_json_new_object();
  bool ok = run != NULL;
  if (file) ok = ok && pl_json_set(run, "file", pl_json_new_string(file));
  ok = ok && pl_json_set(run, "config", pl_json_retain(config)) && pl_json_set(run, "final", final_of(r));
  ok = pl_json_append(x->runs, run) && ok;
  return ok ? PL_OK : pl_fail(e, PL_FAIL, "out of memory for the list of runs");
}

static bool has_outcome(const pl_catalog_run *r) {
  return r->has_result && (r->state == PL_RUN_DONE || r->state == PL_RUN_DIVERGED);
}

static pl_status export_run(const exporter *x, const pl_catalog_run *r, pl_err *e) {
  pl_status st = PL_OK;
  char id[PL_ID_SIZE], name[96];
  pl_curve c = {0};
  pl_str text = {0};
  pl_err own = {0};
  pl_json *config = NULL;
  pl_hash_hex(r->id, id);
  if (!r->document) goto out;
  config = pl_run_config_dump(r->config);
  if (!config) PL_TRY(pl_fail(e, PL_FAIL, "run %s: out of memory for its configuration", id));
  if (pl_catalog_curve(r, &c, &own) != PL_OK) say(x, id, own.text);
  if (c.count > 0) {
    make_file(x, config, &c, id, name, sizeof name, &text);
    PL_TRY(write_file(x, name, &text, e));
  }
  if (has_outcome(r)) st = list_run(x, r, config, c.count > 0 ? name : NULL, e);
out:
  pl_json_release(config);
  pl_str_free(&text);
  pl_curve_free(&c);
  return st;
}

static pl_status write_manifest(const exporter *x, pl_err *e) {
  pl_status st = PL_OK;
  char *path = NULL;
  pl_json *manifest = pl_json_new_object();
  bool ok = pl_json_set(manifest, "name", pl_json_new_string(x->catalog->name)) &&
            pl_json_set(manifest, "runs", pl_json_retain(x->runs));
  if (!ok) PL_TRY(pl_fail(e, PL_FAIL, "out of memory for the list of runs"));
  PL_TRY(pl_path_join(x->folder, "import.json", &path, e));
  st = pl_json_file_write(path, manifest, e);
out:
  pl_free(path);
  pl_json_release(manifest);
  return st;
}

pl_status pl_export(const pl_catalog *c, pl_curve_format format, const char *folder,
                    void (*say_line)(void *self, const char *line), void *say_self, pl_err *e) {
  pl_status st = PL_OK;
  exporter x = {.catalog = c, .format = format, .folder = folder, .say = say_line, .say_self = say_self};
  x.runs = pl_json_new_array();
  if (!x.runs) return pl_fail(e, PL_FAIL, "out of memory for the list of runs");
  PL_TRY(pl_make_folders(folder, e));
  for (size_t i = 0; i < c->count; i++) PL_TRY(export_run(&x, &c->runs[i], e));
  PL_TRY(write_manifest(&x, e));
  PL_TRY(pl_sync_all(folder, e));
out:
  pl_json_release(x.runs);
  return st;
}
