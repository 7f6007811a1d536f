#include "runners/checkpoint_source.h"

#include <inttypes.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "core/train/checkpoint.h"
#include "core/train/trainer.h"
#include "runners/plan.h"
#include "runners/registries.h"
#include "runners/say.h"

pl_status pl_checkpoint_folder(const char *dir, uint64_t id, char **out, int64_t *newest, pl_err *e) {
  pl_status st = pl_run_path(dir, id, "ckpt", out, e);
  if (st == PL_OK) *newest = pl_checkpoints_newest(*out);
  return st;
}

static pl_status has_checkpoint(const pl_states *s, size_t index, bool *out, pl_err *e) {
  char *folder = NULL;
  int64_t newest = -1;
  pl_status st = pl_checkpoint_folder(s->dir, s->runs[index].id, &folder, &newest, e);
  *out = newest >= 0;
  pl_free(folder);
  return st;
}

static pl_status say_none(const char *dir, const char *whose, pl_err *e) {
  return pl_fail(e, PL_NOTHING,
                 "%s: %s no checkpoint; one is written when a run is stopped, and every train.checkpoint_every updates",
                 dir, whose);
}

static pl_status find_run(const pl_options *o, pl_checkpoint_source *out, pl_err *e) {
  pl_states s = {0};
  pl_status st = PL_OK;
  size_t index = 0;
  int64_t newest = -1;
  PL_TRY(pl_states_read(out->dir, &s, e));
  if (o->arg_count > 2) {
    PL_TRY(pl_states_find(&s, o->args[2], &index, e));
  } else {
    st = pl_states_find_only(&s, "checkpoints", has_checkpoint, &index, e);
    if (st == PL_NOTHING) st = say_none(s.dir, "its runs have", e);
    if (st != PL_OK) goto out;
  }
  out->index = index;
  out->id = s.runs[index].id;
  pl_hash_hex(out->id, out->hex);
  PL_TRY(pl_strdup(s.name, &out->name, e));
  PL_TRY(pl_checkpoint_folder(s.dir, out->id, &out->folder, &newest, e));
  if (newest < 0) {
    pl_str whose = {0};
    pl_str_printf(&whose, "run %s has", out->hex);
    st = say_none(s.dir, pl_str_text(&whose), e);
    pl_str_free(&whose);
  }
out:
  pl_states_free(&s);
  return st;
}

static pl_status read_config(pl_checkpoint_source *s, pl_err *e) {
  const pl_registries registries = pl_registries_all();
  pl_status st = PL_OK;
  char *path = NULL;
  PL_TRY(pl_run_path(s->dir, s->id, "config.json", &path, e));
  PL_TRY(pl_alloc(1, sizeof *s->config, "a configuration", &s->config, e));
  PL_TRY(pl_json_read(path, &s->document, e));
  PL_TRY(pl_run_config_from_json(&registries, s->document, path, s->config, e));
  PL_TRY(pl_run_config_check(s->config, e));
  if (pl_run_config_id(s->config) != s->id)
    st = pl_fail(e, PL_FAIL, "%s: belongs to another run than its folder says; allowed: an unchanged file", path);
out:
  pl_free(path);
  return st;
}

/* The vocabulary decides which layers a stage has. */
static pl_status read_data(const pl_options *o, pl_checkpoint_source *s, pl_err *e) {
  const pl_dataset_type *type = (const pl_dataset_type *)s->config->data.type;
  pl_model_shape shape = {0};
  pl_dataset *data = NULL;
  pl_status st = PL_OK;
  PL_TRY(pl_plan_data_root(o, s->dir, &s->data_root, e));
  ((const pl_model_type *)s->config->model.type)->shape(s->config->model.config, &shape);
  if (!shape.reads_tokens) goto out;
  PL_TRY(pl_data_open(s->config, s->data_root, shape.context, &data, e));
  s->vocab = type->vocab(data);
  type->close(data);
out:
  return st;
}

static pl_status read_checkpoint(pl_checkpoint_source *s, pl_err *e) {
  pl_status st = PL_OK;
  bool found = false;
  PL_TRY(pl_device_open("cpu", PL_PRECISION_FP32, 1, &s->device, e));
  PL_TRY(pl_alloc(1, sizeof *s->saved, "a checkpoint", &s->saved, e));
  const pl_saved_args args = {.config = s->config, .root = s->data_root, .vocab = s->vocab, .device = s->device};
  PL_TRY(pl_saved_open(&args, s->saved, e));
  PL_TRY(pl_saved_read(s->saved, s->folder, pl_say_stderr, NULL, &found, e));
  if (!found) st = pl_fail(e, PL_FAIL, "%s: run %s has no checkpoint that is whole", s->dir, s->hex);
out:
  return st;
}

pl_status pl_checkpoint_source_open(const pl_options *o, pl_checkpoint_source *out, pl_err *e) {
  pl_status st = PL_OK;
  *out = (pl_checkpoint_source){.dir = o->args[1]};
  PL_TRY(find_run(o, out, e));
  PL_TRY(read_config(out, e));
  PL_TRY(read_data(o, out, e));
  PL_TRY(read_checkpoint(out, e));
out:
  return st;
}

void pl_checkpoint_source_close(pl_checkpoint_source *s) {
  if (s->saved) pl_saved_close(s->saved);
  pl_free(s->saved);
  if (s->device) pl_device_close(s->device);
  pl_free(s->data_root);
  pl_free(s->config);
  pl_json_release(s->document);
  pl_free(s->folder);
  pl_free(s->name);
  *s = (pl_checkpoint_source){0};
}
