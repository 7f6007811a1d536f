/* pipelag submit SWEEP.json: all runs as Slurm job arrays; returns at once. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "runners/command.h"
#include "runners/launchers/slurm/submit.h"

static pl_status run(const pl_options *o, pl_err *e) {
  pl_plan plan;
  pl_submit_result result;
  pl_status st = pl_plan_make(o, o->args[0], &plan, e);
  if (st != PL_OK) return st;
  if (!o->quiet) {
    printf("%zu runs (%" PRIu64 " excluded, %" PRIu64 " merged) in %s\n", plan.count, plan.counts.excluded,
           plan.counts.merged, plan.dir);
    fflush(stdout);
  }
  if (o->verbose > 0 && getenv("SLURM_JOB_ID") != NULL)
    fprintf(stderr, "pipelag: inside of Slurm job %s; nothing of it is passed on to what is submitted\n",
            getenv("SLURM_JOB_ID"));
  const pl_submit_args args = {.plan = &plan, .dry_run = o->dry_run, .quiet = o->quiet, .verbose = o->verbose};
  st = pl_submit(&args, &result, e);
  pl_plan_free(&plan);
  return st;
}

const pl_command pl_command_submit = {.name = "submit",
                                      .arguments = "SWEEP.json|DIR",
                                      .summary =
                                          "Submit all runs of a sweep to Slurm; run it again to finish or extend",
                                      .options = "Sonqvyrm",
                                      .min_args = 1,
                                      .max_args = 1,
                                      .run = run};
