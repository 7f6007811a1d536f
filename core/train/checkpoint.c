#include "core/train/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "core/train/checkpoint_files.h"

static const size_t manifest = SIZE_MAX; /* in place of a stage */

pl_status pl_checkpoints_open(const pl_run_config *config, pl_stage *stages, size_t count, const char *folder,
                              pl_checkpoints *out, pl_err *e) {
  pl_status st = PL_OK;
  size_t largest = 0;
  *out = (pl_checkpoints){.folder = folder, .stages = stages, .stage_count = count, .last = -1};
  if (!folder) return PL_OK;
  out->run_id = pl_run_config_id(config);
  for (size_t p = 0; p < count; p++)
    if (stages[p].device && !stages[p].device->ops->on_host && stages[p].layout->size > largest)
      largest = stages[p].layout->size;
  if (largest > 0) PL_TRY(pl_alloc(largest, sizeof *out->staging, "checkpoints", &out->staging, e));
  out->path_size = strlen(folder) + PL_CHECKPOINT_NAME + 8;
  PL_TRY(pl_alloc(out->path_size, 1, "checkpoints", &out->path, e));
  PL_TRY(pl_alloc(out->path_size, 1, "checkpoints", &out->temporary, e));
out:
  return st;
}

void pl_checkpoints_close(pl_checkpoints *c) {
  pl_free(c->staging);
  pl_free(c->path);
  pl_free(c->temporary);
  *c = (pl_checkpoints){0};
}

static void set_path(pl_checkpoints *c, int64_t step, size_t stage) {
  char name[PL_CHECKPOINT_NAME];
  pl_checkpoint_name(step, stage, name);
  snprintf(c->path, c->path_size, "%s/%s", c->folder, name);
  snprintf(c->temporary, c->path_size, "%s/%s.tmp", c->folder, name);
}

pl_status pl_checkpoints_below(const char *folder_name, int64_t bound, int64_t *out, pl_err *e) {
  DIR *folder = opendir(folder_name);
  int64_t any;
  *out = -1;
  if (!folder && errno == ENOENT) return PL_OK;
  if (!folder) return pl_fail(e, PL_FAIL, "cannot read the checkpoint folder %s: %s", folder_name, strerror(errno));
  for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
    int64_t step = pl_checkpoint_step(entry->d_name, &any);
    if (step < bound && step > *out) *out = step;
  }
  closedir(folder);
  return PL_OK;
}

int64_t pl_checkpoints_newest(const char *folder) {
  int64_t step;
  return pl_checkpoints_below(folder, INT64_MAX, &step, NULL) == PL_OK ? step : -1;
}

/* Does a checkpoint of `keep`, with `also` before it, make this file needless? Stages may be ahead of the manifests.
 * keep < 0: only what was left under a temporary name is. */
static bool is_needless(const char *name, bool manifests, int64_t keep, int64_t also) {
  int64_t any, step = pl_checkpoint_step(name, &any);
  if (any < 0) return false;
  if (keep < 0) return strstr(name, ".ckpt.tmp") != NULL;
  if (any == keep || any == also) return false;
  return manifests ? step >= 0 : any < keep;
}

/* Manifests go first: a step without one does not count. */
static pl_status remove_files(const pl_checkpoints *c, int64_t keep, int64_t also, pl_err *e) {
  for (int pass = 0; pass < 2; pass++) {
    DIR *folder = opendir(c->folder);
    if (!folder && errno == ENOENT) return PL_OK;
    if (!folder) return pl_fail(e, PL_FAIL, "cannot read the checkpoint folder %s: %s", c->folder, strerror(errno));
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder))
      if (is_needless(entry->d_name, pass == 0, keep, also)) unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
  }
  return PL_OK;
}

static pl_status check_owned(const pl_checkpoints *c, pl_err *e) {
  if (!c->owned || c->owned(c->owned_self)) return PL_OK;
  return pl_fail(e, PL_FAIL, "another process took the run over; this one writes no more");
}

static pl_stage_header stage_header(const pl_checkpoints *c, size_t stage, int64_t step) {
  const pl_stage *s = &c->stages[stage];
  return (pl_stage_header){.format = PL_CHECKPOINT_FORMAT,
                           .real_size = sizeof(pl_real),
                           .run_id = c->run_id,
                           .stage = stage,
                           .stages = c->stage_count,
                           .arrays = s->kept_count,
                           .size = s->layout->size,
                           .step = step,
                           .applied = s->applied,
                           .delayed = s->delayed};
}

pl_status pl_checkpoints_write(pl_checkpoints *c, size_t stage, uint64_t *checksum, pl_err *e) {
  pl_stage *s = &c->stages[stage];
  *checksum = 0;
  if (!c->folder || s->ring.newest == c->last) return PL_OK;
  pl_status st = check_owned(c, e);
  if (st != PL_OK) return st;
  st = pl_make_folders(c->folder, e);
  if (st != PL_OK) return st;
  pl_stage_header h = stage_header(c, stage, s->ring.newest);
  set_path(c, s->ring.newest, stage);
  st = pl_stage_file_write(c->temporary, &h, s, c->staging, checksum, e);
  /* Once the run is somebody else's, the file under the temporary name may be too. */
  pl_status owned = check_owned(c, e);
  if (owned != PL_OK) return owned;
  if (st == PL_OK && rename(c->temporary, c->path) != 0)
    st = pl_fail(e, PL_FAIL, "cannot rename %s: %s", c->temporary, strerror(errno));
  if (st != PL_OK) unlink(c->temporary);
  return st;
}

