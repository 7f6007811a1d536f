/* pipelag expand SWEEP.json: what would run. Count first, then the runs; changes nothing. */
#include <inttypes.h>
#include <stdio.h>

#include "core/base/memory.h"
#include "runners/command.h"
#include "runners/preflight.h"
#include "runners/registries.h"

typedef struct walk {
  const pl_options *options;
  pl_sweep *sweep;
  pl_preflight preflight;
} walk;

static pl_status next(walk *w, bool check, const pl_sweep_run **run, pl_err *e) {
  pl_status st = pl_sweep_next(w->sweep, run, e);
  if (st != PL_OK || *run == NULL || !check) return st;
  double cost = 0;
  st = pl_preflight_run(&w->preflight, (*run)->config, &cost, e);
  if (st != PL_OK) pl_err_prefix(e, "%s: run %" PRIu64, pl_sweep_path(w->sweep), (*run)->index);
  return st;
}

/* The first walk checks every run, so that the count is right and nothing is printed of a bad sweep. */
static pl_status check_all(walk *w, pl_err *e) {
  const pl_sweep_run *run = NULL;
  pl_status st = PL_OK;
  do st = next(w, true, &run, e);
  while (st == PL_OK && run != NULL);
  return st;
}

static pl_status print_all(walk *w, pl_err *e) {
  const bool json = w->options->json;
  pl_str line = {0};
  pl_status st = PL_OK;
  pl_sweep_rewind(w->sweep);
  for (bool first = true;; first = false) {
    const pl_sweep_run *run = NULL;
    PL_TRY(next(w, false, &run, e));
    if (run == NULL) break;
    line.length = 0;
    if (json) {
      pl_json *config = pl_run_config_dump(run->config);
      pl_str_printf(&line, "%s  {\"index\":%" PRIu64 ",\"id\":\"%016" PRIx64 "\",\"config\":", first ? "" : ",\n",
                    run->index, run->id);
      pl_json_write_canonical(config, &line);
      pl_str_append(&line, "}");
      pl_json_release(config);
    } else {
      pl_str_printf(&line, "%6" PRIu64 "  %016" PRIx64 "  ", run->index, run->id);
      pl_sweep_label(w->sweep, run, &line);
      pl_str_append(&line, "\n");
    }
    PL_TRY(pl_str_check(&line, e));
    fputs(pl_str_text(&line), stdout);
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

static pl_status run(const pl_options *o, pl_err *e) {
  pl_registries registries = pl_registries_all();
  walk w = {.options = o};
  char *root = NULL;
  pl_status st = PL_OK;
  PL_TRY(pl_sweep_load(&registries, o->args[0], pl_options_sets(o), &w.sweep, e));
  PL_TRY(pl_data_root(o->data_root, o->args[0], &root, e));
  w.preflight.data_root = root;
  PL_TRY(check_all(&w, e));
  print_count(&w);
  if (o->json && !o->quiet) printf(",\"list\":[\n");
  if (!o->quiet) PL_TRY(print_all(&w, e));
  if (o->json) printf("%s}\n", o->quiet ? "" : "\n]");
out:
  pl_preflight_free(&w.preflight);
  pl_free(root);
  pl_sweep_free(w.sweep);
  return st;
}

const pl_command pl_command_expand = {.name = "expand",
                                      .arguments = "SWEEP.json",
                                      .summary = "Check a sweep and print what would run; -q prints the count alone",
                                      .options = "SJqr",
                                      .min_args = 1,
                                      .max_args = 1,
                                      .run = run};
