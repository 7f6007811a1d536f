/* pipelag import FILE... -o DIR: curves and final figures that other programs made, for the analysis. */
#include <stdio.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/import.h"
#include "results/imported.h"
#include "runners/command.h"

static bool is_manifest(const char *path) {
  size_t length = strlen(path);
  return length > 5 && strcmp(path + length - 5, ".json") == 0;
}

/* JSON where it parses, else the text itself. */
static pl_status parse_value(const char *text, pl_json **out, pl_err *e) {
  pl_err own = {0};
  if (pl_json_parse(text, strlen(text), "value", out, &own) == PL_OK) return PL_OK;
  if (text[0] == '\0' || strpbrk(text, ",[]{}\"") != NULL)
    return pl_fail(e, PL_BAD, "\"%.100s\" is no value; allowed: one number, word or JSON value, as in '[3,2,1,0]'",
                   text);
  *out = pl_json_new_string(text);
  return *out != NULL ? PL_OK : pl_fail(e, PL_FAIL, "out of memory for a value");
}

static pl_status read_set(const char *text, pl_json *settings, pl_err *e) {
  pl_status st = PL_OK;
  const char *equals = strchr(text, '=');
  pl_str key = {0};
  pl_json *value = NULL, *object = pl_json_new_object();
  if (equals == NULL || equals == text)
    PL_TRY(pl_fail(e, PL_BAD, "no key with a value; allowed: key=value, as in optimizer.lr=3e-4"));
  pl_str_append_bytes(&key, text, (size_t)(equals - text));
  PL_TRY(pl_str_check(&key, e));
  PL_TRY(parse_value(equals + 1, &value, e));
  if (!pl_json_set(object, key.text, pl_json_retain(value))) PL_TRY(pl_fail(e, PL_FAIL, "out of memory for a value"));
  PL_TRY(pl_imported_merge(settings, object, "run", e));
out:
  if (st != PL_OK) pl_err_prefix(e, "--set %.200s", text);
  pl_json_release(object);
  pl_json_release(value);
  pl_str_free(&key);
  return st;
}

/* The names of series are cut off their copies in `texts`, which hold them. */
static pl_status read_maps(const pl_options *o, char **texts, pl_import_map *map, pl_err *e) {
  for (size_t i = 0; i < o->map_count; i++) {
    pl_status st = pl_strdup(o->map_texts[i], &texts[i], e);
    if (st != PL_OK) return st;
    char *equals = strchr(texts[i], '=');
    if (equals == NULL || equals[1] == '\0')
      return pl_fail(e, PL_BAD, "--map: saw \"%.100s\"; allowed: SERIES=NAME, as in val/loss=eval_loss", texts[i]);
    *equals = '\0';
    st = pl_import_map_set(map, texts[i], equals + 1, "--map", e);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

/* The files that are no manifests are the parts of one run. */
static pl_status add_files(const pl_options *o, pl_import *m, pl_import_spec *spec, char **name, pl_err *e) {
  pl_status st = PL_OK;
  const char *paths[PL_MAX_ARGS];
  spec->paths = paths;
  for (size_t i = 0; i < o->arg_count; i++) {
    if (is_manifest(o->args[i]))
      PL_TRY(pl_import_add_manifest(m, o->args[i], spec->config, &spec->map, name, e));
    else
      paths[spec->path_count++] = o->args[i];
  }
  spec->where = "run";
  if (spec->path_count > 0) st = pl_import_add(m, spec, e);
out:
  return st;
}

static pl_status choose_folder(const pl_options *o, const char *name, char **out, pl_err *e) {
  if (o->output != NULL) return pl_strdup(o->output, out, e);
  if (name != NULL) return pl_path_join("results", name, out, e);
  return pl_fail(e, PL_BAD, "--output: is missing; allowed: the directory for imported runs");
}

static pl_status run(const pl_options *o, pl_err *e) {
  pl_status st = PL_OK;
  pl_import *m = NULL;
  pl_import_counts counts = {0};
  pl_import_spec spec = {0};
  char *maps[PL_MAX_SETS] = {NULL}, *name = NULL, *folder = NULL;
  pl_json *settings = pl_json_new_object();
  if (settings == NULL) PL_TRY(pl_fail(e, PL_FAIL, "out of memory for the settings"));
  for (size_t i = 0; i < o->set_count; i++) PL_TRY(read_set(o->set_texts[i], settings, e));
  PL_TRY(read_maps(o, maps, &spec.map, e));
  if (o->format != NULL && !pl_curve_format_find(o->format, &spec.format))
    PL_TRY(
        pl_fail(e, PL_BAD, "--format: saw \"%s\"; allowed: auto, csv, jsonl, tensorboard, llmc, nanogpt", o->format));
  spec.config = settings;
  PL_TRY(pl_import_begin(&m, e));
  PL_TRY(add_files(o, m, &spec, &name, e));
  PL_TRY(choose_folder(o, name, &folder, e));
  if (!o->dry_run) PL_TRY(pl_import_commit(m, folder, name, &counts, e));
  if (o->dry_run)
    printf("%zu run%s could be imported into %s\n", pl_import_count(m), pl_import_count(m) == 1 ? "" : "s", folder);
  else if (!o->quiet)
    printf("%zu run%s imported into %s, %zu %s there\n", counts.added, counts.added == 1 ? "" : "s", folder,
           counts.known, counts.known == 1 ? "was" : "were");
out:
  pl_import_end(m);
  for (size_t i = 0; i < PL_MAX_SETS; i++) pl_free(maps[i]);
  pl_json_release(settings);
  pl_free(folder);
  pl_free(name);
  return st;
}

const pl_command pl_command_import = {.name = "import",
                                      .arguments = "FILE...",
                                      .summary =
                                          "Take in curves made elsewhere: CSV, JSON lines, TensorBoard, text logs",
                                      .options = "Sonqki",
                                      .min_args = 1,
                                      .max_args = PL_MAX_ARGS,
                                      .run = run};