pl_status pl_checkpoints_publish(pl_checkpoints *c, const pl_counters *counters, const uint64_t *checksums,
                                 pl_log_sink *sink, pl_err *e) {
  pl_status st = PL_OK;
  pl_str bytes = {0};
  pl_manifest_header h = {.format = PL_CHECKPOINT_FORMAT,
                          .real_size = sizeof(pl_real),
                          .run_id = c->run_id,
                          .stages = c->stage_count,
                          .counters = *counters};
  if (!c->folder || counters->step == c->last) return PL_OK;
  PL_TRY(check_owned(c, e));
  if (sink) PL_TRY(sink->sync(sink->self, &h.log_length, e));
  pl_manifest_pack(&h, checksums, &bytes);
  PL_TRY(pl_str_check(&bytes, e));
  set_path(c, counters->step, manifest);
  PL_TRY(check_owned(c, e));
  PL_TRY(pl_file_replace(c->path, bytes.text, bytes.length, e));
  PL_TRY(remove_files(c, counters->step, c->last, e));
  c->last = counters->step;
  if (sink && sink->checkpointed) PL_TRY(sink->checkpointed(sink->self, e));
out:
  pl_str_free(&bytes);
  return st;
}

/* The bytes of the next manifest below *step that can be used, as far as rank 0 can see; none: no bytes. */
static pl_status choose(pl_checkpoints *c, int64_t *step, pl_log_sink *sink, pl_str *out,
                        void (*say)(void *self, const char *line), void *say_self, pl_err *e) {
  pl_status st = PL_OK;
  for (;;) {
    pl_err why = {0};
    pl_manifest_header h = {0};
    const uint64_t *checksums = NULL;
    char *bytes = NULL;
    size_t length = 0;
    PL_TRY(pl_checkpoints_below(c->folder, *step, step, e));
    if (*step < 0) break;
    set_path(c, *step, manifest);
    pl_status good = pl_file_read(c->path, 1 << 20, &bytes, &length, &why);
    if (good == PL_OK) {
      pl_str_append_bytes(out, bytes, length);
      good = pl_manifest_unpack(out, c->path, &h, &checksums, &why);
    }
    pl_free(bytes);
    if (good == PL_OK && h.run_id != c->run_id)
      good =
          pl_fail(&why, PL_FAIL, "%s belongs to run %016" PRIx64 ", not to %016" PRIx64, c->path, h.run_id, c->run_id);
    if (good == PL_OK && h.stages != c->stage_count)
      good = pl_fail(&why, PL_FAIL, "%s has %" PRIu64 " stages instead of %zu", c->path, h.stages, c->stage_count);
    uint64_t log = sink ? sink->length(sink->self) : h.log_length;
    if (good == PL_OK && log < h.log_length) {
      good = pl_fail(&why, PL_FAIL, "%s counts on %" PRIu64 " bytes of log but there are %" PRIu64, c->path,
                     h.log_length, log);
      /* The log grows again and would later look long enough, but with other points. */
      unlink(c->path);
    }
    if (good == PL_OK) break;
    pl_str_free(out);
    (void)pl_err_prefix(&why, "this checkpoint is passed over");
    if (say) say(say_self, why.text);
  }
out:
  return st;
}

static pl_status read_stages(pl_checkpoints *c, const pl_str *bytes, pl_counters *counters, pl_err *e) {
  pl_status st = PL_OK;
  pl_manifest_header h;
  const uint64_t *checksums = NULL;
  PL_TRY(pl_manifest_unpack(bytes, "the manifest", &h, &checksums, e));
  for (size_t p = 0; p < c->stage_count; p++) {
    if (!c->stages[p].device) continue;
    pl_stage_header wanted = stage_header(c, p, h.counters.step);
    set_path(c, h.counters.step, p);
    PL_TRY(pl_stage_file_read(c->path, &wanted, checksums[p], &c->stages[p], c->staging, e));
    pl_stage_drop_gradients(&c->stages[p]);
  }
  *counters = h.counters;
out:
  return st;
}

pl_status pl_checkpoints_resume(pl_checkpoints *c, pl_world *world, pl_counters *counters, pl_log_sink *sink,
                                void (*say)(void *self, const char *line), void *say_self, bool *found, pl_err *e) {
  pl_status st = PL_OK;
  int64_t step = INT64_MAX;
  pl_str bytes = {0};
  *found = false;
  if (!c->folder) return PL_OK;
  if (world->rank == 0 && !c->reads_only) st = remove_files(c, -1, -1, e);
  PL_TRY(world->type->agree(world, st, e));
  do {
    pl_err why = {0};
    pl_str_free(&bytes);
    if (world->rank == 0) st = choose(c, &step, sink, &bytes, say, say_self, e);
    PL_TRY(world->type->agree(world, st, e));
    PL_TRY(world->type->share(world, &bytes, e));
    if (bytes.length == 0) break;
    *found = world->type->agree(world, read_stages(c, &bytes, counters, &why), &why) == PL_OK;
    if (*found) {
      c->last = counters->step;
    } else if (world->rank == 0) {
      (void)pl_err_prefix(&why, "this checkpoint is passed over");
      if (say) say(say_self, why.text);
    }
  } while (!*found);
out:
  pl_str_free(&bytes);
  return st;
}
