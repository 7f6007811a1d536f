#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "sweeps/parts.h"

/* Puts the place inside the block before the message of a failed step. */
static pl_status at(const pl_block *b, const char *middle, const char *key, pl_status st, pl_err *e) {
  pl_str where = {0};
  if (st == PL_OK) return st;
  pl_block_where(b, &where);
  pl_str_printf(&where, "%s%.200s", middle, key);
  pl_err_prefix(e, "%s", pl_str_text(&where));
  pl_str_free(&where);
  return st;
}

/* Keys of a block's object that are no axes. */
static bool is_special(pl_block_kind kind, const char *key) {
  if (strcmp(key, "seeds") == 0 || strcmp(key, "base") == 0) return true;
  if (kind == PL_BLOCK_GRID) return strcmp(key, "zip") == 0;
  return kind == PL_BLOCK_RANDOM && (strcmp(key, "n") == 0 || strcmp(key, "seed") == 0);
}

static pl_status add_axis(pl_block *b, pl_axis_origin origin, size_t room, pl_axis **out, pl_err *e) {
  pl_axis *axis = &b->axes[b->axis_count];
  pl_status st = pl_alloc(room, sizeof *axis->keys, "the keys of an axis", &axis->keys, e);
  if (st != PL_OK) return st;
  axis->origin = origin;
  axis->length = 1;
  b->axis_count++;
  *out = axis;
  return PL_OK;
}

static pl_status add_key(pl_block *b, pl_axis *axis, const char *path, pl_axis_key **out, pl_err *e) {
  pl_status st = pl_path_check(path, e);
  if (st != PL_OK) return st;
  for (size_t a = 0; a < b->axis_count; a++)
    for (size_t k = 0; k < b->axes[a].count; k++)
      if (strcmp(b->axes[a].keys[k].path, path) == 0)
        return pl_fail(e, PL_BAD, "the key is already an axis of this block; allowed: once");
  *out = &axis->keys[axis->count++];
  **out = (pl_axis_key){.path = path, .column = SIZE_MAX};
  return PL_OK;
}

/* A key with a list of its own; all keys of one axis have equally many values. */
static pl_status add_listed_key(pl_block *b, pl_axis *axis, const char *path, const pl_json *value, pl_err *e) {
  pl_axis_key *key = NULL;
  pl_status st = PL_OK;
  PL_TRY(add_key(b, axis, path, &key, e));
  PL_TRY(pl_axis_values(value, &key->values, e));
  size_t length = pl_json_size(key->values);
  if (axis->count > 1 && length != axis->length)
    st = pl_fail(e, PL_BAD, "%zu values, but %s has %zu; allowed: lists of equal length", length, axis->keys[0].path,
                 (size_t)axis->length);
  axis->length = length;
out:
  return st;
}

static pl_status add_drawn_key(pl_block *b, pl_axis *axis, const char *path, const pl_json *value, pl_err *e) {
  pl_axis_key *key = NULL;
  pl_status st = PL_OK;
  PL_TRY(add_key(b, axis, path, &key, e));
  PL_TRY(pl_draw_parse(value, &key->draw, e));
  key->draw.name = pl_hash_text(path);
out:
  return st;
}

/* A whole object as one axis, leaving out what is special and what "set" replaces. */
static pl_status add_group(pl_block *b, pl_axis_origin origin, const pl_json *object, const pl_json *set, pl_err *e) {
  const char *middle = origin == PL_AXIS_ZIP ? ".zip." : ".";
  pl_axis *axis = NULL;
  size_t keys = 0;
  pl_status st = add_axis(b, origin, pl_json_size(object), &axis, e);
  if (st != PL_OK) return st;
  for (void *it = pl_json_iter(object); it != NULL; it = pl_json_iter_next(object, it)) {
    const char *path = pl_json_iter_key(it);
    const pl_json *value = pl_json_iter_value(it);
    if (origin == PL_AXIS_OWN && is_special(b->kind, path)) continue;
    keys++;
    if (pl_json_get(set, path) != NULL) continue;
    st = b->kind == PL_BLOCK_RANDOM ? add_drawn_key(b, axis, path, value, e) : add_listed_key(b, axis, path, value, e);
    if (st != PL_OK) return at(b, middle, path, st, e);
  }
  if (keys == 0)
    return at(b, origin == PL_AXIS_ZIP ? ".zip" : "", "", pl_fail(e, PL_BAD, "no keys; allowed: at least one"), e);
  return PL_OK;
}

