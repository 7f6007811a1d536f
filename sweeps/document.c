#include <stdio.h>
#include <string.h>

#include "core/config/params_text.h"
#include "sweeps/parts.h"

static const char *const KEYS[] = {"name", "notes",   "base",    "grid",  "zip",   "random",
                                   "runs", "exclude", "only_if", "seeds", "slurm", "set"};
enum { KEY_COUNT = sizeof KEYS / sizeof *KEYS, MAX_NAME = 100 };

/* Sections of a run, beside the keys of pl_root_params. */
static const char *const SECTIONS[] = {"model", "data", "optimizer", "correction", "train", "pipeline"};

static bool is_sweep_key(const char *key) {
  for (size_t i = 0; i < KEY_COUNT; i++)
    if (strcmp(KEYS[i], key) == 0) return true;
  return false;
}

/* "optimizer.lr", "delay", "train": what stands at the top of a run file. */
static bool is_run_key(const char *key) {
  size_t head = strcspn(key, ".");
  for (size_t i = 0; i < sizeof SECTIONS / sizeof *SECTIONS; i++)
    if (strncmp(SECTIONS[i], key, head) == 0 && SECTIONS[i][head] == '\0') return true;
  return pl_params_find(pl_root_params, key) != SIZE_MAX && !is_sweep_key(key);
}

static bool is_run(const pl_json *document) {
  bool run = false;
  for (void *it = pl_json_iter(document); it != NULL; it = pl_json_iter_next(document, it)) {
    const char *key = pl_json_iter_key(it);
    if (is_sweep_key(key) && strcmp(key, "name") != 0 && strcmp(key, "notes") != 0) return false;
    run = run || is_run_key(key);
  }
  return run;
}

static pl_status unknown_key(const char *key, pl_err *e) {
  char seen[160];
  if (is_run_key(key))
    return pl_fail(e, PL_BAD, "\"%.100s\" at the top of a sweep file; allowed: inside \"base\"", key);
  snprintf(seen, sizeof seen, "unknown key \"%.100s\"", key);
  return pl_fail_name(KEYS, KEY_COUNT, key, "top level", seen, e);
}

static pl_status check_kind(const pl_json *document, const char *key, pl_json_kind kind, pl_err *e) {
  const pl_json *value = pl_json_get(document, key);
  char shown[80];
  if (value == NULL || pl_json_kind_of(value) == kind) return PL_OK;
  return pl_fail(e, PL_BAD, "%s: %s; allowed: %s", key, pl_json_show(value, shown), pl_json_kind_name(kind));
}

static pl_status check_name(const char *name, pl_err *e) {
  size_t length = strlen(name);
  bool fits = length > 0 && length <= MAX_NAME && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
  for (const char *c = name; *c != '\0'; c++) fits = fits && (unsigned char)*c >= ' ' && *c != 127 && *c != '/';
  if (fits) return PL_OK;
  return pl_fail(e, PL_BAD,
                 "name: \"%.120s\"; allowed: 1 to %d bytes without slash and control characters, not \".\" or \"..\", "
                 "since it names a folder",
                 name, MAX_NAME);
}

/* The file's name without folder and ".json". */
static pl_json *default_name(const char *path) {
  const char *slash = strrchr(path, '/');
  const char *file = slash != NULL ? slash + 1 : path;
  size_t length = strlen(file);
  pl_str text = {0};
  if (length > 5 && strcmp(file + length - 5, ".json") == 0) length -= 5;
  pl_str_append_bytes(&text, file, length);
  pl_json *name = text.failed ? NULL : pl_json_new_string(pl_str_text(&text));
  pl_str_free(&text);
  return name;
}

/* Members of `from` except name and notes; "slurm" as a copy, since --set writes into it. */
static bool take_members(pl_json *to, const pl_json *from) {
  bool ok = to != NULL;
  for (void *it = pl_json_iter(from); ok && it != NULL; it = pl_json_iter_next(from, it)) {
    const char *key = pl_json_iter_key(it);
    const pl_json *value = pl_json_iter_value(it);
    bool own = strcmp(key, "slurm") == 0;
    if (strcmp(key, "name") == 0 || strcmp(key, "notes") == 0) continue;
    ok = pl_json_set(to, key, own ? pl_json_copy(value) : pl_json_retain(value));
  }
  return ok;
}

/* A member that is not null: the config.json of a run says "name": null. */
static const pl_json *given(const pl_json *document, const char *key) {
  const pl_json *value = pl_json_get(document, key);
  return pl_json_kind_of(value) == PL_JSON_NULL ? NULL : value;
}

static bool compose(const pl_json *document, const char *path, pl_json *out) {
  const pl_json *name = given(document, "name"), *notes = given(document, "notes");
  bool ok = out != NULL && pl_json_set(out, "name", name != NULL ? pl_json_retain(name) : default_name(path));
  if (ok && notes != NULL) ok = pl_json_set(out, "notes", pl_json_retain(notes));
  if (!is_run(document)) return ok && take_members(out, document);
  pl_json *base = pl_json_new_object();
  if (ok && take_members(base, document)) return pl_json_set(out, "base", base);
  pl_json_release(base);
  return false;
}

static pl_status check_top(const pl_json *document, pl_err *e) {
  pl_status st = PL_OK;
  for (void *it = pl_json_iter(document); it != NULL; it = pl_json_iter_next(document, it))
    if (!is_sweep_key(pl_json_iter_key(it))) return unknown_key(pl_json_iter_key(it), e);
  PL_TRY(check_kind(document, "name", PL_JSON_STRING, e));
  PL_TRY(check_kind(document, "notes", PL_JSON_STRING, e));
  PL_TRY(check_kind(document, "base", PL_JSON_OBJECT, e));
  PL_TRY(check_kind(document, "slurm", PL_JSON_OBJECT, e));
  PL_TRY(check_kind(document, "set", PL_JSON_OBJECT, e));
out:
  return st;
}

pl_status pl_sweep_effective(const pl_json *document, const char *path, pl_sets sets, pl_json **out, bool *is_run_file,
                             pl_err *e) {
  pl_status st = PL_OK;
  char shown[80];
  pl_json *made = NULL;
  if (pl_json_kind_of(document) != PL_JSON_OBJECT) {
    st = pl_fail(e, PL_BAD, "the file holds %s; allowed: an object, a sweep or a run", pl_json_show(document, shown));
    goto out;
  }
  *is_run_file = is_run(document);
  made = pl_json_new_object();
  if (!compose(document, path, made)) {
    st = pl_fail(e, PL_FAIL, "out of memory for the sweep's document");
    goto out;
  }
  PL_TRY(check_top(made, e));
  PL_TRY(pl_sweep_fold_sets(made, sets, e));
  PL_TRY(check_top(made, e));
  PL_TRY(check_name(pl_json_string(pl_json_get(made, "name")), e));
  *out = made;
  made = NULL;
out:
  pl_json_release(made);
  return st;
}
