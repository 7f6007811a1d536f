/* pipelag report DIR...: tables and plots into DIR/report. */
#include "analysis/report.h"
#include "analysis/join.h"
#include "core/base/fs.h"
#include "core/base/memory.h"
#include "runners/command.h"
#include "runners/gap_options.h"
#include "runners/registries.h"
#include "runners/say.h"

static pl_status run(const pl_options *o, pl_err *e) {
  pl_registries registries = pl_registries_all();
  pl_joined joined = {0};
  pl_gap_choice choice = {0};
  char *folder = NULL;
  pl_status st = PL_OK;
  PL_TRY(pl_gap_choice_read(o, &choice, e));
  PL_TRY(pl_joined_open(&registries, o->args, o->arg_count, pl_say_stderr, NULL, &joined, e));
  if (o->output != NULL)
    PL_TRY(pl_strdup(o->output, &folder, e));
  else
    PL_TRY(pl_path_join(o->args[0], "report", &folder, e));
  PL_TRY(pl_report_write(&joined.all, &joined.warnings, &choice.gap, folder, pl_say_stdout, NULL, e));
out:
  pl_joined_free(&joined);
  pl_gap_choice_free(&choice);
  pl_free(folder);
  return st;
}

const pl_command pl_command_report = {.name = "report",
                                      .arguments = "DIR...",
                                      .summary =
                                          "Write tables and plots (Markdown, CSV, JSON, SVG, PNG) into DIR/report",
                                      .options = "oaA1234",
                                      .min_args = 1,
                                      .max_args = PL_MAX_ARGS,
                                      .run = run};
