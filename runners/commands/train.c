/* pipelag train RUN.json: one run in the foreground. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "core/base/hash.h"
#include "core/device/cuda_module.h"
#include "runners/command.h"
#include "runners/plan.h"
#include "runners/profile_view.h"
#include "runners/progress.h"
#include "runners/ranks.h"
#include "runners/run_one.h"
#include "runners/say.h"
#include "runners/signals.h"

typedef struct view {
  pl_progress progress;
  int64_t first_step; /* of this attempt */
  double val_loss;
} view;

static void on_progress(void *self, int64_t step, int64_t steps, double train_loss, double val_loss) {
  view *v = self;
  if (v->first_step < 0) v->first_step = step - 1;
  if (!isnan(val_loss)) v->val_loss = val_loss;
  char text[128];
  snprintf(text, sizeof text, "step %" PRId64 "/%" PRId64 ", train %.4f, val %.4f", step, steps, train_loss,
           v->val_loss);
  pl_progress_show(&v->progress, (double)(step - v->first_step) / (double)(steps - v->first_step), text);
}

/* {"id": ..., "state": ..., "steps": ...}, one line; also of a dry run, whose state is what is there already. */
static pl_status print_json(const pl_plan *p, pl_run_state state, const pl_outcome *out, const pl_profile *profile,
                            pl_err *e) {
  pl_str text = {0};
  pl_json *json = pl_json_new_object();
  char id[PL_ID_SIZE];
  pl_hash_hex(p->jobs[0].id, id);
  bool ok = pl_json_set(json, "id", pl_json_new_string(id)) && pl_json_set(json, "dir", pl_json_new_string(p->dir)) &&
            pl_json_set(json, "state", pl_json_new_string(pl_run_state_name(state)));
  if (ok && out != NULL)
    ok = pl_json_set(json, "steps", pl_json_new_int(out->steps)) &&
         pl_json_set(json, "tokens", pl_json_new_int(out->tokens)) &&
         pl_json_set(json, "initial_val_loss", pl_json_new_number(out->initial_val_loss)) &&
         pl_json_set(json, "best_val_loss", pl_json_new_number(out->best_val_loss)) &&
         pl_json_set(json, "final_val_loss", pl_json_new_number(out->final_val_loss)) &&
         pl_json_set(json, "tokens_per_second", pl_json_new_number(out->tokens_per_second)) &&
         pl_json_set(json, "reason", pl_json_new_string(out->reason));
  if (ok && profile != NULL) ok = pl_json_set(json, "profile", pl_profile_json(profile));
  pl_json_write_canonical(json, &text);
  pl_str_append(&text, "\n");
  text.failed |= !ok;
  pl_json_release(json);
  return pl_print(&text, e);
}

static pl_status print_result(const pl_plan *p, const pl_run_one_result *r, const pl_profile *profile, pl_err *e) {
  const pl_outcome *out = &r->outcome;
  char rate[16];
  printf("%s: %" PRId64 " steps", pl_run_state_name(r->state), out->steps);
  if (isfinite(out->final_val_loss)) printf(", val loss %.4f", out->final_val_loss);
  printf(" (best %.4f, initial %.4f)", out->best_val_loss, out->initial_val_loss);
  if (isfinite(out->tokens_per_second)) printf(", %s tokens/s", pl_format_count(out->tokens_per_second, rate));
  printf("%s%s\n", out->reason[0] != '\0' ? "; " : "", out->reason);
  printf("results: %s\n", p->dir);
  pl_str text = {0};
  if (profile != NULL) pl_profile_write(profile, &text);
  return profile != NULL ? pl_print(&text, e) : PL_OK;
}

/* Rank 0 leads, the others follow; with one process rank 0 is alone. */
static pl_status train_together(const pl_options *o, pl_plan *p, pl_world *world, pl_profile *profile,
                                pl_run_one_result *r, pl_err *e) {
  view v = {.first_step = -1, .val_loss = (double)NAN};
  pl_signals_install(true);
  if (world->rank > 0) return pl_run_follow(world, pl_signals_stop(), r, e);
  v.progress = pl_progress_begin(o->quiet);
  const pl_run_one_args args = {.sweep_dir = p->dir,
                                .data_root = p->data_root,
                                .id = p->jobs[0].id,
                                .profile = o->profile ? profile : NULL,
                                .stop = pl_signals_stop(),
                                .world = world,
                                .progress = on_progress,
                                .progress_self = &v};
  pl_status st = pl_run_one(&args, r, e);
  pl_progress_end(&v.progress);
  return st;
}

