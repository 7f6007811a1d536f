#include "results/run_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/journal_format.h"
#include "results/json_file.h"

static const char *const state_names[PL_RUN_STATES] = {"pending", "running", "done",      "diverged",
                                                       "failed",  "stopped", "cancelled", "lost"};

const char *pl_run_state_name(pl_run_state s) { return state_names[s]; }

pl_status pl_run_path(const char *sweep_dir, uint64_t id, const char *file, char **out, pl_err *e) {
  char hex[PL_ID_SIZE];
  pl_str path = {0};
  pl_hash_hex(id, hex);
  pl_str_printf(&path, "%s/runs/%.2s/%s", sweep_dir, hex, hex);
  if (file[0] != '\0') pl_str_printf(&path, "/%s", file);
  pl_status st = pl_str_check(&path, e);
  *out = st == PL_OK ? path.text : NULL;
  if (st != PL_OK) pl_str_free(&path);
  return st;
}

/* A file that a power cut left empty counts as missing. */
static bool has_content(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && info.st_size > 0;
}

pl_status pl_run_create(const char *sweep_dir, uint64_t id, const pl_run_config *c, pl_err *e) {
  pl_status st = PL_OK;
  char *folder = NULL, *config = NULL;
  pl_json *document = NULL;
  pl_str text = {0};
  PL_TRY(pl_run_path(sweep_dir, id, "", &folder, e));
  PL_TRY(pl_run_path(sweep_dir, id, "config.json", &config, e));
  if (has_content(config)) goto out;
  PL_TRY(pl_make_folders(folder, e));
  document = pl_run_config_dump(c);
  text.failed |= !document;
  pl_json_write_pretty(document, &text);
  PL_TRY(pl_str_check(&text, e));
  PL_TRY(pl_file_replace_unsynced(config, text.text, text.length, e));
out:
  pl_str_free(&text);
  pl_json_release(document);
  pl_free(config);
  pl_free(folder);
  return st;
}

static bool has_file(const char *sweep_dir, uint64_t id, const char *file) {
  char *path;
  if (pl_run_path(sweep_dir, id, file, &path, NULL) != PL_OK) return false;
  bool there = pl_path_exists(path);
  pl_free(path);
  return there;
}

static pl_claim_state look_at_claim(const char *sweep_dir, uint64_t id) {
  char *path;
  if (pl_run_path(sweep_dir, id, "claim", &path, NULL) != PL_OK) return PL_CLAIM_LIVE;
  pl_claim_state state = pl_claim_look(path);
  pl_free(path);
  return state;
}

/* The journal knows of an attempt that wrote no result. Counted, not told by file times, which follow clocks. */
static bool has_later_attempt(const char *sweep_dir, uint64_t id, const pl_result *result) {
  char *path;
  if (pl_run_path(sweep_dir, id, "journal", &path, NULL) != PL_OK) return false;
  bool later = pl_journal_last_attempt(path) > result->attempts;
  pl_free(path);
  return later;
}

pl_run_state pl_run_state_of(const char *sweep_dir, uint64_t id) {
  pl_result result;
  pl_status read = pl_run_read_result(sweep_dir, id, &result, NULL);
  if (read == PL_OK && (result.state == PL_RUN_DONE || result.state == PL_RUN_DIVERGED)) return result.state;
  pl_claim_state claim = look_at_claim(sweep_dir, id);
  if (claim == PL_CLAIM_LIVE) return PL_RUN_RUNNING;
  if (pl_run_is_cancelled(sweep_dir, id)) return PL_RUN_CANCELLED;
  if (read == PL_OK && has_later_attempt(sweep_dir, id, &result)) return PL_RUN_LOST;
  if (read == PL_OK) return result.state == PL_RUN_CANCELLED ? PL_RUN_STOPPED : result.state; /* revived since */
  bool begun = read != PL_NOTHING || claim == PL_CLAIM_DEAD || has_file(sweep_dir, id, "journal") ||
               has_file(sweep_dir, id, "ckpt");
  return begun ? PL_RUN_LOST : PL_RUN_PENDING;
}

/* DIR/state/<state>/<id>, or the folder when id is NULL. */
static bool marker_path(char *out, size_t size, const char *sweep_dir, pl_run_state state, const char *id) {
  int length = snprintf(out, size, "%s/state/%s%s%s", sweep_dir, state_names[state], id ? "/" : "", id ? id : "");
  return length > 0 && (size_t)length < size;
}

/* False when the marker's folder is not there. */
static bool move_marker(const char *sweep_dir, const char *hex, pl_run_state state, const char *new) {
  char old[4096];
  bool moved = false;
  for (pl_run_state s = 0; s < PL_RUN_STATES; s++)
    if (s != state && marker_path(old, sizeof old, sweep_dir, s, hex) && rename(old, new) == 0) moved = true;
  int fd = moved ? -1 : open(new, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd >= 0) close(fd);
  return moved || fd >= 0 || errno != ENOENT;
}

