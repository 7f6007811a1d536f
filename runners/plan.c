#include "runners/plan.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/catalog.h"
#include "runners/registries.h"

static pl_status add_job(pl_plan *p, const pl_sweep_run *run, double cost, pl_err *e) {
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
  job->steps = run->config->train.steps;
  job->batch_tokens = run->config->train.batch_tokens;
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
    st = pl_preflight_run(&preflight, run->config, &cost, e);
    if (st != PL_OK) {
      pl_err_prefix(e, "%s: run %" PRIu64, pl_sweep_path(p->sweep), run->index);
      goto out;
    }
    PL_TRY(add_job(p, run, cost, e));
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

pl_status pl_plan_make(const pl_options *o, const char *path, pl_plan *out, pl_err *e) {
  *out = (pl_plan){.registries = pl_registries_all()};
  pl_status st = PL_OK;
  PL_TRY(pl_sweep_load(&out->registries, path, pl_options_sets(o), &out->sweep, e));
  uint64_t upper = pl_sweep_upper_count(out->sweep);
  if (upper > o->max_runs && !o->yes) {
    st = pl_fail(e, PL_BAD,
                 "%s: expands to up to %" PRIu64 " runs; allowed: at most %" PRIu64 " without -y (see --max-runs)",
                 path, upper, o->max_runs);
    goto out;
  }
  PL_TRY(choose_dir(o, out, e));
  PL_TRY(pl_data_root(o->data_root, path, &out->data_root, e));
  PL_TRY(expand(out, e));
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
  char *folder = NULL;
  pl_freeze *freeze = NULL;
  pl_status st = PL_OK;
  PL_TRY(pl_path_folder(pl_sweep_path(p->sweep), &folder, e));
  PL_TRY(pl_freeze_begin(p->dir, pl_sweep_name(p->sweep), pl_sweep_document(p->sweep), folder, &freeze, e));
  for (size_t i = 0; i < p->count; i++)
    PL_TRY(pl_freeze_add(freeze, p->jobs[i].id, p->jobs[i].label, &p->jobs[i].index, e));
  PL_TRY(pl_freeze_commit(freeze, e));
  pl_freeze_end(freeze); /* others need not wait for a million folders */
  freeze = NULL;
  PL_TRY(create_runs(p, e));
out:
  pl_freeze_end(freeze);
  pl_free(folder);
  return st;
}

void pl_plan_free(pl_plan *p) {
  for (size_t i = 0; i < p->count; i++) pl_free(p->jobs[i].label);
  pl_free(p->jobs);
  pl_free(p->dir);
  pl_free(p->data_root);
  pl_sweep_free(p->sweep);
  *p = (pl_plan){0};
}

bool pl_job_is_open(const pl_job *j) {
  return j->state == PL_RUN_PENDING || j->state == PL_RUN_FAILED || j->state == PL_RUN_STOPPED ||
         j->state == PL_RUN_LOST;
}
