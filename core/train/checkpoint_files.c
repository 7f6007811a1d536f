#include "core/train/checkpoint_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/fs.h"

static const char manifest_magic[8] = "plckpt\n", stage_magic[8] = "plstage";

void pl_checkpoint_name(int64_t step, size_t stage, char name[PL_CHECKPOINT_NAME]) {
  if (stage == SIZE_MAX)
    snprintf(name, PL_CHECKPOINT_NAME, "step-%010" PRId64 ".ckpt", step);
  else
    snprintf(name, PL_CHECKPOINT_NAME, "step-%010" PRId64 ".stage-%03zu.ckpt", step, stage);
}

int64_t pl_checkpoint_step(const char *name, int64_t *any) {
  char again[PL_CHECKPOINT_NAME];
  int64_t step = -1;
  size_t stage = 0;
  int length = 0;
  *any = -1;
  if (sscanf(name, "step-%" SCNd64 "%n", &step, &length) != 1 || step < 0) return -1;
  pl_checkpoint_name(step, SIZE_MAX, again);
  size_t whole = strlen(again);
  const bool manifest = strncmp(name, again, whole) == 0;
  const char *rest = name + (manifest ? whole : 0);
  if (!manifest && sscanf(name + length, ".stage-%zu.ckpt", &stage) == 1) {
    pl_checkpoint_name(step, stage, again);
    whole = strlen(again);
    if (strncmp(name, again, whole) == 0) rest = name + whole;
  }
  if (rest != name && (*rest == '\0' || strncmp(rest, ".tmp", 4) == 0)) *any = step;
  return manifest && *rest == '\0' ? step : -1;
}

static pl_status write_content(int fd, const char *path, const pl_stage_header *h, const pl_stage *stage,
                               pl_real *staging, uint64_t *checksum, pl_err *e) {
  const size_t bytes = stage->layout->size * sizeof *staging;
  pl_status st = PL_OK;
  *checksum = pl_hash(h, sizeof *h);
  PL_TRY(pl_write_all(fd, h, sizeof *h, path, e));
  for (size_t i = 0; i < stage->kept_count; i++) {
    const pl_real *from = staging ? staging : stage->kept[i];
    if (staging) stage->device->ops->download(stage->device, staging, stage->kept[i], bytes);
    PL_TRY(stage->device->ops->check(stage->device, e));
    *checksum = pl_hash_join(*checksum, pl_hash(from, bytes));
    PL_TRY(pl_write_all(fd, from, bytes, path, e));
  }
  PL_TRY(pl_write_all(fd, checksum, sizeof *checksum, path, e));
out:
  return st;
}

pl_status pl_stage_file_write(const char *path, const pl_stage_header *header, const pl_stage *stage, pl_real *staging,
                              uint64_t *checksum, pl_err *e) {
  pl_stage_header h = *header;
  memcpy(h.magic, stage_magic, sizeof h.magic);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return pl_fail(e, PL_FAIL, "cannot write the checkpoint %s: %s", path, strerror(errno));
  pl_status st = write_content(fd, path, &h, stage, staging, checksum, e);
  if (st == PL_OK && fsync(fd) != 0)
    st = pl_fail(e, PL_FAIL, "cannot write the checkpoint %s: %s", path, strerror(errno));
  if (close(fd) != 0 && st == PL_OK)
    st = pl_fail(e, PL_FAIL, "cannot write the checkpoint %s: %s", path, strerror(errno));
  return st;
}

