#include "analysis/extend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/sweep_dir.h"
#include "sweeps/sweep.h"

typedef struct extension {
  const pl_registries *registries;
  const pl_json *frozen; /* as it is in the directory */
  const char *path;      /* for messages */
} extension;

/* The run ids of a document, sorted; *ids is released by pl_free. */
static pl_status expand(const extension *x, const pl_json *document, uint64_t **ids, size_t *count, pl_err *e) {
  pl_status st = PL_OK;
  pl_sweep *sweep = NULL;
  const pl_sweep_run *run = NULL;
  size_t capacity = 0;
  *ids = NULL;
  *count = 0;
  PL_TRY(pl_sweep_from_json(x->registries, document, x->path, (pl_sets){0}, &sweep, e));
  for (;;) {
    PL_TRY(pl_sweep_next(sweep, &run, e));
    if (!run) break;
    if (*count == capacity) {
      size_t larger = capacity ? 2 * capacity : 64;
      PL_TRY(pl_grow(capacity, larger, sizeof **ids, "run ids", ids, e));
      capacity = larger;
    }
    (*ids)[(*count)++] = run->id;
  }
out:
  pl_sweep_free(sweep);
  return st;
}

static int by_value(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

/* What the sweep's base and --set give together with these settings, as one run. */
static pl_json *trial(const extension *x, const pl_json *settings) {
  static const char *const kept[] = {"name", "base", "set"};
  pl_json *o = pl_json_new_object(), *runs = pl_json_new_array();
  bool ok = o && pl_json_append(runs, pl_json_copy(settings)) && pl_json_set(o, "runs", pl_json_retain(runs));
  pl_json_release(runs);
  for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
    const pl_json *value = pl_json_get(x->frozen, kept[i]);
    if (value) ok = ok && pl_json_set(o, kept[i], pl_json_retain(value));
  }
  return pl_json_keep(o, ok);
}

/* Whether the settings name the run `id` and no other. A base that cannot stand without what was left out does not. */
static bool gives(const extension *x, const pl_json *settings, uint64_t id) {
  uint64_t *ids = NULL;
  size_t count = 0;
  pl_json *document = trial(x, settings);
  bool same = document && expand(x, document, &ids, &count, NULL) == PL_OK && count == 1 && ids[0] == id;
  pl_free(ids);
  pl_json_release(document);
  return same;
}

/* The members of `object` except `left_out`, as keys below `prefix`. */
static bool copy_members(const pl_json *object, const char *prefix, const char *left_out, pl_json *out) {
  bool ok = true;
  for (void *it = pl_json_iter(object); it && ok; it = pl_json_iter_next(object, it)) {
    pl_str key = {0};
    pl_str_printf(&key, "%s%s", prefix, pl_json_iter_key(it));
    if (strcmp(pl_json_iter_key(it), left_out) != 0)
      ok = !key.failed && pl_json_set(out, key.text, pl_json_retain(pl_json_iter_value(it)));
    pl_str_free(&key);
  }
  return ok;
}

/* The full configuration as settings of which each can be left out: the keys of train and pipeline one by one, the
 * learning rate apart from its optimizer. */
static pl_json *full_settings(const pl_run_config *c) {
  pl_json *dump = pl_run_config_dump(c), *out = pl_json_new_object();
  bool ok = dump && out;
  for (void *it = pl_json_iter(dump); it && ok; it = pl_json_iter_next(dump, it)) {
    const char *key = pl_json_iter_key(it);
    const pl_json *value = pl_json_iter_value(it);
    if (strcmp(key, "train") == 0) {
      ok = copy_members(value, "train.", "", out);
    } else if (strcmp(key, "pipeline") == 0) {
      ok = copy_members(value, "pipeline.", "", out);
    } else if (strcmp(key, "optimizer") == 0) {
      pl_json *optimizer = pl_json_new_object();
      ok = optimizer && copy_members(value, "", "lr", optimizer);
      ok = pl_json_set(out, key, optimizer) && ok;
    } else if (strcmp(key, "name") != 0 && strcmp(key, "notes") != 0) {
      ok = pl_json_set(out, key, pl_json_retain(value));
    }
  }
  ok = ok && pl_json_set(out, "optimizer.lr", pl_json_new_number(pl_run_config_lr(c)));
  pl_json_release(dump);
  return pl_json_keep(out, ok);
}

