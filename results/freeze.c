#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/catalog.h"
#include "results/claim.h"
#include "results/imported.h"
#include "results/json_file.h"
#include "results/sweep_dir.h"

enum { LOCK_SECONDS = 60 };
enum { EMPTY = 0 }; /* slot of the table of ids */

struct pl_freeze {
  char *dir, *lock, *folder;
  pl_json *document; /* what is to be frozen */
  bool made, locked, committed;
  uint64_t *ids; /* of all runs, by index */
  bool *current;
  size_t count, listed, capacity; /* listed: those that runs.tsv has already */
  size_t *slots, slot_count;      /* open addressing by id: index + 1, or EMPTY; slot_count is a power of two */
  pl_str added;                   /* rows for runs.tsv */
};

static size_t *find_slot(const pl_freeze *f, uint64_t id) {
  size_t at = (size_t)id & (f->slot_count - 1);
  while (f->slots[at] != EMPTY && f->ids[f->slots[at] - 1] != id) at = (at + 1) & (f->slot_count - 1);
  return &f->slots[at];
}

/* At most half of the slots are in use. */
static pl_status make_room(pl_freeze *f, pl_err *e) {
  pl_status st = PL_OK;
  size_t *slots = NULL;
  if (f->count < f->capacity) return PL_OK;
  size_t larger = f->capacity ? 2 * f->capacity : 1024;
  PL_TRY(pl_grow(f->count, larger, sizeof *f->ids, "the list of runs", &f->ids, e));
  PL_TRY(pl_grow(f->count, larger, sizeof *f->current, "the list of runs", &f->current, e));
  PL_TRY(pl_alloc(2 * larger, sizeof *slots, "the list of runs", &slots, e));
  pl_free(f->slots);
  f->slots = slots;
  f->slot_count = 2 * larger;
  f->capacity = larger;
  for (size_t i = 0; i < f->count; i++) *find_slot(f, f->ids[i]) = i + 1;
out:
  return st;
}

static pl_status append(pl_freeze *f, uint64_t id, pl_err *e) {
  pl_status st = make_room(f, e);
  if (st != PL_OK) return st;
  f->ids[f->count++] = id;
  *find_slot(f, id) = f->count;
  return PL_OK;
}

static pl_status take_lock(pl_freeze *f, pl_err *e) {
  const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
  double end = pl_clock_seconds() + LOCK_SECONDS;
  for (;;) {
    pl_status st = pl_claim_take(f->lock, &f->locked, e);
    if (st != PL_OK || f->locked) return st;
    if (pl_clock_seconds() > end) break;
    nanosleep(&pause, NULL);
  }
  pl_str who = {0};
  pl_claim_describe(f->lock, &who);
  pl_status st = pl_fail(e, PL_FAIL, "%s: has been held for %d s by %s; delete the file if that process is gone",
                         f->lock, LOCK_SECONDS, pl_str_text(&who));
  pl_str_free(&who);
  return st;
}

/* location.json is the first file that a freeze writes. A folder with other things and without it is somebody else's.
 */
static pl_status check_ours(const pl_freeze *f, pl_err *e) {
  pl_status st = PL_OK;
  char *location = NULL;
  PL_TRY(pl_path_join(f->dir, "location.json", &location, e));
  DIR *entries = pl_path_exists(location) ? NULL : opendir(f->dir);
  for (struct dirent *d = entries ? readdir(entries) : NULL; d && st == PL_OK; d = readdir(entries)) {
    bool own =
        d->d_name[0] == '.' || strncmp(d->d_name, "lock", 4) == 0 || strncmp(d->d_name, "location.json.", 14) == 0;
    if (!own)
      st = pl_fail(
          e, PL_BAD,
          "%s: holds \"%.100s\" and was not made by pipelag; allowed: a new or empty directory, or one of this sweep",
          f->dir, d->d_name);
  }
  if (entries) closedir(entries);
out:
  pl_free(location);
  return st;
}

/* Imported runs and runs that pipelag trains do not share a directory. */
static pl_status check_kind(const pl_freeze *f, const pl_json *newest, pl_err *e) {
  bool there = pl_json_bool(pl_json_get(newest, PL_IMPORTED_KEY));
  if (there == pl_json_bool(pl_json_get(f->document, PL_IMPORTED_KEY))) return PL_OK;
  return pl_fail(e, PL_BAD, "%s: holds %s; choose another directory with -o, analyze takes several", f->dir,
                 there ? "imported runs, and a sweep needs a directory of its own"
                       : "the runs of a sweep, and imported ones need a directory of their own");
}

static pl_status check_name(const pl_freeze *f, const char *name, pl_err *e) {
  pl_json *newest;
  int next;
  pl_status st = pl_sweep_dir_newest(f->dir, &newest, &next, e);
  if (st != PL_OK || !newest) return st;
  const char *found = pl_json_get_string(newest, "name", "");
  if (strcmp(found, name) != 0)
    st = pl_fail(e, PL_BAD, "%s: belongs to the sweep \"%s\", not to \"%s\"; choose another directory with -o", f->dir,
                 found, name);
  else
    st = check_kind(f, newest, e);
  pl_json_release(newest);
  return st;
}

static pl_status read_listed(pl_freeze *f, pl_err *e) {
  pl_runs_list list;
  pl_status st = pl_runs_list_read(f->dir, &list, e);
  for (size_t i = 0; st == PL_OK && i < list.count; i++) st = append(f, list.ids[i], e);
  f->listed = f->count;
  pl_runs_list_free(&list);
  return st;
}

/* The document with its name in it, also when the name came from the file's. */
static pl_status keep_document(pl_freeze *f, const pl_json *document, const char *name, pl_err *e) {
  f->document = pl_json_copy(document);
  if (f->document && pl_json_set(f->document, "name", pl_json_new_string(name))) return PL_OK;
  return pl_fail(e, PL_FAIL, "out of memory: a copy of the sweep \"%s\"", name);
}