static pl_status read_all(const char *path, int fd, void *out, size_t bytes, pl_err *e) {
  char *at = out;
  while (bytes > 0) {
    ssize_t got = read(fd, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return pl_fail(e, PL_FAIL, "%s cannot be read: %s", path, strerror(errno));
    if (got == 0) return pl_fail(e, PL_FAIL, "%s is cut off", path);
    at += got;
    bytes -= (size_t)got;
  }
  return PL_OK;
}

/* Steps and counts of updates are the manifest's. */
static pl_status check_stage_header(const char *path, const pl_stage_header *h, const pl_stage_header *wanted,
                                    off_t size, pl_err *e) {
  if (memcmp(h->magic, stage_magic, sizeof h->magic) != 0 || h->format != PL_CHECKPOINT_FORMAT ||
      h->real_size != sizeof(pl_real))
    return pl_fail(e, PL_FAIL, "%s is no checkpoint of this version and precision", path);
  if (h->run_id != wanted->run_id)
    return pl_fail(e, PL_FAIL, "%s belongs to run %016" PRIx64 ", not to %016" PRIx64, path, h->run_id, wanted->run_id);
  if (h->stage != wanted->stage || h->stages != wanted->stages || h->arrays != wanted->arrays ||
      h->size != wanted->size || h->step != wanted->step)
    return pl_fail(e, PL_FAIL, "%s is of another stage or step than its name says", path);
  uint64_t whole = sizeof *h + h->arrays * h->size * sizeof(pl_real) + sizeof(uint64_t);
  if ((uint64_t)size != whole)
    return pl_fail(e, PL_FAIL, "%s has %lld bytes instead of %" PRIu64, path, (long long)size, whole);
  return PL_OK;
}

/* Opens the file and checks its header; the caller closes *fd when it is not -1. */
static pl_status open_stage_file(const char *path, const pl_stage_header *wanted, int *fd, pl_stage_header *h,
                                 pl_err *e) {
  pl_status st = PL_OK;
  struct stat info;
  *fd = open(path, O_RDONLY | O_CLOEXEC);
  if (*fd < 0 || fstat(*fd, &info) != 0) PL_TRY(pl_fail(e, PL_FAIL, "%s cannot be read: %s", path, strerror(errno)));
  PL_TRY(read_all(path, *fd, h, sizeof *h, e));
  PL_TRY(check_stage_header(path, h, wanted ? wanted : h, info.st_size, e));
out:
  return st;
}

pl_status pl_stage_file_look(const char *path, pl_stage_header *h, pl_err *e) {
  int fd = -1;
  pl_status st = open_stage_file(path, NULL, &fd, h, e);
  if (fd >= 0) close(fd);
  return st;
}

pl_status pl_stage_file_read(const char *path, const pl_stage_header *wanted, uint64_t checksum, pl_stage *stage,
                             pl_real *staging, pl_err *e) {
  const size_t bytes = wanted->size * sizeof *staging;
  pl_status st = PL_OK;
  pl_stage_header h;
  uint64_t stored = 0;
  int fd = -1;
  PL_TRY(open_stage_file(path, wanted, &fd, &h, e));
  uint64_t found = pl_hash(&h, sizeof h);
  for (size_t i = 0; i < wanted->arrays; i++) {
    pl_real *to = staging ? staging : stage->kept[i];
    PL_TRY(read_all(path, fd, to, bytes, e));
    found = pl_hash_join(found, pl_hash(to, bytes));
    if (stage && staging) stage->device->ops->upload(stage->device, stage->kept[i], staging, bytes);
  }
  PL_TRY(read_all(path, fd, &stored, sizeof stored, e));
  if (stored != found) PL_TRY(pl_fail(e, PL_FAIL, "%s is damaged: its checksum does not fit", path));
  if (stored != checksum) PL_TRY(pl_fail(e, PL_FAIL, "%s is not the file that its manifest names", path));
  if (!stage) goto out;
  stage->ring.newest = h.step;
  stage->applied = h.applied;
  stage->delayed = h.delayed;
out:
  if (fd >= 0) close(fd);
  return st;
}

void pl_manifest_pack(const pl_manifest_header *header, const uint64_t *checksums, pl_str *out) {
  pl_manifest_header h = *header;
  memcpy(h.magic, manifest_magic, sizeof h.magic);
  pl_str_append_bytes(out, (const char *)&h, sizeof h);
  pl_str_append_bytes(out, (const char *)checksums, h.stages * sizeof *checksums);
  if (out->failed) return;
  uint64_t checksum = pl_hash(out->text, out->length);
  pl_str_append_bytes(out, (const char *)&checksum, sizeof checksum);
}

pl_status pl_manifest_unpack(const pl_str *bytes, const char *path, pl_manifest_header *h, const uint64_t **checksums,
                             pl_err *e) {
  uint64_t stored = 0;
  if (bytes->length < sizeof *h + sizeof stored) return pl_fail(e, PL_FAIL, "%s is cut off", path);
  memcpy(h, bytes->text, sizeof *h);
  if (memcmp(h->magic, manifest_magic, sizeof h->magic) != 0 || h->format != PL_CHECKPOINT_FORMAT ||
      h->real_size != sizeof(pl_real))
    return pl_fail(e, PL_FAIL, "%s is no checkpoint of this version and precision", path);
  if (h->stages > PL_MAX_STAGES || bytes->length != sizeof *h + (h->stages + 1) * sizeof stored)
    return pl_fail(e, PL_FAIL, "%s has %zu bytes, which do not fit its %" PRIu64 " stages", path, bytes->length,
                   h->stages);
  memcpy(&stored, bytes->text + bytes->length - sizeof stored, sizeof stored);
  if (stored != pl_hash(bytes->text, bytes->length - sizeof stored))
    return pl_fail(e, PL_FAIL, "%s is damaged: its checksum does not fit", path);
  *checksums = (const uint64_t *)(const void *)(bytes->text + sizeof *h);
  return PL_OK;
}