/* Takes a shorter form of the settings over when it names the same run. */
static bool take_shorter(const extension *x, pl_json *shorter, bool whole, pl_json **settings, uint64_t id) {
  if (shorter && whole && gives(x, shorter, id)) {
    pl_json_release(*settings);
    *settings = shorter;
    return true;
  }
  pl_json_release(shorter);
  return false;
}

/* Leaves out, one after the other, what the sweep's base says already, and defaults of a section: what remains is what
 * a reader must know. */
static void shorten(const extension *x, pl_json **settings, uint64_t id) {
  pl_json *all = pl_json_retain(*settings);
  for (void *it = pl_json_iter(all); it; it = pl_json_iter_next(all, it)) {
    const char *key = pl_json_iter_key(it);
    const char *type = pl_json_get_string(pl_json_iter_value(it), "type", NULL);
    pl_json *shorter = pl_json_new_object();
    bool whole = shorter && copy_members(*settings, "", key, shorter);
    if (take_shorter(x, shorter, whole, settings, id) || !type) continue;
    shorter = pl_json_copy(*settings);
    whole = pl_json_set(shorter, key, pl_json_new_string(type));
    (void)take_shorter(x, shorter, whole, settings, id);
  }
  pl_json_release(all);
}

/* {"base": {...}, "optimizer.lr": [lr], "seeds": [...]} for one arm. */
static pl_status make_block(const extension *x, const pl_rate_row *r, pl_json **out, pl_err *e) {
  const pl_arm_cell *cell = r->arm->best;
  pl_json *seeds = pl_json_new_array(), *rates = pl_json_new_array(), *base = pl_json_new_object();
  pl_json *settings = full_settings(cell->runs[0].run->config);
  *out = pl_json_new_object();
  bool ok = settings != NULL && base != NULL && pl_json_append(rates, pl_json_new_number(pl_rate_beyond_edge(r)));
  for (size_t i = 0; ok && i < cell->count; i++) ok = pl_json_append(seeds, pl_json_new_int(cell->runs[i].seed));
  pl_json *unseeded = pl_json_new_object();
  if (ok) shorten(x, &settings, cell->runs[0].run->id);
  ok = ok && unseeded && copy_members(settings, "", "seed", unseeded) &&
       copy_members(unseeded, "", "optimizer.lr", base);
  if (pl_json_size(base) > 0) ok = ok && pl_json_set(*out, "base", pl_json_retain(base));
  ok = ok && pl_json_set(*out, "optimizer.lr", pl_json_retain(rates)) &&
       pl_json_set(*out, "seeds", pl_json_retain(seeds));
  pl_json_release(unseeded);
  pl_json_release(settings);
  pl_json_release(base);
  pl_json_release(rates);
  pl_json_release(seeds);
  return ok ? PL_OK : pl_fail(e, PL_FAIL, "out of memory for the extended sweep");
}

/* The document's grid as a list, with the blocks behind it. */
static pl_status append_blocks(pl_json *document, const pl_json *blocks, pl_err *e) {
  const pl_json *grid = pl_json_get(document, "grid");
  bool listed = grid && pl_json_kind_of(grid) == PL_JSON_ARRAY, ok = true;
  pl_json *list = listed ? pl_json_copy(grid) : pl_json_new_array();
  if (grid && !listed) ok = pl_json_append(list, pl_json_retain(grid));
  for (size_t i = 0; ok && i < pl_json_size(blocks); i++)
    ok = pl_json_append(list, pl_json_retain(pl_json_at(blocks, i)));
  if (ok && list && pl_json_set(document, "grid", list)) return PL_OK;
  return pl_fail(e, PL_FAIL, "out of memory for the extended sweep");
}