void pl_run_mark(const char *sweep_dir, uint64_t id, pl_run_state state) {
  char hex[PL_ID_SIZE], folder[4096], new[4096];
  pl_hash_hex(id, hex);
  if (!marker_path(folder, sizeof folder, sweep_dir, state, NULL) ||
      !marker_path(new, sizeof new, sweep_dir, state, hex))
    return;
  if (move_marker(sweep_dir, hex, state, new) || pl_make_folders(folder, NULL) != PL_OK) return;
  (void)move_marker(sweep_dir, hex, state, new);
}

pl_status pl_run_claim_by(const char *sweep_dir, uint64_t id, const pl_claim_rules *rules, bool *taken, pl_err *e) {
  char *path;
  *taken = false;
  pl_status st = pl_run_path(sweep_dir, id, "claim", &path, e);
  if (st != PL_OK) return st;
  st = pl_claim_take_by(path, rules, taken, e);
  if (*taken) {
    pl_claim_tidy(path);
    pl_run_mark(sweep_dir, id, PL_RUN_RUNNING);
  }
  pl_free(path);
  return st;
}

pl_status pl_run_claim(const char *sweep_dir, uint64_t id, bool *taken, pl_err *e) {
  return pl_run_claim_by(sweep_dir, id, NULL, taken, e);
}

/* Nobody trains a run that has its outcome, so that nothing of its claims need be kept. */
void pl_run_release(const char *sweep_dir, uint64_t id) {
  char *path;
  pl_result result;
  if (pl_run_path(sweep_dir, id, "claim", &path, NULL) != PL_OK) return;
  if (pl_run_read_result(sweep_dir, id, &result, NULL) == PL_OK &&
      (result.state == PL_RUN_DONE || result.state == PL_RUN_DIVERGED))
    pl_claim_release(path);
  else
    pl_claim_end(path);
  pl_free(path);
}

static const char cancelled_file[] = "cancelled", attempts_file[] = "restarts";

bool pl_run_is_cancelled(const char *sweep_dir, uint64_t id) { return has_file(sweep_dir, id, cancelled_file); }

pl_status pl_run_cancel(const char *sweep_dir, uint64_t id, pl_err *e) {
  char *path;
  pl_status st = pl_run_path(sweep_dir, id, cancelled_file, &path, e);
  if (st != PL_OK) return st;
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) st = pl_fail(e, PL_FAIL, "%s: cannot be created: %s", path, strerror(errno));
  if (fd >= 0) close(fd);
  pl_free(path);
  if (st == PL_OK) pl_run_mark(sweep_dir, id, pl_run_state_of(sweep_dir, id));
  return st;
}

pl_status pl_run_revive(const char *sweep_dir, uint64_t id, pl_err *e) {
  char *path;
  pl_status st = pl_run_path(sweep_dir, id, cancelled_file, &path, e);
  if (st != PL_OK) return st;
  bool was = unlink(path) == 0;
  if (!was && errno != ENOENT) st = pl_fail(e, PL_FAIL, "%s: cannot be removed: %s", path, strerror(errno));
  pl_free(path);
  pl_run_clear_attempts(sweep_dir, id);
  if (was) pl_run_mark(sweep_dir, id, pl_run_state_of(sweep_dir, id));
  return st;
}

void pl_run_clear_attempts(const char *sweep_dir, uint64_t id) {
  char *path;
  if (pl_run_path(sweep_dir, id, attempts_file, &path, NULL) != PL_OK) return;
  unlink(path);
  pl_free(path);
}

/* A damaged file counts as none. */
pl_status pl_run_count_attempt(const char *sweep_dir, uint64_t id, int64_t step, int64_t *count, pl_err *e) {
  char *path, text[64];
  int64_t old_step = 0, old_count = 0;
  *count = 1;
  pl_status st = pl_run_path(sweep_dir, id, attempts_file, &path, e);
  if (st != PL_OK) return st;
  FILE *file = fopen(path, "re");
  if (file && fscanf(file, "%" SCNd64 " %" SCNd64, &old_step, &old_count) == 2 && step <= old_step)
    *count = old_count + 1;
  if (file) fclose(file);
  int length = snprintf(text, sizeof text, "%" PRId64 " %" PRId64 "\n", step, *count);
  st = pl_file_replace(path, text, (size_t)length, e);
  pl_free(path);
  return st;
}

void pl_run_claimed_by(const char *sweep_dir, uint64_t id, pl_str *out) {
  char *path;
  if (pl_run_path(sweep_dir, id, "claim", &path, NULL) != PL_OK) return;
  pl_claim_describe(path, out);
  pl_free(path);
}