static pl_status train(const pl_options *o, pl_plan *p, pl_world *world, pl_err *e) {
  pl_run_one_result r;
  pl_profile profile = {0};
  pl_status st = train_together(o, p, world, &profile, &r, e);
  if (st != PL_OK) {
    pl_ranks_end(world, PL_FAIL, e);
    return PL_FAIL;
  }
  if (r.elsewhere)
    return world->rank > 0 ? PL_FAIL : pl_fail(e, PL_FAIL, "%s: the run is being trained by another process", p->dir);
  const pl_profile *shown = o->profile ? &profile : NULL;
  if (world->rank == 0) st = o->json ? print_json(p, r.state, &r.outcome, shown, e) : print_result(p, &r, shown, e);
  if (st != PL_OK) return st;
  if (r.state == PL_RUN_STOPPED) return PL_STOPPED;
  return r.state == PL_RUN_DIVERGED && o->strict_diverged ? PL_FAIL : PL_OK;
}

static pl_status check_ranks(pl_plan *p, const pl_world *world, pl_err *e) {
  const pl_sweep_run *run = NULL;
  pl_sweep_rewind(p->sweep);
  pl_status st = pl_sweep_next(p->sweep, &run, e);
  if (st != PL_OK || run == NULL || pl_run_config_check_ranks(run->config, world->size, e) == PL_OK) return st;
  return pl_err_prefix(e, "%s", pl_sweep_path(p->sweep));
}

static pl_status check_gpu(const pl_plan *p, pl_err *e) {
  size_t count = 0;
  return pl_plan_needs_gpu(p) != NULL ? pl_cuda_gpus(NULL, 0, &count, e) : PL_OK;
}

/* Everything that can be refused, then the directory. */
static pl_status prepare(const pl_options *o, pl_plan *p, const pl_world *world, pl_err *e) {
  pl_options any_count = *o; /* the refusal below says more than the one of --max-runs */
  any_count.yes = true;
  pl_status st = PL_OK;
  if (o->profile && o->dry_run)
    PL_TRY(pl_fail(e, PL_BAD, "--profile: saw it with --dry-run, which trains nothing; allowed: one of the two"));
  PL_TRY(pl_plan_make(&any_count, o->args[0], p, e));
  if (p->count != 1)
    PL_TRY(pl_fail(e, PL_BAD, "%s: holds %zu runs; allowed: one (`pipelag run` takes sweeps)", o->args[0], p->count));
  PL_TRY(check_ranks(p, world, e));
  if (!o->dry_run) PL_TRY(check_gpu(p, e));
  if (!o->dry_run)
    st = pl_plan_freeze(p, e);
  else if (o->json)
    st = print_json(p, pl_run_state_of(p->dir, p->jobs[0].id), NULL, NULL, e);
  else
    printf("1 run %016" PRIx64 " in %s\n", p->jobs[0].id, p->dir);
out:
  return st;
}

static pl_status run(const pl_options *o, pl_err *e) {
  pl_plan plan = {0};
  pl_world *world = NULL;
  pl_status st = PL_OK;
  PL_TRY(pl_world_open(&world, e));
  if (world->rank == 0) st = prepare(o, &plan, world, e);
  PL_TRY(world->type->agree(world, st, e));
  if (!o->dry_run) st = train(o, &plan, world, e);
out:
  pl_ranks_close(world, e);
  pl_plan_free(&plan);
  return st;
}

const pl_command pl_command_train = {
    .name = "train",
    .arguments = "RUN.json",
    .summary = "Train one run, under mpirun with its stages on several processes; run it again to resume",
    .options = "SonqDrJ8",
    .min_args = 1,
    .max_args = 1,
    .together = true,
    .run = run};
