/* pipelag export DIR: all curves and configurations in forms that other programs read. */
#include <stdio.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/export.h"
#include "runners/command.h"
#include "runners/registries.h"
#include "runners/say.h"

static pl_status read_format(const char *word, pl_curve_format *out, pl_err *e) {
  *out = PL_FORMAT_CSV;
  if (word == NULL) return PL_OK;
  if (pl_curve_format_find(word, out) && *out >= PL_FORMAT_CSV && *out <= PL_FORMAT_TENSORBOARD) return PL_OK;
  return pl_fail(e, PL_BAD, "--format: saw \"%s\"; allowed: csv, jsonl, tensorboard", word);
}

static pl_status run(const pl_options *o, pl_err *e) {
  pl_registries registries = pl_registries_all();
  pl_catalog c = {0};
  pl_curve_format format;
  char *folder = NULL;
  pl_status st = PL_OK;
  PL_TRY(read_format(o->format, &format, e));
  PL_TRY(pl_catalog_open_any(&registries, o->args[0], pl_say_stderr, NULL, &c, e));
  if (o->output != NULL)
    PL_TRY(pl_strdup(o->output, &folder, e));
  else if (c.collected != NULL)
    PL_TRY(pl_fail(e, PL_BAD, "%s: is a collected file; say with -o FOLDER where to export to", o->args[0]));
  else
    PL_TRY(pl_path_join(o->args[0], "export", &folder, e));
  PL_TRY(pl_export(&c, format, folder, pl_say_stderr, NULL, e));
  if (!o->quiet) printf("%s\n", folder);
out:
  pl_catalog_free(&c);
  pl_free(folder);
  return st;
}

const pl_command pl_command_export = {.name = "export",
                                      .arguments = "DIR",
                                      .summary = "Write all curves as CSV, JSON lines or TensorBoard event files",
                                      .options = "oqi",
                                      .min_args = 1,
                                      .max_args = 1,
                                      .run = run};
