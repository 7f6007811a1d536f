/* pipelag analyze DIR: the gap table. */
#include "analysis/tables.h"
#include "core/base/memory.h"
#include "runners/command.h"
#include "runners/gap_options.h"
#include "runners/registries.h"
#include "runners/say.h"

static pl_status print_table(const pl_options *o, const pl_gap_table *t, pl_err *e) {
  pl_str text = {0};
  if (o->json) {
    pl_json *json = pl_table_json(t);
    if (json == NULL) return pl_fail(e, PL_FAIL, "out of memory for the table");
    pl_json_write_pretty(json, &text);
    pl_json_release(json);
  } else if (o->csv) {
    pl_table_csv(t, &text);
  } else {
    pl_table_text(t, &text);
  }
  return pl_print(&text, e);
}

static pl_status run(const pl_options *o, pl_err *e) {
  pl_registries registries = pl_registries_all();
  pl_catalog c = {0};
  pl_gap_options options;
  pl_gap_table table = {0};
  char *key = NULL;
  pl_status st = PL_OK;
  PL_TRY(pl_gap_options_read(o, &options, &key, e));
  PL_TRY(pl_catalog_open(&registries, o->args[0], true, pl_say_stderr, NULL, &c, e));
  PL_TRY(pl_gap_compute(&c, &options, &table, e));
  PL_TRY(print_table(o, &table, e));
out:
  pl_gap_free(&table);
  pl_catalog_free(&c);
  pl_free(key);
  return st;
}

const pl_command pl_command_analyze = {.name = "analyze",
                                       .arguments = "DIR",
                                       .summary = "Print what delay costs each optimizer and what corrections win back",
                                       .options = "JCaA",
                                       .min_args = 1,
                                       .max_args = 1,
                                       .run = run};
