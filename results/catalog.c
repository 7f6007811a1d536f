#include "results/catalog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/collected.h"
#include "results/json_file.h"
#include "results/sweep_dir.h"

typedef struct reader {
  const pl_registries *registries;
  bool configs;
  void (*say)(void *self, const char *line);
  void *say_self;
} reader;

static pl_status read_name(pl_catalog *c, pl_err *e) {
  pl_json *newest;
  int next;
  pl_status st = pl_sweep_dir_newest(c->dir, &newest, &next, e);
  if (st != PL_OK) return st;
  if (newest)
    st = pl_strdup(pl_json_get_string(newest, "name", ""), &c->name, e);
  else
    st = pl_fail(e, PL_BAD, "%s: is no result directory of pipelag (it has no sweep.json)", c->dir);
  pl_json_release(newest);
  return st;
}

/* The run keeps the document. */
static pl_status take_config(const pl_registries *r, pl_json *document, const char *where, pl_catalog_run *run,
                             pl_err *e) {
  pl_status st = PL_OK;
  if (pl_json_get(document, PL_IMPORTED_KEY)) {
    st = pl_imported_read(document, "run", &run->imported, e);
    if (st != PL_OK) return pl_err_prefix(e, "%s", where);
    run->config = pl_imported_config(run->imported);
  } else {
    PL_TRY(pl_alloc(1, sizeof *run->config, "a run's configuration", &run->config, e));
    PL_TRY(pl_run_config_from_json(r, document, where, run->config, e));
  }
  run->document = pl_json_retain(document);
out:
  return st;
}

static pl_status read_config(const reader *r, const pl_catalog *c, pl_catalog_run *run, pl_err *e) {
  pl_status st = PL_OK;
  char *path = NULL;
  pl_json *document = NULL;
  PL_TRY(pl_run_path(c->dir, run->id, "config.json", &path, e));
  if (!run->has_result && !pl_path_exists(path)) goto out;
  PL_TRY(pl_json_file_read(path, &document, e));
  st = take_config(r->registries, document, path, run, e);
out:
  pl_json_release(document);
  pl_free(path);
  return st;
}

/* What cannot be read is said and left out; one bad run does not hide the others. */
static void leave_out(const reader *r, pl_catalog *c, pl_catalog_run *run, const pl_err *e) {
  char hex[PL_ID_SIZE], line[PL_ERR_TEXT + 64];
  run->has_result = false;
  c->unreadable++;
  pl_hash_hex(run->id, hex);
  snprintf(line, sizeof line, "run %s: %s", hex, e->text);
  if (r->say) r->say(r->say_self, line);
}

static void read_run(const reader *r, pl_catalog *c, pl_catalog_run *run) {
  pl_err e = {0};
  pl_status st = pl_run_read_result(c->dir, run->id, &run->result, &e);
  run->has_result = st == PL_OK;
  bool settled = st == PL_OK && (run->result.state == PL_RUN_DONE || run->result.state == PL_RUN_DIVERGED);
  run->state = settled ? run->result.state : pl_run_state_of(c->dir, run->id);
  if (run->has_result) run->has_result = run->state == run->result.state;
  bool readable = st != PL_FAIL;
  if (r->configs && readable) readable = read_config(r, c, run, &e) == PL_OK;
  if (!readable) leave_out(r, c, run, &e);
}

static pl_status list_runs(pl_catalog *c, pl_err *e) {
  pl_status st = PL_OK;
  pl_runs_list list;
  bool *current = NULL;
  PL_TRY(pl_runs_list_read(c->dir, &list, e));
  PL_TRY(pl_alloc(list.count, sizeof *current, "the list of runs", &current, e));
  PL_TRY(pl_current_read(c->dir, list.count, current, e));
  PL_TRY(pl_alloc(list.count, sizeof *c->runs, "the list of runs", &c->runs, e));
  for (; c->count < list.count; c->count++) {
    pl_catalog_run *run = &c->runs[c->count];
    run->dir = c->dir;
    run->index = c->count;
    run->id = list.ids[c->count];
    run->current = current[c->count];
    PL_TRY(pl_strdup(list.labels[c->count], &run->label, e));
  }
out:
  pl_free(current);
  pl_runs_list_free(&list);
  return st;
}

pl_status pl_catalog_open(const pl_registries *r, const char *dir, bool configs,
                          void (*say)(void *self, const char *line), void *say_self, pl_catalog *out, pl_err *e) {
  pl_status st = PL_OK;
  const reader with = {.registries = r, .configs = configs, .say = say, .say_self = say_self};
  *out = (pl_catalog){0};
  PL_TRY(pl_strdup(dir, &out->dir, e));
  PL_TRY(read_name(out, e));
  PL_TRY(list_runs(out, e));
  for (size_t i = 0; i < out->count; i++) read_run(&with, out, &out->runs[i]);
out:
  if (st != PL_OK) pl_catalog_free(out);
  return st;
}