static pl_status keep_folder(pl_freeze *f, const char *folder, pl_err *e) {
  char *absolute = realpath(folder, NULL);
  if (!absolute) return pl_fail(e, PL_FAIL, "%s: this folder cannot be found: %s", folder, strerror(errno));
  pl_status st = pl_strdup(absolute, &f->folder, e);
  free(absolute);
  return st;
}

pl_status pl_freeze_begin(const char *dir, const char *name, const pl_json *sweep_document, const char *sweep_folder,
                          pl_freeze **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_freeze *f = NULL;
  *out = NULL;
  PL_TRY(pl_alloc(1, sizeof *f, "a sweep directory", &f, e));
  PL_TRY(pl_strdup(dir, &f->dir, e));
  PL_TRY(pl_path_join(dir, "lock", &f->lock, e));
  PL_TRY(keep_document(f, sweep_document, name, e));
  PL_TRY(keep_folder(f, sweep_folder, e));
  f->made = !pl_path_exists(dir);
  PL_TRY(pl_make_folders(dir, e));
  PL_TRY(take_lock(f, e));
  pl_claim_tidy(f->lock);
  PL_TRY(check_ours(f, e));
  PL_TRY(check_name(f, name, e));
  PL_TRY(read_listed(f, e));
  *out = f;
out:
  if (st != PL_OK) pl_freeze_end(f);
  return st;
}

pl_status pl_freeze_add(pl_freeze *f, uint64_t id, const char *label, uint64_t *index, pl_err *e) {
  pl_status st = PL_OK;
  size_t slot = f->slot_count ? *find_slot(f, id) : EMPTY;
  if (slot == EMPTY) {
    PL_TRY(append(f, id, e));
    slot = f->count;
    pl_runs_list_row(&f->added, slot - 1, id, label);
    PL_TRY(pl_str_check(&f->added, e));
  }
  f->current[slot - 1] = true;
  *index = slot - 1;
out:
  return st;
}

static pl_status write_text(const char *dir, const char *name, const pl_str *text, pl_err *e) {
  char *path = NULL;
  pl_status st = PL_OK;
  PL_TRY(pl_str_check(text, e));
  PL_TRY(pl_path_join(dir, name, &path, e));
  PL_TRY(pl_file_replace(path, pl_str_text(text), text->length, e));
out:
  pl_free(path);
  return st;
}

static pl_status write_sweep(const pl_freeze *f, pl_err *e) {
  pl_status st = PL_OK;
  pl_json *newest = NULL;
  char *path = NULL;
  int next;
  PL_TRY(pl_sweep_dir_newest(f->dir, &newest, &next, e));
  if (newest && pl_json_equal(newest, f->document)) goto out;
  PL_TRY(pl_sweep_dir_file(f->dir, next, &path, e));
  PL_TRY(pl_json_file_write(path, f->document, e));
out:
  pl_free(path);
  pl_json_release(newest);
  return st;
}

static pl_status write_list(const pl_freeze *f, pl_err *e) {
  pl_status st = PL_OK;
  pl_str text = {0};
  char *path = NULL, *old = NULL;
  size_t length = 0;
  if (f->count == f->listed) return PL_OK;
  PL_TRY(pl_path_join(f->dir, "runs.tsv", &path, e));
  if (f->listed > 0) PL_TRY(pl_file_read(path, SIZE_MAX, &old, &length, e));
  if (old)
    pl_str_append_bytes(&text, old, length);
  else
    pl_runs_list_header(&text);
  pl_str_append_bytes(&text, f->added.text, f->added.length);
  PL_TRY(write_text(f->dir, "runs.tsv", &text, e));
out:
  pl_free(old);
  pl_free(path);
  pl_str_free(&text);
  return st;
}

static pl_status write_current(const pl_freeze *f, pl_err *e) {
  pl_str text = {0};
  for (size_t i = 0; i < f->count; i++)
    if (f->current[i]) pl_str_printf(&text, "%zu\n", i);
  pl_status st = write_text(f->dir, "current", &text, e);
  pl_str_free(&text);
  return st;
}

static pl_status write_location(const pl_freeze *f, pl_err *e) {
  pl_status st = PL_OK;
  char *path = NULL;
  pl_json *location = pl_json_new_object();
  if (!location || !pl_json_set(location, "folder", pl_json_new_string(f->folder)))
    PL_TRY(pl_fail(e, PL_FAIL, "%s: out of memory", f->dir));
  PL_TRY(pl_path_join(f->dir, "location.json", &path, e));
  PL_TRY(pl_json_file_write(path, location, e));
out:
  pl_free(path);
  pl_json_release(location);
  return st;
}

/* In this order a crash in between leaves a directory that the same freeze completes: rows of runs.tsv that are not
 * current yet do no harm. */
pl_status pl_freeze_commit(pl_freeze *f, pl_err *e) {
  pl_status st = PL_OK;
  f->committed = true;
  PL_TRY(write_location(f, e));
  PL_TRY(write_sweep(f, e));
  PL_TRY(write_list(f, e));
  PL_TRY(write_current(f, e));
out:
  return st;
}

void pl_freeze_end(pl_freeze *f) {
  if (!f) return;
  if (f->locked) pl_claim_release(f->lock);
  if (f->made && !f->committed) rmdir(f->dir); /* refused unless it is empty */
  pl_str_free(&f->added);
  pl_json_release(f->document);
  pl_free(f->slots);
  pl_free(f->current);
  pl_free(f->ids);
  pl_free(f->folder);
  pl_free(f->lock);
  pl_free(f->dir);
  pl_free(f);
}
