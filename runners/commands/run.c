/* pipelag run SWEEP.json: all runs on this machine; a result directory stands for the sweep it was made from. */
#include <inttypes.h>
#include <stdio.h>

#include "runners/command.h"
#include "runners/launchers/gpus.h"
#include "runners/launchers/local.h"
#include "runners/say.h"

static void print_plan(const pl_plan *p) {
  printf("%zu runs (%" PRIu64 " excluded, %" PRIu64 " merged) in %s\n", p->count, p->counts.excluded, p->counts.merged,
         p->dir);
}

static void print_jobs(const pl_plan *p) {
  for (size_t i = 0; i < p->count; i++) printf("%6zu  %016" PRIx64 "  %s\n", i, p->jobs[i].id, p->jobs[i].label);
}

/* Runs on GPUs: how many at the same time, and where. */
static pl_status print_gpus(const pl_options *o, const pl_plan *p, pl_err *e) {
  pl_gpus gpus;
  pl_err why = {0};
  pl_str text = {0};
  if (pl_plan_needs_gpu(p) == NULL) return PL_OK;
  if (pl_gpus_find(&gpus, &why) != PL_OK) {
    pl_str_printf(&text, "these runs cannot start here: %s\n", why.text);
  } else {
    pl_str_printf(&text, "%zu at the same time, on GPU%s ", o->jobs > 0 ? (size_t)o->jobs : gpus.count,
                  gpus.count > 1 ? "s" : "");
    pl_gpus_write(&gpus, &text);
    pl_str_append(&text, gpus.count > 1 ? " in turn\n" : "\n");
  }
  pl_gpus_free(&gpus);
  return pl_print(&text, e);
}

static pl_status check_gpus(const pl_plan *p, pl_err *e) {
  pl_gpus gpus;
  if (pl_plan_needs_gpu(p) == NULL) return PL_OK;
  const pl_status st = pl_gpus_find(&gpus, e);
  pl_gpus_free(&gpus);
  return st;
}

static size_t count_open(const pl_plan *p) {
  size_t open = 0;
  for (size_t i = 0; i < p->count; i++) open += pl_job_is_open(&p->jobs[i]);
  return open;
}

static pl_status launch(const pl_options *o, pl_plan *p, pl_err *e) {
  size_t open = count_open(p);
  size_t finished = p->states[PL_RUN_DONE] + p->states[PL_RUN_DIVERGED], other = p->count - open - finished;
  if (!o->quiet) printf("%zu already finished, %zu to run", finished, open);
  if (!o->quiet && other > 0) printf(", %zu run by others or cancelled", other);
  if (!o->quiet) printf("\n");
  fflush(stdout);
  size_t diverged_before = p->states[PL_RUN_DIVERGED];
  pl_local_args args = {.dir = p->dir,
                        .data_root = p->data_root,
                        .jobs = p->jobs,
                        .count = p->count,
                        .slots = o->jobs,
                        .fail_fast = o->fail_fast,
                        .no_pin = o->no_pin,
                        .quiet = o->quiet};
  pl_local_result r;
  pl_status st = pl_local_run(&args, &r, e);
  if (st != PL_OK) return st;
  if (open > 0)
    printf("%zu done, %zu diverged, %zu failed, %zu stopped, %zu elsewhere, %zu not started\n", r.done, r.diverged,
           r.failed, r.stopped, r.elsewhere, r.not_started);
  printf("results: %s\n", p->dir);
  if (r.signal != 0) return PL_STOPPED;
  if (r.failed > 0) return PL_FAIL;
  return o->strict_diverged && r.diverged + diverged_before > 0 ? PL_FAIL : PL_OK;
}

static pl_status run(const pl_options *o, pl_err *e) {
  pl_plan plan;
  pl_status st = pl_plan_make(o, o->args[0], &plan, e);
  if (st != PL_OK) return st;
  if (!o->quiet) print_plan(&plan);
  if (o->dry_run) {
    print_jobs(&plan);
    st = print_gpus(o, &plan, e);
  } else {
    st = check_gpus(&plan, e);
    if (st == PL_OK) st = pl_plan_freeze(&plan, e);
    if (st == PL_OK) st = launch(o, &plan, e);
  }
  pl_plan_free(&plan);
  return st;
}

const pl_command pl_command_run = {.name = "run",
                                   .arguments = "SWEEP.json|DIR",
                                   .summary =
                                       "Train all runs of a sweep on this machine; run it again to finish or extend",
                                   .options = "SonqyjfDrm0",
                                   .min_args = 1,
                                   .max_args = 1,
                                   .run = run};
