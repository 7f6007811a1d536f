/* pipelag report DIR: tables and plots into DIR/report. */
#include "analysis/report.h"
#include "core/base/fs.h"
#include "core/base/memory.h"
#include "runners/command.h"
#include "runners/gap_options.h"
#include "runners/registries.h"
#include "runners/say.h"

static pl_status run(const pl_options *o, pl_err *e) {
  pl_registries registries = pl_registries_all();
  pl_catalog c = {0};
  pl_gap_options options;
  char *key = NULL, *folder = NULL;
  pl_status st = PL_OK;
  PL_TRY(pl_gap_options_read(o, &options, &key, e));
  PL_TRY(pl_catalog_open(&registries, o->args[0], true, pl_say_stderr, NULL, &c, e));
  if (o->output != NULL)
    PL_TRY(pl_strdup(o->output, &folder, e));
  else
    PL_TRY(pl_path_join(o->args[0], "report", &folder, e));
  PL_TRY(pl_report_write(&c, &options, folder, pl_say_stdout, NULL, e));
out:
  pl_catalog_free(&c);
  pl_free(key);
  pl_free(folder);
  return st;
}

const pl_command pl_command_report = {.name = "report",
                                      .arguments = "DIR",
                                      .summary =
                                          "Write tables and plots (Markdown, CSV, JSON, SVG, PNG) into DIR/report",
                                      .options = "oaA",
                                      .min_args = 1,
                                      .max_args = 1,
                                      .run = run};