/* One run of a collected file. */
static pl_status take_run(const reader *r, const pl_collected *from, size_t index, pl_catalog_run *run, pl_err *e) {
  pl_status st = PL_OK;
  pl_json *document = NULL;
  const char *config = from->config.items[index];
  PL_TRY(pl_collected_result(from, index, &run->state, &run->has_result, &run->result, e));
  if (config[0] == '\0') goto out;
  PL_TRY(pl_json_parse(config, strlen(config), "its configuration", &document, e));
  st = take_config(r->registries, document, "its configuration", run, e);
out:
  pl_json_release(document);
  return st;
}

static pl_status take_runs(const reader *r, pl_catalog *c, pl_err *e) {
  pl_status st = PL_OK;
  const pl_collected *from = c->collected;
  PL_TRY(pl_alloc(from->count, sizeof *c->runs, "the list of runs", &c->runs, e));
  for (; c->count < from->count; c->count++) {
    pl_catalog_run *run = &c->runs[c->count];
    pl_err own = {0};
    *run = (pl_catalog_run){.dir = c->dir,
                            .index = c->count,
                            .id = strtoull(from->id.items[c->count], NULL, 16),
                            .current = from->current[c->count] != 0,
                            .collected = from,
                            .meta = from->meta.items[c->count]};
    PL_TRY(pl_strdup(from->label.items[c->count], &run->label, e));
    if (take_run(r, from, c->count, run, &own) != PL_OK) leave_out(r, c, run, &own);
  }
out:
  return st;
}

static pl_status open_file(const reader *r, const char *path, pl_catalog *out, pl_err *e) {
  pl_status st = PL_OK;
  *out = (pl_catalog){0};
  PL_TRY(pl_strdup(path, &out->dir, e));
  PL_TRY(pl_collected_open(path, &out->collected, e));
  PL_TRY(pl_strdup(out->collected->name, &out->name, e));
  PL_TRY(take_runs(r, out, e));
out:
  if (st != PL_OK) pl_catalog_free(out);
  return st;
}

pl_status pl_catalog_open_any(const pl_registries *r, const char *path, void (*say)(void *self, const char *line),
                              void *say_self, pl_catalog *out, pl_err *e) {
  const reader with = {.registries = r, .configs = true, .say = say, .say_self = say_self};
  bool file = pl_path_exists(path) && !pl_path_is_folder(path);
  return file ? open_file(&with, path, out, e) : pl_catalog_open(r, path, true, say, say_self, out, e);
}

pl_status pl_catalog_curve(const pl_catalog_run *r, pl_curve *out, pl_err *e) {
  char *path = NULL;
  *out = (pl_curve){0};
  if (r->collected) return pl_collected_curve(r->collected, r->id, out, e);
  pl_status st = pl_run_path(r->dir, r->id, "journal", &path, e);
  if (st == PL_OK) st = pl_curve_read(path, out, e);
  pl_free(path);
  return st;
}

pl_status pl_catalog_times(const pl_catalog_run *r, pl_times *out, pl_err *e) {
  char *path = NULL;
  *out = (pl_times){0};
  if (r->collected) return pl_collected_times(r->collected, r->id, out, e);
  pl_status st = pl_run_path(r->dir, r->id, "times", &path, e);
  if (st == PL_OK) st = pl_times_read(path, out, e);
  pl_free(path);
  return st;
}

/* A run without a readable one tells nothing. */
pl_status pl_catalog_meta(const pl_catalog_run *r, pl_json **out, pl_err *e) {
  char *path = NULL;
  *out = NULL;
  if (r->collected) {
    if (r->meta[0] != '\0' && pl_json_parse(r->meta, strlen(r->meta), "meta", out, NULL) != PL_OK) *out = NULL;
    return PL_OK;
  }
  pl_status st = pl_run_path(r->dir, r->id, "meta.json", &path, e);
  if (st == PL_OK && pl_path_exists(path) && pl_json_read(path, out, NULL) != PL_OK) *out = NULL;
  pl_free(path);
  return st;
}

void pl_catalog_free(pl_catalog *c) {
  for (size_t i = 0; i < c->count; i++) {
    pl_free(c->runs[i].label);
    if (c->runs[i].imported)
      pl_imported_free(c->runs[i].imported);
    else
      pl_free(c->runs[i].config);
    pl_json_release(c->runs[i].document);
  }
  pl_free(c->runs);
  pl_collected_free(c->collected);
  pl_free(c->name);
  pl_free(c->dir);
  *c = (pl_catalog){0};
}
