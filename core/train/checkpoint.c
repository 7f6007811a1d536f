#include "core/train/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/fs.h"
#include "core/base/memory.h"

enum { FORMAT = 1, NAME_SIZE = 40 };

static const char magic[8] = "plckpt\n";

/* Members of 8 bytes only, so that there is no padding. */
typedef struct header {
  char magic[8];
  uint64_t format, real_size, run_id, log_length, payload; /* payload: bytes of the arrays */
  pl_counters counters;
} header;

static uint64_t payload_size(const pl_checkpoints *c) {
  uint64_t bytes = 0;
  for (size_t p = 0; p < c->stage_count; p++)
    bytes += c->stages[p].kept_count * c->stages[p].layout->size * sizeof(pl_real);
  return bytes;
}

pl_status pl_checkpoints_open(const pl_run_config *config, pl_device *device, pl_stage *stages, size_t count,
                              const char *folder, pl_checkpoints *out, pl_err *e) {
  pl_status st = PL_OK;
  size_t largest = 0;
  *out = (pl_checkpoints){.folder = folder, .device = device, .stages = stages, .stage_count = count, .last = -1};
  if (!folder) return PL_OK;
  out->run_id = pl_run_config_id(config);
  for (size_t p = 0; p < count; p++)
    if (stages[p].layout->size > largest) largest = stages[p].layout->size;
  PL_TRY(pl_alloc(largest, sizeof *out->staging, "checkpoints", &out->staging, e));
  out->path_size = strlen(folder) + NAME_SIZE;
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

static void name_of(int64_t step, char name[NAME_SIZE]) { snprintf(name, NAME_SIZE, "step-%010" PRId64 ".ckpt", step); }

static void set_path(pl_checkpoints *c, int64_t step) {
  char name[NAME_SIZE];
  name_of(step, name);
  snprintf(c->path, c->path_size, "%s/%s", c->folder, name);
  snprintf(c->temporary, c->path_size, "%s/%s.tmp", c->folder, name);
}

/* The step that a file name stands for, or -1. */
static int64_t step_of(const char *name) {
  char again[NAME_SIZE];
  int64_t step = -1;
  if (sscanf(name, "step-%" SCNd64, &step) != 1 || step < 0) return -1;
  name_of(step, again);
  return strcmp(name, again) == 0 ? step : -1;
}

/* The latest step below `bound` that has a file, or -1. */
static pl_status latest_below(const pl_checkpoints *c, int64_t bound, int64_t *out, pl_err *e) {
  DIR *folder = opendir(c->folder);
  *out = -1;
  if (!folder) return pl_fail(e, PL_FAIL, "cannot read the checkpoint folder %s: %s", c->folder, strerror(errno));
  for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
    int64_t step = step_of(entry->d_name);
    if (step < bound && step > *out) *out = step;
  }
  closedir(folder);
  return PL_OK;
}

int64_t pl_checkpoints_newest(const char *folder) {
  const pl_checkpoints c = {.folder = folder};
  int64_t step;
  return latest_below(&c, INT64_MAX, &step, NULL) == PL_OK ? step : -1;
}

static pl_status remove_temporaries(pl_checkpoints *c, pl_err *e) {
  DIR *folder = opendir(c->folder);
  if (!folder) return pl_fail(e, PL_FAIL, "cannot read the checkpoint folder %s: %s", c->folder, strerror(errno));
  for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
    size_t length = strlen(entry->d_name);
    if (length < 5 || strcmp(entry->d_name + length - 4, ".tmp") != 0) continue;
    entry->d_name[length - 4] = '\0';
    int64_t step = step_of(entry->d_name);
    if (step < 0) continue;
    set_path(c, step);
    unlink(c->temporary);
  }
  closedir(folder);
  return PL_OK;
}

