/* The result directory of a converted checkpoint. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/figures.h"
#include "results/json_file.h"
#include "runners/checkpoint_conversion.h"

pl_json *pl_conversion_origin(const pl_conversion *c) {
  pl_json *o = pl_json_new_object();
  bool ok = pl_json_set(o, "dir", pl_json_new_string(c->from.dir)) &&
            pl_json_set(o, "id", pl_json_new_string(c->from.hex)) &&
            pl_json_set(o, "step", pl_json_new_int(c->from.saved->counters.step)) &&
            pl_json_set(o, "stages", pl_json_new_int(c->from.config->pipeline.stages)) &&
            pl_json_set(o, "restart_ring", pl_json_new_bool(c->work.restart_ring));
  return pl_json_keep(o, ok);
}

/* The run rests on the attempts of the one that it was made from. */
static pl_status write_meta(const pl_conversion *c, pl_err *e) {
  pl_status st = PL_OK;
  char *from = NULL, *to = NULL;
  pl_json *meta = NULL;
  PL_TRY(pl_run_path(c->from.dir, c->from.id, "meta.json", &from, e));
  PL_TRY(pl_run_path(c->plan.dir, c->plan.jobs[0].id, "meta.json", &to, e));
  if (pl_path_exists(from)) PL_TRY(pl_json_file_read(from, &meta, e));
  if (!meta) meta = pl_json_new_object();
  bool ok = pl_json_get(meta, "attempts") || pl_json_set(meta, "attempts", pl_json_new_array());
  ok = ok && pl_json_set(meta, "origin", pl_conversion_origin(c));
  ok = ok && pl_json_set(meta, "bitwise", pl_json_new_bool(c->bitwise && pl_json_bool(pl_json_get(meta, "bitwise"))));
  PL_TRY(pl_json_file_write(to, ok ? meta : NULL, e));
out:
  pl_json_release(meta);
  pl_free(from);
  pl_free(to);
  return st;
}

/* It counts as stopped: `run` and `train` go on from its checkpoint. */
static pl_status write_result(const pl_conversion *c, pl_err *e) {
  const pl_counters *n = &c->from.saved->counters;
  pl_outcome out = pl_outcome_nothing;
  out.steps = n->step;
  out.tokens = n->step * c->config->train.batch_tokens;
  out.first_bad_step = n->first_bad_step;
  out.skipped = n->skipped;
  out.initial_val_loss = n->initial_val_loss;
  out.best_val_loss = n->best_val_loss;
  out.final_train_loss = n->train_loss;
  return pl_run_write_result(c->plan.dir, c->plan.jobs[0].id, PL_RUN_STOPPED, &out, NULL, e);
}

static pl_status fill_folder(pl_conversion *c, pl_err *e) {
  pl_status st = PL_OK;
  char *folder = NULL;
  PL_TRY(pl_plan_freeze(&c->plan, e));
  PL_TRY(pl_run_path(c->plan.dir, c->plan.jobs[0].id, "ckpt", &folder, e));
  PL_TRY(pl_make_folders(folder, e));
  PL_TRY(pl_repartition_write(&c->work, folder, e));
  PL_TRY(write_meta(c, e));
  PL_TRY(write_result(c, e));
  PL_TRY(pl_sync_all(c->plan.dir, e));
out:
  pl_free(folder);
  return st;
}

/* A directory without its checkpoint would train from the start, so that it gets its name last. */
pl_status pl_conversion_write(pl_conversion *c, pl_err *e) {
  pl_status st = PL_OK;
  pl_str temporary = {0};
  pl_str_printf(&temporary, "%s.tmp.%ld", c->dir, (long)getpid());
  PL_TRY(pl_str_check(&temporary, e));
  PL_TRY(pl_strdup(temporary.text, &c->plan.dir, e));
  PL_TRY(fill_folder(c, e));
  if (rename(c->plan.dir, c->dir) != 0) PL_TRY(pl_fail(e, PL_FAIL, "%s: cannot be made: %s", c->dir, strerror(errno)));
out:
  if (st != PL_OK && c->plan.dir) pl_remove_tree(c->plan.dir);
  pl_str_free(&temporary);
  return st;
}
