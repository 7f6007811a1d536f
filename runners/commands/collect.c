/* pipelag collect DIR: the whole sweep in one HDF5 file. */
#include <stdio.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/curves.h"
#include "runners/command.h"
#include "runners/registries.h"
#include "runners/say.h"

static pl_status run(const pl_options *o, pl_err *e) {
  pl_registries registries = pl_registries_all();
  pl_catalog c = {0};
  char *path = NULL;
  pl_status st = PL_OK;
  PL_TRY(pl_catalog_open(&registries, o->args[0], true, pl_say_stderr, NULL, &c, e));
  if (o->output != NULL)
    PL_TRY(pl_strdup(o->output, &path, e));
  else
    PL_TRY(pl_path_join(o->args[0], "sweep.h5", &path, e));
  PL_TRY(pl_curves_collect(&c, path, pl_say_stderr, NULL, e));
  if (!o->quiet) printf("%s\n", path);
out:
  pl_catalog_free(&c);
  pl_free(path);
  return st;
}

const pl_command pl_command_collect = {.name = "collect",
                                       .arguments = "DIR",
                                       .summary =
                                           "Pack all curves and configs into one HDF5 file (default DIR/sweep.h5)",
                                       .options = "oq",
                                       .min_args = 1,
                                       .max_args = 1,
                                       .run = run};
