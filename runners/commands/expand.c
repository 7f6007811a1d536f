/* pipelag expand SWEEP.json: what would run. Count first, then the runs; changes nothing. */
#include <inttypes.h>
#include <stdio.h>

#include "core/base/memory.h"
#include "runners/command.h"
#include "runners/launchers/slurm/section.h"
#include "runners/preflight.h"
#include "runners/registries.h"
#include "runners/run_table.h"

typedef struct walk {
  const pl_options *options;
  pl_sweep *sweep;
  pl_slurm_section *slurm;
  pl_preflight preflight;
  pl_run_table table;
} walk;

static pl_status next(walk *w, bool check, const pl_sweep_run **run, pl_err *e) {
  pl_status st = pl_sweep_next(w->sweep, run, e);
  if (st != PL_OK || *run == NULL || !check) return st;
  double cost = 0;
  const pl_slurm_config *slurm = NULL;
  st = pl_preflight_run(&w->preflight, (*run)->config, &cost, e);
  if (st == PL_OK) st = pl_slurm_section_for(w->slurm, (*run)->config, &slurm, e);
  if (st != PL_OK) pl_err_prefix(e, "%s: run %" PRIu64, pl_sweep_path(w->sweep), (*run)->index);
  return st;
}

/* The first walk checks every run, so that the count is right and nothing is printed of a bad sweep. */
static pl_status check_all(walk *w, pl_err *e) {
  const pl_sweep_run *run = NULL;
  pl_status st = PL_OK;
  for (;;) {
    st = next(w, true, &run, e);
    if (st != PL_OK || run == NULL) return st;
    pl_run_table_measure(&w->table, run);
  }
}

static void append_json(const pl_sweep_run *run, pl_str *out) {
  pl_json *config = pl_run_config_dump(run->config);
  pl_str_printf(out, "%s  {\"index\":%" PRIu64 ",\"id\":\"%016" PRIx64 "\",\"config\":", run->index > 0 ? ",\n" : "",
                run->index, run->id);
  pl_json_write_canonical(config, out);
  pl_str_append(out, "}");
  out->failed |= config == NULL;
  pl_json_release(config);
}

static pl_status print_all(walk *w, pl_err *e) {
  pl_str line = {0};
  pl_status st = PL_OK;
  pl_sweep_rewind(w->sweep);
  if (!w->options->json) pl_run_table_head(&w->table, &line);
  for (;;) {
    const pl_sweep_run *run = NULL;
    PL_TRY(pl_str_check(&line, e));
    fputs(pl_str_text(&line), stdout);
    line.length = 0;
    PL_TRY(next(w, false, &run, e));
    if (run == NULL) break;
    if (w->options->json)
      append_json(run, &line);
    else
      pl_run_table_row(&w->table, run, &line);
  }
out:
  pl_str_free(&line);
  return st;
}

static void print_count(const walk *w) {
  pl_sweep_counts c = pl_sweep_counted(w->sweep);
  if (w->options->json)
    printf("{\"runs\":%" PRIu64 ",\"excluded\":%" PRIu64 ",\"merged\":%" PRIu64, c.runs, c.excluded, c.merged);
  else
    printf("%" PRIu64 " runs (%" PRIu64 " excluded, %" PRIu64 " merged)\n", c.runs, c.excluded, c.merged);
}

/* More cannot be walked through in a day, or kept at 16 bytes a run. */
static pl_status check_count(const pl_sweep *sweep, pl_err *e) {
  const uint64_t most = 1000000000, count = pl_sweep_upper_count(sweep);
  if (count <= most) return PL_OK;
  return pl_fail(e, PL_BAD, "%s: expands to %s%" PRIu64 " runs; allowed: at most %" PRIu64, pl_sweep_path(sweep),
                 count == UINT64_MAX ? "more than " : "up to ", count, most);
}

static pl_status load_slurm(walk *w, const pl_registries *r, pl_err *e) {
  pl_status st = pl_slurm_section_load(r, pl_json_get(pl_sweep_document(w->sweep), "slurm"), &w->slurm, e);
  return st == PL_OK ? PL_OK : pl_err_prefix(e, "%s", pl_sweep_path(w->sweep));
}

static pl_status run(const pl_options *o, pl_err *e) {
  pl_registries registries = pl_registries_all();
  walk w = {.options = o};
  char *root = NULL;
  pl_status st = PL_OK;
  PL_TRY(pl_sweep_load(&registries, o->args[0], pl_options_sets(o), &w.sweep, e));
  PL_TRY(check_count(w.sweep, e));
  PL_TRY(load_slurm(&w, &registries, e));
  PL_TRY(pl_data_root(o->data_root, o->args[0], &root, e));
  w.preflight.data_root = root;
  PL_TRY(pl_run_table_begin(w.sweep, &w.table, e));
  PL_TRY(check_all(&w, e));
  print_count(&w);
  if (o->json && !o->quiet) printf(",\"list\":[\n");
  if (!o->quiet) PL_TRY(print_all(&w, e));
  if (o->json) printf("%s}\n", o->quiet ? "" : "\n]");
out:
  pl_run_table_free(&w.table);
  pl_preflight_free(&w.preflight);
  pl_free(root);
  pl_slurm_section_free(w.slurm);
  pl_sweep_free(w.sweep);
  return st;
}

const pl_command pl_command_expand = {.name = "expand",
                                      .arguments = "SWEEP.json",
                                      .summary = "Check a sweep and print what would run; -q prints the count alone",
                                      .options = "SJqnr",
                                      .min_args = 1,
                                      .max_args = 1,
                                      .run = run};
