/* pipelag schema [run|sweep]: JSON Schema for editors. */
#include <string.h>

#include "runners/command.h"
#include "runners/launchers/slurm/section.h"
#include "runners/registries.h"
#include "runners/say.h"

/* The sweep's schema with that of the section that only this floor knows. */
static pl_json *sweep_schema(const pl_registries *r) {
  pl_json *schema = pl_sweep_schema(r);
  return pl_json_keep(schema, pl_json_set_path(schema, "properties.slurm", pl_slurm_schema()));
}

static pl_status run(const pl_options *o, pl_err *e) {
  const char *which = o->arg_count > 0 ? o->args[0] : "sweep";
  pl_registries registries = pl_registries_all();
  pl_json *schema = NULL;
  if (strcmp(which, "sweep") == 0)
    schema = sweep_schema(&registries);
  else if (strcmp(which, "run") == 0)
    schema = pl_run_config_schema(&registries);
  else
    return pl_fail(e, PL_BAD, "schema: saw \"%s\"; allowed: run, sweep", which);
  if (schema == NULL) return pl_fail(e, PL_FAIL, "out of memory for the schema");
  pl_str text = {0};
  pl_json_write_pretty(schema, &text);
  pl_json_release(schema);
  return pl_print(&text, e);
}

const pl_command pl_command_schema = {.name = "schema",
                                      .arguments = "[run|sweep]",
                                      .summary = "Print the JSON Schema of run or sweep files, for editors",
                                      .options = "",
                                      .min_args = 0,
                                      .max_args = 1,
                                      .run = run};
