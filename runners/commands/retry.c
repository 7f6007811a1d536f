/* pipelag retry DIR [RUN...]: opens runs again that ended without a result, and submits them where Slurm had them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "runners/choice.h"
#include "runners/command.h"
#include "runners/launchers/slurm/submit.h"

static bool in_queue(const pl_shown_run *r) {
  return r->queued != NULL && pl_queue_kind_of(r->queued->state) != PL_QUEUE_ENDED;
}

/* Finished runs are never touched, runs that go on by themselves need nothing. */
static bool can_retry(const pl_shown_run *r) {
  switch (r->verdict.shown) {
  case PL_SHOWN_STOPPED:
  case PL_SHOWN_FAILED:
  case PL_SHOWN_LOST:
  case PL_SHOWN_CANCELLED:
    return !in_queue(r);
  default:
    return false;
  }
}

/* Without any of the options: all but those that `cancel` stopped. */
static bool is_selected(const pl_options *o, const pl_shown_run *r) {
  if (!o->failed && !o->timeout && !o->lost && !o->cancelled) return r->kept != PL_RUN_CANCELLED;
  bool timeout = r->verdict.end == PL_ATTEMPT_TIMEOUT;
  return (o->timeout && timeout) || (o->failed && r->verdict.shown == PL_SHOWN_FAILED) ||
         (o->lost && !timeout && r->verdict.shown == PL_SHOWN_LOST) ||
         (o->cancelled && r->verdict.shown == PL_SHOWN_CANCELLED);
}

static pl_status choose(const pl_options *o, const pl_states *s, bool *chosen, pl_err *e) {
  bool named = false;
  pl_status st = pl_choice_named(o, s, chosen, &named, e);
  if (st != PL_OK) return st;
  for (size_t i = 0; i < s->count; i++) {
    const pl_shown_run *r = &s->runs[i];
    bool wanted = named ? chosen[i] : r->current && is_selected(o, r);
    chosen[i] = wanted && can_retry(r) && r->current;
    if (!named || !wanted || chosen[i]) continue;
    fprintf(stderr, "pipelag: run %" PRIu64 " is %s: %s\n", r->index, pl_verdict_name(&r->verdict),
            !r->current    ? "it is no longer part of the sweep file, left out"
            : in_queue(r)  ? "Slurm still has it, left out"
            : can_retry(r) ? ""
                           : "left out");
  }
  if (pl_choice_count(chosen, s->count) > 0) return PL_OK;
  return pl_fail(e, PL_NOTHING, "%s: no run to retry: none that was selected has ended without a result", s->dir);
}

/* Only what a run asks of Slurm may change: its configuration is what it is named by. */
static pl_status check_sets(const pl_options *o, bool slurm, pl_err *e) {
  for (size_t i = 0; i < o->set_count; i++) {
    if (strncmp(o->set_texts[i], "slurm.", 6) != 0)
      return pl_fail(e, PL_BAD, "--set %.100s: allowed with retry: keys of slurm, such as slurm.mem=32G",
                     o->set_texts[i]);
    if (!slurm)
      return pl_fail(e, PL_BAD, "--set %.100s: %s was never submitted to Slurm; allowed: with --slurm", o->set_texts[i],
                     o->args[0]);
  }
  return PL_OK;
}

static bool was_submitted(const pl_states *s) {
  for (size_t i = 0; i < s->submissions.count; i++)
    if (s->submissions.items[i].sent != PL_SENT_REFUSED) return true;
  return false;
}

static pl_status revive(const pl_states *s, const bool *chosen, pl_err *e) {
  for (size_t i = 0; i < s->count; i++) {
    if (!chosen[i]) continue;
    pl_status st = pl_run_revive(s->dir, s->runs[i].id, e);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

static const pl_shown_run *find_job(const pl_states *s, const pl_job *job, size_t guess) {
  if (guess < s->count && s->runs[guess].id == job->id) return &s->runs[guess];
  for (size_t i = 0; i < s->count; i++)
    if (s->runs[i].id == job->id) return &s->runs[i];
  return NULL;
}

/* pl_submit opens the chosen runs again, once every changed setting is checked. */
static pl_status submit(const pl_options *o, const pl_states *s, const bool *chosen, pl_err *e) {
  pl_status st = PL_OK;
  pl_plan plan;
  pl_submit_result sent;
  bool *jobs = NULL;
  pl_options with = *o;
  with.yes = true; /* the number of runs was confirmed */
  PL_TRY(pl_plan_make(&with, s->dir, &plan, e));
  PL_TRY(pl_alloc(plan.count, sizeof *jobs, "the list of runs", &jobs, e));
  for (size_t i = 0; i < plan.count; i++) {
    const pl_shown_run *r = find_job(s, &plan.jobs[i], i);
    jobs[i] = r != NULL && chosen[r->index];
  }
  const pl_submit_args args = {
      .plan = &plan, .chosen = jobs, .dry_run = o->dry_run, .quiet = o->quiet, .verbose = o->verbose};
  st = pl_submit(&args, &sent, e);
out:
  pl_free(jobs);
  pl_plan_free(&plan);
  return st;
}

static void print_chosen(const pl_states *s, const bool *chosen) {
  for (size_t i = 0; i < s->count; i++)
    if (chosen[i])
      printf("%6" PRIu64 "  %016" PRIx64 "  %s  %s\n", s->runs[i].index, s->runs[i].id,
             pl_verdict_name(&s->runs[i].verdict), s->runs[i].label);
}

static pl_status retry(const pl_options *o, const pl_states *s, const bool *chosen, pl_err *e) {
  bool slurm = o->slurm || was_submitted(s);
  size_t count = pl_choice_count(chosen, s->count);
  pl_status st = check_sets(o, slurm, e);
  if (st != PL_OK) return st;
  if (o->dry_run && (!slurm || o->verbose == 0)) {
    print_chosen(s, chosen);
    return PL_OK;
  }
  st = o->dry_run ? PL_OK : pl_choice_confirm(o, "retry", count, e);
  if (st != PL_OK) return st;
  if (slurm) return submit(o, s, chosen, e);
  st = revive(s, chosen, e);
  if (st == PL_OK) printf("%zu runs are open again; `pipelag run %s` runs them\n", count, s->dir);
  return st;
}

static pl_status run(const pl_options *o, pl_err *e) {
  pl_states s;
  bool *chosen = NULL;
  pl_status st = pl_states_read(o->args[0], &s, e);
  if (st != PL_OK) return st;
  PL_TRY(pl_alloc(s.count, sizeof *chosen, "the list of runs", &chosen, e));
  PL_TRY(choose(o, &s, chosen, e));
  st = retry(o, &s, chosen, e);
out:
  pl_free(chosen);
  pl_states_free(&s);
  return st;
}

const pl_command pl_command_retry = {
    .name = "retry",
    .arguments = "DIR [RUN...]",
    .summary = "Run those again that ended without a result (default: all but what `cancel` stopped)",
    .options = "SynqvrxTlXs",
    .min_args = 1,
    .max_args = PL_MAX_ARGS,
    .run = run};
