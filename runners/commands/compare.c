/* pipelag compare A B: two sweep files, result directories or collected files side by side. */
#include "analysis/compare.h"

#include <string.h>

#include "analysis/join.h"
#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/h5_file.h"
#include "runners/command.h"
#include "runners/gap_options.h"
#include "runners/registries.h"
#include "runners/say.h"

/* What one argument opens. */
typedef struct opened {
  pl_side side;
  pl_catalog catalog;
  pl_arms arms;
  pl_sweep *sweep;
} opened;

/* Results: a directory, or a file that one was collected into. */
static pl_status open_directory(const pl_registries *r, const pl_gap_options *o, opened *x, pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(pl_catalog_open_any(r, x->side.name, pl_say_stderr, NULL, &x->catalog, e));
  PL_TRY(pl_arms_build(&x->catalog, o->all, o->select_on, &x->arms, e));
  x->side.arms = &x->arms;
  for (size_t i = 0; i < x->catalog.count; i++) {
    const pl_catalog_run *run = &x->catalog.runs[i];
    if (run->document != NULL && (run->current || o->all)) PL_TRY(pl_side_add(&x->side, run->id, run->config, run, e));
  }
out:
  return st;
}

static pl_status open_file(const pl_registries *r, opened *x, pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(pl_sweep_load(r, x->side.name, (pl_sets){0}, &x->sweep, e));
  for (;;) {
    const pl_sweep_run *run = NULL;
    PL_TRY(pl_sweep_next(x->sweep, &run, e));
    if (run == NULL) break;
    PL_TRY(pl_side_add(&x->side, run->id, run->config, NULL, e));
  }
out:
  return st;
}

static pl_status open_side(const pl_registries *r, const pl_gap_options *o, const char *name, opened *x, pl_err *e) {
  x->side.name = name;
  pl_status st = pl_path_is_folder(name) || pl_h5_is_file(name) ? open_directory(r, o, x, e) : open_file(r, x, e);
  pl_side_sort(&x->side);
  return st;
}

static void close_side(opened *x) {
  pl_side_free(&x->side);
  pl_arms_free(&x->arms);
  pl_catalog_free(&x->catalog);
  pl_sweep_free(x->sweep);
}

static pl_status print(const pl_options *o, const pl_comparison *c, pl_err *e) {
  pl_str text = {0};
  if (o->json) {
    pl_json *json = pl_comparison_json(c);
    if (json == NULL) return pl_fail(e, PL_FAIL, "out of memory for the comparison");
    pl_json_write_pretty(json, &text);
    pl_json_release(json);
  } else if (o->csv) {
    pl_sheet_csv(c->arms.count > 0 ? &c->arms : &c->keys, &text);
  } else {
    pl_comparison_text(c, &text);
  }
  return pl_print(&text, e);
}

static pl_status run(const pl_options *o, pl_err *e) {
  pl_registries registries = pl_registries_all();
  pl_gap_choice choice = {0};
  opened a = {0}, b = {0};
  pl_comparison c = {0};
  pl_status st = PL_OK;
  PL_TRY(pl_gap_choice_read(o, &choice, e));
  if (choice.gap.at_key != NULL && strcmp(choice.gap.at_key, "optimizer.lr") != 0)
    PL_TRY(
        pl_fail(e, PL_BAD, "--at: saw \"%s\"; allowed: optimizer.lr=VALUE, since compare pairs all other keys", o->at));
  PL_TRY(open_side(&registries, &choice.gap, o->args[0], &a, e));
  PL_TRY(open_side(&registries, &choice.gap, o->args[1], &b, e));
  PL_TRY(pl_compare(&a.side, &b.side, &choice.gap, &c, e));
  PL_TRY(print(o, &c, e));
out:
  pl_comparison_free(&c);
  close_side(&a);
  close_side(&b);
  pl_gap_choice_free(&choice);
  return st;
}

const pl_command pl_command_compare = {.name = "compare",
                                       .arguments = "A B",
                                       .summary = "Compare two sweep files, result directories or collected files",
                                       .options = "JCaA1",
                                       .min_args = 2,
                                       .max_args = 2,
                                       .run = run};
