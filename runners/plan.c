#include "runners/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/catalog.h"
#include "results/json_file.h"
#include "results/sweep_dir.h"
#include "runners/registries.h"

static pl_status add_job(pl_plan *p, const pl_sweep_run *run, double cost, const pl_slurm_config *slurm, pl_err *e) {
  if (p->count == p->capacity) {
    size_t capacity = p->capacity * 2 + 64;
    pl_status st = pl_grow(p->capacity, capacity, sizeof *p->jobs, "the list of runs", &p->jobs, e);
    if (st != PL_OK) return st;
    p->capacity = capacity;
  }
  pl_str label = {0};
  pl_sweep_label(p->sweep, run, &label);
  pl_status st = pl_str_check(&label, e);
  pl_job *job = &p->jobs[p->count];
  if (st == PL_OK) st = pl_strdup(pl_str_text(&label), &job->label, e);
  pl_str_free(&label);
  if (st != PL_OK) return st;
  job->id = run->id;
  job->cost = cost;
  job->slurm = slurm;
  job->steps = run->config->train.steps;
  job->batch_tokens = run->config->train.batch_tokens;
  job->threads = run->config->root.threads;
  job->on_gpu = strcmp(pl_device_name(run->config), "cuda") == 0;
  p->count++;
  return PL_OK;
}

static pl_status expand(pl_plan *p, pl_err *e) {
  pl_preflight preflight = {.data_root = p->data_root};
  pl_status st = PL_OK;
  for (;;) {
    const pl_sweep_run *run = NULL;
    PL_TRY(pl_sweep_next(p->sweep, &run, e));
    if (run == NULL) break;
    double cost = 0;
    const pl_slurm_config *slurm = NULL;
    st = pl_preflight_run(&preflight, run->config, &cost, e);
    if (st == PL_OK) st = pl_slurm_section_for(p->slurm, run->config, &slurm, e);
    if (st != PL_OK) {
      pl_err_prefix(e, "%s: run %" PRIu64, pl_sweep_path(p->sweep), run->index);
      goto out;
    }
    PL_TRY(add_job(p, run, cost, slurm, e));
  }
  p->counts = pl_sweep_counted(p->sweep);
out:
  pl_preflight_free(&preflight);
  return st;
}

static pl_status choose_dir(const pl_options *o, pl_plan *p, pl_err *e) {
  if (o->output != NULL) return pl_strdup(o->output, &p->dir, e);
  return pl_path_join("results", pl_sweep_name(p->sweep), &p->dir, e);
}

/* Loads a sweep file. */
static pl_status load_file(const pl_options *o, const char *path, pl_plan *p, pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(pl_sweep_load(&p->registries, path, pl_options_sets(o), &p->sweep, e));
  PL_TRY(pl_path_folder(path, &p->folder, e));
  PL_TRY(choose_dir(o, p, e));
out:
  return st;
}

/* The folder of the sweep file that a result directory was made from, as its location.json says. */
static pl_status read_folder(const pl_options *o, const char *path, char **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_json *location = NULL;
  PL_TRY(pl_json_file_read(path, &location, e));
  const char *folder = pl_json_get_string(location, "folder", "");
  if (!pl_path_is_folder(folder) && o->data_root != NULL) folder = o->data_root;
  if (!pl_path_is_folder(folder))
    PL_TRY(pl_fail(e, PL_BAD, "%s: saw the folder \"%s\", which is not there; allowed: a folder, or --data-root DIR",
                   path, folder));
  PL_TRY(pl_strdup(folder, out, e));
out:
  pl_json_release(location);
  return st;
}

/* Loads what was frozen last in a result directory. */
static pl_status load_frozen(const pl_options *o, const char *dir, pl_plan *p, pl_err *e) {
  pl_status st = PL_OK;
  char *path = NULL, *location = NULL;
  pl_json *document = NULL;
  int next;
  PL_TRY(pl_sweep_dir_newest(dir, &document, &next, e));
  PL_TRY(pl_path_join(dir, "location.json", &location, e));
  if (document == NULL || !pl_path_exists(location))
    PL_TRY(
        pl_fail(e, PL_BAD, "%s: is no result directory of pipelag; allowed: a sweep file or a result directory", dir));
  if (pl_json_get(document, PL_IMPORTED_KEY) != NULL)
    PL_TRY(pl_fail(e, PL_BAD,
                   "%s: holds imported runs; there is nothing to train; allowed: analyze, report, compare, "
                   "collect, export",
                   dir));
  if (o->output != NULL && strcmp(o->output, dir) != 0)
    PL_TRY(pl_fail(e, PL_BAD, "--output: saw \"%s\"; allowed: nothing, the results of %s stay there", o->output, dir));
  PL_TRY(pl_sweep_dir_file(dir, next - 1, &path, e));
  PL_TRY(read_folder(o, location, &p->folder, e));
  PL_TRY(pl_sweep_from_json(&p->registries, document, path, pl_options_sets(o), &p->sweep, e));
  PL_TRY(pl_strdup(dir, &p->dir, e));
out:
  pl_json_release(document);
  pl_free(location);
  pl_free(path);
  return st;
}

static pl_status choose_data_root(const pl_options *o, const char *folder, char **out, pl_err *e) {
  char *beside = NULL;
  pl_status st = pl_path_join(folder, "sweep.json", &beside, e);
  if (st == PL_OK) st = pl_data_root(o->data_root, beside, out, e);
  pl_free(beside);
  return st;
}

