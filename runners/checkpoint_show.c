#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "core/train/checkpoint.h"
#include "core/train/checkpoint_files.h"
#include "runners/checkpoint_actions.h"
#include "runners/checkpoint_source.h"
#include "runners/say.h"

enum { MANIFEST_BYTES = 1 << 20 };

/* One checkpoint, as its files say without the run's configuration. */
typedef struct seen {
  uint64_t index, id;
  int64_t step, bytes;
  uint64_t stages;
  pl_err damage; /* PL_OK: it is whole */
} seen;

typedef struct view {
  const pl_options *options;
  pl_json *list; /* with --json */
  pl_str text;
  size_t count;
} view;

static pl_status path_of(const char *folder, int64_t step, size_t stage, char **out, pl_err *e) {
  char name[PL_CHECKPOINT_NAME];
  pl_checkpoint_name(step, stage, name);
  return pl_path_join(folder, name, out, e);
}

static void add_size(const char *path, seen *s) {
  struct stat info;
  if (stat(path, &info) == 0) s->bytes += info.st_size;
}

static pl_status check_stage(const char *path, const seen *s, size_t stage, uint64_t checksum, pl_err *e) {
  pl_status st = PL_OK;
  pl_real *staging = NULL;
  pl_stage_header h;
  PL_TRY(pl_stage_file_look(path, &h, e));
  const pl_stage_header wanted = {
      .run_id = s->id, .stage = stage, .stages = s->stages, .arrays = h.arrays, .size = h.size, .step = s->step};
  PL_TRY(pl_alloc(h.size, sizeof *staging, "a checkpoint", &staging, e));
  PL_TRY(pl_stage_file_read(path, &wanted, checksum, NULL, staging, e));
out:
  pl_free(staging);
  return st;
}

static pl_status check_manifest(const char *path, pl_str *bytes, seen *s, const uint64_t **checksums, pl_err *e) {
  pl_status st = PL_OK;
  pl_manifest_header h;
  char *content = NULL;
  size_t length = 0;
  PL_TRY(pl_file_read(path, MANIFEST_BYTES, &content, &length, e));
  pl_str_append_bytes(bytes, content, length);
  PL_TRY(pl_str_check(bytes, e));
  PL_TRY(pl_manifest_unpack(bytes, path, &h, checksums, e));
  s->stages = h.stages;
  if (h.run_id != s->id) st = pl_fail(e, PL_FAIL, "%s belongs to run %016" PRIx64, path, h.run_id);
out:
  pl_free(content);
  return st;
}

/* The first thing that is wrong is kept; the size is that of all files which are there. */
static pl_status look(const char *folder, seen *s, pl_err *e) {
  pl_status st = PL_OK;
  pl_str bytes = {0};
  const uint64_t *checksums = NULL;
  char *path = NULL;
  PL_TRY(path_of(folder, s->step, SIZE_MAX, &path, e));
  add_size(path, s);
  pl_status good = check_manifest(path, &bytes, s, &checksums, &s->damage);
  for (size_t p = 0; p < s->stages; p++) {
    pl_free(path);
    path = NULL;
    PL_TRY(path_of(folder, s->step, p, &path, e));
    add_size(path, s);
    if (good == PL_OK) good = check_stage(path, s, p, checksums[p], &s->damage);
  }
out:
  pl_free(path);
  pl_str_free(&bytes);
  return st;
}

static bool add_json(view *v, const seen *s) {
  char hex[PL_ID_SIZE];
  pl_hash_hex(s->id, hex);
  pl_json *o = pl_json_new_object();
  bool whole = s->damage.status == PL_OK;
  bool ok = pl_json_set(o, "index", pl_json_new_int((int64_t)s->index)) &&
            pl_json_set(o, "id", pl_json_new_string(hex)) && pl_json_set(o, "step", pl_json_new_int(s->step)) &&
            pl_json_set(o, "stages", pl_json_new_int((int64_t)s->stages)) &&
            pl_json_set(o, "bytes", pl_json_new_int(s->bytes)) && pl_json_set(o, "whole", pl_json_new_bool(whole)) &&
            pl_json_set(o, "damage", whole ? pl_json_new_null() : pl_json_new_string(s->damage.text));
  return pl_json_append(v->list, pl_json_keep(o, ok));
}

static void add(view *v, const seen *s) {
  if (v->count++ == 0) pl_str_append(&v->text, "run  id                      step  stages         bytes\n");
  if (v->options->json)
    v->text.failed |= !add_json(v, s);
  else
    pl_str_printf(&v->text, "%3" PRIu64 "  %016" PRIx64 "  %10" PRId64 "  %6" PRIu64 "  %12" PRId64 "  %s\n", s->index,
                  s->id, s->step, s->stages, s->bytes, s->damage.status == PL_OK ? "whole" : s->damage.text);
}

/* Newest first. */
static pl_status add_run(view *v, const pl_states *states, size_t index, pl_err *e) {
  pl_status st = PL_OK;
  char *folder = NULL;
  int64_t step = -1;
  PL_TRY(pl_checkpoint_folder(states->dir, states->runs[index].id, &folder, &step, e));
  while (step >= 0) {
    seen s = {.index = index, .id = states->runs[index].id, .step = step};
    PL_TRY(look(folder, &s, e));
    add(v, &s);
    PL_TRY(pl_checkpoints_below(folder, step, &step, e));
  }
out:
  pl_free(folder);
  return st;
}

static pl_status print(view *v, pl_err *e) {
  if (v->options->json) {
    const bool failed = v->text.failed;
    pl_str_free(&v->text);
    v->text.failed = failed;
    pl_json_write_canonical(v->list, &v->text);
    pl_str_append(&v->text, "\n");
  }
  return pl_print(&v->text, e);
}

pl_status pl_checkpoint_show(const pl_options *o, pl_err *e) {
  pl_status st = PL_OK;
  pl_states s = {0};
  view v = {.options = o, .list = pl_json_new_array()};
  size_t index = 0;
  PL_TRY(pl_states_read(o->args[1], &s, e));
  if (o->arg_count > 2) {
    PL_TRY(pl_states_find(&s, o->args[2], &index, e));
    PL_TRY(add_run(&v, &s, index, e));
  } else {
    for (size_t i = 0; i < s.count; i++) PL_TRY(add_run(&v, &s, i, e));
  }
  if (v.count == 0)
    st = pl_fail(e, PL_NOTHING,
                 "%s: there is no checkpoint; one is written when a run is stopped, and every "
                 "train.checkpoint_every updates",
                 s.dir);
  else
    st = print(&v, e);
out:
  pl_str_free(&v.text);
  pl_json_release(v.list);
  pl_states_free(&s);
  return st;
}