static pl_status add_zips(pl_block *b, const pl_json *value, const pl_json *set, pl_err *e) {
  bool list = pl_json_kind_of(value) == PL_JSON_ARRAY;
  for (size_t i = 0; i < (list ? pl_json_size(value) : 1); i++) {
    const pl_json *group = list ? pl_json_at(value, i) : value;
    char shown[80];
    if (pl_json_kind_of(group) != PL_JSON_OBJECT)
      return at(b, ".zip", "",
                pl_fail(e, PL_BAD, "%s; allowed: an object of equally long lists", pl_json_show(group, shown)), e);
    pl_status st = add_group(b, PL_AXIS_ZIP, group, set, e);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

static pl_status add_grid(pl_block *b, const pl_json *object, const pl_json *set, pl_err *e) {
  for (void *it = pl_json_iter(object); it != NULL; it = pl_json_iter_next(object, it)) {
    const char *path = pl_json_iter_key(it);
    pl_axis *axis = NULL;
    pl_status st = PL_OK;
    if (strcmp(path, "zip") == 0) {
      st = add_zips(b, pl_json_iter_value(it), set, e);
    } else if (!is_special(b->kind, path) && pl_json_get(set, path) == NULL) {
      st = add_axis(b, PL_AXIS_OWN, 1, &axis, e);
      if (st == PL_OK) st = at(b, ".", path, add_listed_key(b, axis, path, pl_json_iter_value(it), e), e);
    }
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

static pl_status add_random(pl_block *b, const pl_json *object, const pl_json *set, pl_err *e) {
  const pl_json *n = pl_json_get(object, "n"), *seed = pl_json_get(object, "seed");
  int64_t count = 0, seed_value = 0;
  char shown[80];
  if (!pl_whole_number(n, &count) || count < 1 || count > UINT32_MAX)
    return at(b, ".n", "",
              pl_fail(e, PL_BAD, "%s; allowed: the number of draws, a whole number from 1",
                      n == NULL ? "missing" : pl_json_show(n, shown)),
              e);
  if (seed != NULL && (!pl_whole_number(seed, &seed_value) || seed_value < 0))
    return at(
        b, ".seed", "",
        pl_fail(e, PL_BAD, "%s; allowed: the seed of the draws, a whole number from 0", pl_json_show(seed, shown)), e);
  pl_status st = add_group(b, PL_AXIS_OWN, object, set, e);
  if (st != PL_OK) return st;
  pl_axis *axis = &b->axes[b->axis_count - 1];
  for (size_t k = 0; k < axis->count; k++) axis->keys[k].draw.seed = (uint64_t)seed_value;
  axis->length = axis->count > 0 ? (uint64_t)count : 1;
  return PL_OK;
}

static pl_status add_sets(pl_block *b, const pl_json *set, pl_err *e) {
  for (void *it = pl_json_iter(set); it != NULL; it = pl_json_iter_next(set, it)) {
    const char *path = pl_json_iter_key(it);
    pl_axis *axis = NULL;
    pl_status st = add_axis(b, PL_AXIS_SET, 1, &axis, e);
    if (st != PL_OK) return st;
    st = add_listed_key(b, axis, path, pl_json_iter_value(it), e);
    if (st != PL_OK) {
      pl_err_prefix(e, "--set %.200s", path);
      return st;
    }
  }
  return PL_OK;
}

static bool sets_seed(const pl_block *b) {
  for (size_t i = 0; i < b->fixed_count; i++)
    if (strcmp(b->fixed[i].path, "seed") == 0) return true;
  for (size_t a = 0; a < b->axis_count; a++)
    for (size_t k = 0; k < b->axes[a].count; k++)
      if (strcmp(b->axes[a].keys[k].path, "seed") == 0) return true;
  return false;
}

/* A block that sets "seed" itself takes none of the sweep's; seeds from "set" replace the block's own. */
static pl_status add_seeds(const pl_sweep *s, pl_block *b, const pl_json *own, const pl_json *set, pl_err *e) {
  pl_axis *axis = NULL;
  pl_axis_key *key = NULL;
  pl_json *values = NULL;
  pl_status st = PL_OK;
  if (own != NULL) st = at(b, ".seeds", "", pl_axis_seeds(own, &values, e), e);
  if (st != PL_OK) return st;
  if (own == NULL && s->seeds != NULL) values = pl_json_retain(s->seeds);
  if (values == NULL || pl_json_get(set, "seed") != NULL) goto out;
  if (sets_seed(b)) {
    if (own != NULL) st = at(b, "", "", pl_fail(e, PL_BAD, "both \"seed\" and \"seeds\"; allowed: one of them"), e);
    goto out;
  }
  PL_TRY(add_axis(b, own != NULL ? PL_AXIS_OWN_SEEDS : PL_AXIS_SWEEP_SEEDS, 1, &axis, e));
  PL_TRY(add_key(b, axis, "seed", &key, e));
  key->values = values;
  axis->length = pl_json_size(values);
  values = NULL;
out:
  pl_json_release(values);
  return st;
}

/* Within a layer sections come before the keys inside them, as in pl_entries_parse. */
static void assign_slots(pl_block *b, size_t first, size_t last) {
  size_t left = 0;
  for (size_t a = first; a < last; a++) left += b->axes[a].count;
  for (size_t depth = 0; left > 0; depth++)
    for (size_t a = first; a < last; a++)
      for (size_t k = 0; k < b->axes[a].count; k++) {
        if (pl_path_depth(b->axes[a].keys[k].path) != depth) continue;
        b->axes[a].keys[k].slot = b->slots++;
        left--;
      }
}

pl_status pl_block_parse_axes(const pl_sweep *s, const pl_json *object, pl_block *b, pl_err *e) {
  const pl_json *set = pl_json_get(s->document, "set");
  const pl_json *own_seeds = b->kind == PL_BLOCK_RUNS ? NULL : pl_json_get(object, "seeds");
  pl_status st = PL_OK;
  if (b->kind == PL_BLOCK_GRID) PL_TRY(add_grid(b, object, set, e));
  if (b->kind == PL_BLOCK_ZIP) PL_TRY(add_group(b, PL_AXIS_OWN, object, set, e));
  if (b->kind == PL_BLOCK_RANDOM) PL_TRY(add_random(b, object, set, e));
  size_t own = b->axis_count;
  PL_TRY(add_sets(b, set, e));
  size_t with_sets = b->axis_count;
  PL_TRY(add_seeds(s, b, own_seeds, set, e));
  assign_slots(b, 0, own);
  assign_slots(b, own, with_sets);
  assign_slots(b, with_sets, b->axis_count);
out:
  return st;
}
