/* pipelag status DIR: counts by state; changes nothing. */
#include <inttypes.h>
#include <stdio.h>

#include "results/catalog.h"
#include "runners/command.h"
#include "runners/registries.h"
#include "runners/say.h"

static void print_runs(const pl_catalog *c) {
  for (size_t i = 0; i < c->count; i++) {
    const pl_catalog_run *r = &c->runs[i];
    printf("%6" PRIu64 "  %016" PRIx64 "  %-9s  %s\n", r->index, r->id, pl_run_state_name(r->state), r->label);
    if (r->state == PL_RUN_FAILED && r->has_result) printf("        %s\n", r->result.error);
  }
}

static void print_counts(bool json, const pl_catalog *c, size_t runs, const size_t *counts) {
  printf(json ? "{\"name\":\"%s\",\"runs\":%zu" : "%s: %zu runs", c->name, runs);
  for (int s = 0; s < PL_RUN_STATES; s++) {
    const char *name = pl_run_state_name((pl_run_state)s);
    if (json)
      printf(",\"%s\":%zu", name, counts[s]);
    else if (counts[s] > 0)
      printf(", %zu %s", counts[s], name);
  }
  printf(json ? "}\n" : "\n");
}

static pl_status run(const pl_options *o, pl_err *e) {
  pl_registries registries = pl_registries_all();
  pl_catalog c;
  pl_status st = pl_catalog_open(&registries, o->args[0], false, pl_say_stderr, NULL, &c, e);
  if (st != PL_OK) return st;
  size_t counts[PL_RUN_STATES] = {0}, current = 0;
  for (size_t i = 0; i < c.count; i++) {
    if (!c.runs[i].current && !o->all) continue;
    counts[c.runs[i].state]++;
    current++;
  }
  print_counts(o->json, &c, current, counts);
  if (o->verbose > 0) print_runs(&c);
  bool bad = counts[PL_RUN_FAILED] + counts[PL_RUN_LOST] > 0;
  pl_catalog_free(&c);
  return bad ? PL_FAIL : PL_OK;
}

const pl_command pl_command_status = {.name = "status",
                                      .arguments = "DIR",
                                      .summary = "Count the runs of a result directory by state; -v lists them",
                                      .options = "JvA",
                                      .min_args = 1,
                                      .max_args = 1,
                                      .run = run};