static pl_status read_location(const pl_options *o, const char *dir, char **folder, pl_err *e) {
  char *location = NULL;
  pl_status st = pl_path_join(dir, "location.json", &location, e);
  if (st == PL_OK) st = read_folder(o, location, folder, e);
  pl_free(location);
  return st;
}

pl_status pl_plan_data_root(const pl_options *o, const char *dir, char **out, pl_err *e) {
  char *folder = NULL;
  pl_status st = read_location(o, dir, &folder, e);
  if (st == PL_OK) st = choose_data_root(o, folder, out, e);
  pl_free(folder);
  return st;
}

/* What is left once the sweep is loaded. */
static pl_status check(const pl_options *o, const char *path, pl_plan *out, pl_err *e) {
  pl_status st =
      pl_slurm_section_load(&out->registries, pl_json_get(pl_sweep_document(out->sweep), "slurm"), &out->slurm, e);
  if (st != PL_OK) {
    pl_err_prefix(e, "%s", pl_sweep_path(out->sweep));
    goto out;
  }
  uint64_t upper = pl_sweep_upper_count(out->sweep);
  if (upper > o->max_runs && !o->yes) {
    st = pl_fail(e, PL_BAD,
                 "%s: expands to up to %" PRIu64 " runs; allowed: at most %" PRIu64 " without -y (see --max-runs)",
                 path, upper, o->max_runs);
    goto out;
  }
  PL_TRY(choose_data_root(o, out->folder, &out->data_root, e));
  PL_TRY(expand(out, e));
out:
  return st;
}

pl_status pl_plan_make(const pl_options *o, const char *path, pl_plan *out, pl_err *e) {
  *out = (pl_plan){.registries = pl_registries_all()};
  pl_status st = pl_path_is_folder(path) ? load_frozen(o, path, out, e) : load_file(o, path, out, e);
  if (st == PL_OK) st = check(o, path, out, e);
  if (st != PL_OK) pl_plan_free(out);
  return st;
}

pl_status pl_plan_make_from(const pl_options *o, const pl_json *document, const char *path, const char *dir,
                            pl_plan *out, pl_err *e) {
  pl_status st = PL_OK;
  *out = (pl_plan){.registries = pl_registries_all()};
  PL_TRY(read_location(o, dir, &out->folder, e));
  PL_TRY(pl_sweep_from_json(&out->registries, document, path, pl_options_sets(o), &out->sweep, e));
  PL_TRY(choose_dir(o, out, e));
  PL_TRY(check(o, path, out, e));
out:
  if (st != PL_OK) pl_plan_free(out);
  return st;
}

/* The sweep is walked a second time, because configs of a million runs do not fit into memory. */
static pl_status create_runs(pl_plan *p, pl_err *e) {
  pl_sweep_rewind(p->sweep);
  for (size_t i = 0; i < p->count; i++) {
    const pl_sweep_run *run = NULL;
    pl_status st = pl_sweep_next(p->sweep, &run, e);
    if (st == PL_OK && run == NULL) st = pl_fail(e, PL_FAIL, "%s: the sweep changed while it was read", p->dir);
    if (st == PL_OK) st = pl_run_create(p->dir, run->id, run->config, e);
    if (st != PL_OK) return st;
    p->jobs[i].state = pl_run_state_of(p->dir, run->id);
    p->states[p->jobs[i].state]++;
  }
  return pl_sync_all(p->dir, e);
}

pl_status pl_plan_freeze(pl_plan *p, pl_err *e) {
  pl_freeze *freeze = NULL;
  pl_status st = PL_OK;
  PL_TRY(pl_freeze_begin(p->dir, pl_sweep_name(p->sweep), pl_sweep_document(p->sweep), p->folder, &freeze, e));
  for (size_t i = 0; i < p->count; i++)
    PL_TRY(pl_freeze_add(freeze, p->jobs[i].id, p->jobs[i].label, &p->jobs[i].index, e));
  PL_TRY(pl_freeze_commit(freeze, e));
  pl_freeze_end(freeze); /* others need not wait for a million folders */
  freeze = NULL;
  PL_TRY(create_runs(p, e));
out:
  pl_freeze_end(freeze);
  return st;
}

void pl_plan_free(pl_plan *p) {
  for (size_t i = 0; i < p->count; i++) pl_free(p->jobs[i].label);
  pl_free(p->jobs);
  pl_free(p->dir);
  pl_free(p->folder);
  pl_free(p->data_root);
  pl_slurm_section_free(p->slurm);
  pl_sweep_free(p->sweep);
  *p = (pl_plan){0};
}

bool pl_job_is_open(const pl_job *j) {
  return j->state == PL_RUN_PENDING || j->state == PL_RUN_FAILED || j->state == PL_RUN_STOPPED ||
         j->state == PL_RUN_LOST;
}

const pl_job *pl_plan_needs_gpu(const pl_plan *p) {
  for (size_t i = 0; i < p->count; i++) {
    pl_job now = p->jobs[i];
    if (!now.on_gpu) continue;
    now.state = pl_run_state_of(p->dir, now.id);
    if (pl_job_is_open(&now)) return &p->jobs[i];
  }
  return NULL;
}