static pl_status write_content(pl_checkpoints *c, int fd, const header *h, pl_err *e) {
  pl_status st = PL_OK;
  uint64_t checksum = pl_hash(h, sizeof *h);
  PL_TRY(pl_write_all(fd, h, sizeof *h, c->temporary, e));
  for (size_t p = 0; p < c->stage_count; p++) {
    const pl_stage *stage = &c->stages[p];
    size_t bytes = stage->layout->size * sizeof *c->staging;
    for (size_t i = 0; i < stage->kept_count; i++) {
      c->device->ops->download(c->device, c->staging, stage->kept[i], bytes);
      checksum = pl_hash_join(checksum, pl_hash(c->staging, bytes));
      PL_TRY(pl_write_all(fd, c->staging, bytes, c->temporary, e));
    }
  }
  PL_TRY(pl_write_all(fd, &checksum, sizeof checksum, c->temporary, e));
out:
  return st;
}

static pl_status sync_folder(const char *folder, pl_err *e) {
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool synced = fd >= 0 && fsync(fd) == 0;
  int error = errno;
  if (fd >= 0) close(fd);
  return synced ? PL_OK : pl_fail(e, PL_FAIL, "cannot sync the folder %s: %s", folder, strerror(error));
}

/* The file under its temporary name, whole and on the disk. */
static pl_status write_temporary(pl_checkpoints *c, const header *h, pl_err *e) {
  int fd = open(c->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return pl_fail(e, PL_FAIL, "cannot write the checkpoint %s: %s", c->temporary, strerror(errno));
  pl_status st = write_content(c, fd, h, e);
  if (st == PL_OK && fsync(fd) != 0)
    st = pl_fail(e, PL_FAIL, "cannot write the checkpoint %s: %s", c->temporary, strerror(errno));
  if (close(fd) != 0 && st == PL_OK)
    st = pl_fail(e, PL_FAIL, "cannot write the checkpoint %s: %s", c->temporary, strerror(errno));
  return st;
}

/* Keeps `step` and the good one before it; what this attempt passed over when it resumed goes too. */
static pl_status remove_others(pl_checkpoints *c, int64_t step, pl_err *e) {
  pl_status st = PL_OK;
  int64_t other = -1;
  PL_TRY(latest_below(c, INT64_MAX, &other, e));
  while (other >= 0) {
    set_path(c, other);
    if (other != step && other != c->last) unlink(c->path);
    PL_TRY(latest_below(c, other, &other, e));
  }
  c->last = step;
out:
  return st;
}

static pl_status check_owned(const pl_checkpoints *c, pl_err *e) {
  if (!c->owned || c->owned(c->owned_self)) return PL_OK;
  return pl_fail(e, PL_FAIL, "another process took the run over; this one writes no more");
}

/* Once the run is somebody else's, the file under the temporary name may be too. */
static pl_status publish(pl_checkpoints *c, const header *h, pl_err *e) {
  pl_status st = check_owned(c, e);
  if (st != PL_OK) return st;
  st = write_temporary(c, h, e);
  pl_status owned = check_owned(c, e);
  if (owned != PL_OK) return owned;
  if (st == PL_OK && rename(c->temporary, c->path) != 0)
    st = pl_fail(e, PL_FAIL, "cannot rename %s: %s", c->temporary, strerror(errno));
  if (st != PL_OK) unlink(c->temporary);
  return st;
}

pl_status pl_checkpoints_save(pl_checkpoints *c, const pl_counters *counters, pl_log_sink *sink, pl_err *e) {
  pl_status st = PL_OK;
  if (!c->folder || counters->step == c->last) return PL_OK;
  set_path(c, counters->step);
  header h = {.format = FORMAT,
              .real_size = sizeof(pl_real),
              .run_id = c->run_id,
              .payload = payload_size(c),
              .counters = *counters};
  memcpy(h.magic, magic, sizeof magic);
  if (sink) PL_TRY(sink->sync(sink->self, &h.log_length, e));
  PL_TRY(publish(c, &h, e));
  PL_TRY(sync_folder(c->folder, e));
  PL_TRY(remove_others(c, counters->step, e));
  if (sink && sink->checkpointed) PL_TRY(sink->checkpointed(sink->self, e));
out:
  return st;
}

static pl_status read_all(const pl_checkpoints *c, int fd, void *out, size_t bytes, pl_err *e) {
  char *at = out;
  while (bytes > 0) {
    ssize_t got = read(fd, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return pl_fail(e, PL_FAIL, "%s cannot be read: %s", c->path, strerror(errno));
    if (got == 0) return pl_fail(e, PL_FAIL, "%s is cut off", c->path);
    at += got;
    bytes -= (size_t)got;
  }
  return PL_OK;
}

static pl_status check_header(const pl_checkpoints *c, const header *h, off_t size, pl_err *e) {
  if (memcmp(h->magic, magic, sizeof magic) != 0 || h->format != FORMAT || h->real_size != sizeof(pl_real))
    return pl_fail(e, PL_FAIL, "%s is no checkpoint of this version and precision", c->path);
  if (h->run_id != c->run_id)
    return pl_fail(e, PL_FAIL, "%s belongs to run %016" PRIx64 ", not to %016" PRIx64, c->path, h->run_id, c->run_id);
  uint64_t whole = sizeof *h + h->payload + sizeof(uint64_t);
  if (h->payload != payload_size(c) || (uint64_t)size != whole)
    return pl_fail(e, PL_FAIL, "%s has %lld bytes instead of %" PRIu64, c->path, (long long)size, whole);
  return PL_OK;
}

static pl_status read_arrays(pl_checkpoints *c, int fd, const header *h, pl_err *e) {
  pl_status st = PL_OK;
  uint64_t checksum = pl_hash(h, sizeof *h), stored = 0;
  for (size_t p = 0; p < c->stage_count; p++) {
    pl_stage *stage = &c->stages[p];
    size_t bytes = stage->layout->size * sizeof *c->staging;
    for (size_t i = 0; i < stage->kept_count; i++) {
      PL_TRY(read_all(c, fd, c->staging, bytes, e));
      checksum = pl_hash_join(checksum, pl_hash(c->staging, bytes));
      c->device->ops->upload(c->device, stage->kept[i], c->staging, bytes);
    }
    c->device->ops->zero(c->device, stage->grad, stage->layout->grad_size * sizeof *stage->grad);
    stage->ring.newest = h->counters.step;
  }
  PL_TRY(read_all(c, fd, &stored, sizeof stored, e));
  if (stored != checksum) PL_TRY(pl_fail(e, PL_FAIL, "%s is damaged: its checksum does not fit", c->path));
out:
  return st;
}

/* Reads c->path. *log_is_short: it is whole but the log has lost points that it counts on. */
static pl_status read_one(pl_checkpoints *c, pl_log_sink *sink, pl_counters *counters, bool *log_is_short, pl_err *e) {
  pl_status st = PL_OK;
  header h;
  struct stat info;
  int fd = open(c->path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &info) != 0) PL_TRY(pl_fail(e, PL_FAIL, "%s cannot be read: %s", c->path, strerror(errno)));
  PL_TRY(read_all(c, fd, &h, sizeof h, e));
  PL_TRY(check_header(c, &h, info.st_size, e));
  uint64_t length = sink ? sink->length(sink->self) : h.log_length;
  *log_is_short = length < h.log_length;
  if (*log_is_short)
    PL_TRY(pl_fail(e, PL_FAIL, "%s counts on %" PRIu64 " bytes of log but there are %" PRIu64, c->path, h.log_length,
                   length));
  PL_TRY(read_arrays(c, fd, &h, e));
  *counters = h.counters;
out:
  if (fd >= 0) close(fd);
  return st;
}

pl_status pl_checkpoints_resume(pl_checkpoints *c, pl_counters *counters, pl_log_sink *sink,
                                void (*say)(void *self, const char *line), void *say_self, bool *found, pl_err *e) {
  pl_status st = PL_OK;
  int64_t step = INT64_MAX;
  *found = false;
  if (!c->folder) return PL_OK;
  PL_TRY(remove_temporaries(c, e));
  PL_TRY(latest_below(c, step, &step, e));
  while (step >= 0) {
    pl_err why = {0};
    bool log_is_short = false;
    set_path(c, step);
    *found = read_one(c, sink, counters, &log_is_short, &why) == PL_OK;
    if (*found) {
      c->last = step;
      break;
    }
    (void)pl_err_prefix(&why, "this checkpoint is passed over");
    if (say) say(say_self, why.text);
    /* The log grows again and would later look long enough, but with other points. */
    if (log_is_short) unlink(c->path);
    PL_TRY(latest_below(c, step, &step, e));
  }
out:
  return st;
}
