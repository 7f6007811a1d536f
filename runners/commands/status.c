/* pipelag status DIR: counts by state; changes nothing. */
#include <inttypes.h>
#include <stdio.h>

#include "results/catalog.h"
#include "runners/command.h"
#include "runners/registries.h"
#include "runners/say.h"

static void print_runs(const pl_catalog *c, bool all) {
  for (size_t i = 0; i < c->count; i++) {
    const pl_catalog_run *r = &c->runs[i];
    if (!r->current && !all) continue;
    printf("%6" PRIu64 "  %016" PRIx64 "  %-9s  %s\n", r->index, r->id, pl_run_state_name(r->state), r->label);
    if (r->state == PL_RUN_FAILED && r->has_result) printf("        %s\n", r->result.error);
  }
}

static void print_counts(const pl_catalog *c, size_t runs, const size_t *counts) {
  printf("%s: %zu runs", c->name, runs);
  for (int s = 0; s < PL_RUN_STATES; s++)
    if (counts[s] > 0) printf(", %zu %s", counts[s], pl_run_state_name((pl_run_state)s));
  printf("\n");
}

static pl_status print_json(const pl_catalog *c, size_t runs, const size_t *counts, pl_err *e) {
  pl_str text = {0};
  pl_json *json = pl_json_new_object();
  bool ok = pl_json_set(json, "name", pl_json_new_string(c->name)) &&
            pl_json_set(json, "runs", pl_json_new_int((int64_t)runs));
  for (int s = 0; s < PL_RUN_STATES; s++)
    ok = ok && pl_json_set(json, pl_run_state_name((pl_run_state)s), pl_json_new_int((int64_t)counts[s]));
  pl_json_write_canonical(json, &text);
  pl_str_append(&text, "\n");
  text.failed |= !ok;
  pl_json_release(json);
  return pl_print(&text, e);
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
  if (o->json)
    st = print_json(&c, current, counts, e);
  else
    print_counts(&c, current, counts);
  if (o->verbose > 0 && !o->json) print_runs(&c, o->all);
  bool bad = counts[PL_RUN_FAILED] + counts[PL_RUN_LOST] > 0;
  pl_catalog_free(&c);
  return st == PL_OK && bad ? PL_FAIL : st;
}

const pl_command pl_command_status = {.name = "status",
                                      .arguments = "DIR",
                                      .summary = "Count the runs of a result directory by state; -v lists them",
                                      .options = "JvA",
                                      .min_args = 1,
                                      .max_args = 1,
                                      .run = run};
