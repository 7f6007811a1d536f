#include "results/catalog.h"

#include <stdio.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
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

static pl_status read_config(const reader *r, const pl_catalog *c, pl_catalog_run *run, pl_err *e) {
  pl_status st = PL_OK;
  char *path = NULL;
  pl_json *document = NULL;
  PL_TRY(pl_run_path(c->dir, run->id, "config.json", &path, e));
  if (!run->has_result && !pl_path_exists(path)) goto out;
  PL_TRY(pl_json_file_read(path, &document, e));
  PL_TRY(pl_alloc(1, sizeof *run->config, "a run's configuration", &run->config, e));
  PL_TRY(pl_run_config_from_json(r->registries, document, path, run->config, e));
  run->document = pl_json_retain(document);
out:
  pl_json_release(document);
  pl_free(path);
  return st;
}

/* What cannot be read is said and left out; one bad run does not hide the others. */
static void read_run(const reader *r, pl_catalog *c, pl_catalog_run *run) {
  pl_err e = {0};
  pl_status st = pl_run_read_result(c->dir, run->id, &run->result, &e);
  run->has_result = st == PL_OK;
  bool settled = st == PL_OK && (run->result.state == PL_RUN_DONE || run->result.state == PL_RUN_DIVERGED);
  run->state = settled ? run->result.state : pl_run_state_of(c->dir, run->id);
  if (run->has_result) run->has_result = run->state == run->result.state;
  bool readable = st != PL_FAIL;
  if (r->configs && readable) readable = read_config(r, c, run, &e) == PL_OK;
  if (readable) return;
  run->has_result = false;
  c->unreadable++;
  char hex[PL_ID_SIZE], line[PL_ERR_TEXT + 64];
  pl_hash_hex(run->id, hex);
  snprintf(line, sizeof line, "run %s: %s", hex, e.text);
  if (r->say) r->say(r->say_self, line);
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

void pl_catalog_free(pl_catalog *c) {
  for (size_t i = 0; i < c->count; i++) {
    pl_free(c->runs[i].label);
    pl_free(c->runs[i].config);
    pl_json_release(c->runs[i].document);
  }
  pl_free(c->runs);
  pl_free(c->name);
  pl_free(c->dir);
  *c = (pl_catalog){0};
}