/* Every run of the frozen sweep and every new one has to come out. */
static pl_status verify(const extension *x, const pl_json *document, size_t wanted, size_t *added, pl_err *e) {
  pl_status st = PL_OK;
  uint64_t *before = NULL, *after = NULL;
  size_t n = 0, m = 0, kept = 0;
  PL_TRY(expand(x, x->frozen, &before, &n, e));
  PL_TRY(expand(x, document, &after, &m, e));
  qsort(after, m, sizeof after[0], by_value);
  for (size_t i = 0; i < n; i++) kept += bsearch(&before[i], after, m, sizeof after[0], by_value) != NULL;
  *added = m - kept;
  if (kept < n || *added != wanted)
    st = pl_fail(e, PL_BAD,
                 "%s: %zu of the %zu runs that extend its learning rates would come out; \"set\", \"exclude\", "
                 "\"only_if\" or a file of one run keeps the others; allowed: a sweep whose learning rates are axes of "
                 "its blocks",
                 x->path, *added, wanted);
out:
  pl_free(before);
  pl_free(after);
  return st;
}

/* The directory of all arms at an edge; NULL when there is none. */
static pl_status find_dir(const pl_rate_table *rates, const char **dir, pl_err *e) {
  *dir = NULL;
  for (size_t i = 0; i < rates->count; i++) {
    if (isnan(pl_rate_beyond_edge(&rates->rows[i]))) continue;
    const char *own = rates->rows[i].arm->best->runs[0].run->dir;
    if (*dir && strcmp(*dir, own) != 0)
      return pl_fail(e, PL_BAD, "arms at an edge of their learning rates lie in %s and in %s; allowed: one directory",
                     *dir, own);
    *dir = own;
  }
  return *dir ? PL_OK
              : pl_fail(e, PL_NOTHING,
                        "no best learning rate lies at an edge beyond which nothing was asked for; there is nothing "
                        "to extend");
}

pl_status pl_extend(const pl_registries *r, const pl_rate_table *rates, pl_json **document, size_t *added, pl_err *e) {
  pl_status st = PL_OK;
  extension x = {.registries = r};
  pl_json *frozen = NULL, *blocks = pl_json_new_array(), *block = NULL;
  size_t wanted = 0;
  int next = 0;
  *document = NULL;
  PL_TRY(find_dir(rates, &x.path, e));
  PL_TRY(pl_sweep_dir_newest(x.path, &frozen, &next, e));
  if (!frozen || pl_json_get(frozen, PL_IMPORTED_KEY))
    PL_TRY(pl_fail(e, PL_BAD, "%s: holds no sweep that could go on; allowed: the result directory of a sweep", x.path));
  x.frozen = frozen;
  for (size_t i = 0; i < rates->count; i++) {
    if (isnan(pl_rate_beyond_edge(&rates->rows[i]))) continue;
    PL_TRY(make_block(&x, &rates->rows[i], &block, e));
    if (!pl_json_append(blocks, pl_json_retain(block))) PL_TRY(pl_fail(e, PL_FAIL, "out of memory"));
    pl_json_release(block);
    block = NULL;
    wanted += rates->rows[i].arm->best->count;
  }
  *document = pl_json_copy(frozen);
  PL_TRY(append_blocks(*document, blocks, e));
  PL_TRY(verify(&x, *document, wanted, added, e));
out:
  pl_json_release(block);
  pl_json_release(blocks);
  pl_json_release(frozen);
  if (st != PL_OK) {
    pl_json_release(*document);
    *document = NULL;
  }
  return st;
}

pl_status pl_extend_data_folder(const char *dir, char **out, pl_err *e) {
  pl_status st = PL_OK;
  char *path = NULL;
  pl_json *location = NULL;
  *out = NULL;
  PL_TRY(pl_path_join(dir, "location.json", &path, e));
  if (pl_json_read(path, &location, NULL) == PL_OK) {
    const char *folder = pl_json_get_string(location, "folder", NULL);
    if (folder) PL_TRY(pl_strdup(folder, out, e));
  }
out:
  pl_json_release(location);
  pl_free(path);
  return st;
}
