/* pipelag run SWEEP.json: all runs on this machine; a result directory stands for the sweep it was made from. */
#include <inttypes.h>
#include <stdio.h>

#include "runners/command.h"
#include "runners/launchers/local.h"

static void print_plan(const pl_plan *p) {
  printf("%zu runs (%" PRIu64 " excluded, %" PRIu64 " merged) in %s\n", p->count, p->counts.excluded, p->counts.merged,
         p->dir);
}

static void print_jobs(const pl_plan *p) {
  for (size_t i = 0; i < p->count; i++) printf("%6zu  %016" PRIx64 "  %s\n", i, p->jobs[i].id, p->jobs[i].label);
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
  } else {
    st = pl_plan_freeze(&plan, e);
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
