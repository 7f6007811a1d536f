#include "analysis/key_values.h"

#include <string.h>

#include "analysis/config_view.h"
#include "core/base/memory.h"

enum { SHOWN = 6 };

const pl_key_set *pl_key_values_find(const pl_key_values *k, const char *key) {
  for (size_t i = 0; i < k->count; i++)
    if (strcmp(k->sets[i].key, key) == 0) return &k->sets[i];
  return NULL;
}

/* The set of a key; *hint is where it was in the run before, since runs of a sweep have nearly the same keys. */
static pl_status find_or_add(pl_key_values *k, const char *key, size_t *hint, pl_key_set **out, pl_err *e) {
  pl_status st = PL_OK;
  if (*hint >= k->count || strcmp(k->sets[*hint].key, key) != 0) {
    *hint = 0;
    while (*hint < k->count && strcmp(k->sets[*hint].key, key) != 0) ++*hint;
  }
  if (*hint == k->count) {
    if (k->count == k->capacity) {
      size_t larger = k->capacity ? 2 * k->capacity : 64;
      PL_TRY(pl_grow(k->capacity, larger, sizeof k->sets[0], "keys", &k->sets, e));
      k->capacity = larger;
    }
    PL_TRY(pl_strdup(key, &k->sets[k->count].key, e));
    k->count++;
  }
  *out = &k->sets[(*hint)++];
out:
  return st;
}

static pl_status add_value(pl_key_set *s, const char *value, pl_err *e) {
  pl_status st = PL_OK;
  uint64_t hash = pl_hash_text(value);
  for (size_t i = s->count; i-- > 0;)
    if (s->hashes[i] == hash) return PL_OK;
  if (s->count == s->capacity) {
    size_t larger = s->capacity ? 2 * s->capacity : 8;
    PL_TRY(pl_grow(s->capacity, larger, sizeof s->hashes[0], "values", &s->hashes, e));
    PL_TRY(pl_grow(s->capacity, larger, sizeof s->values[0], "values", &s->values, e));
    s->capacity = larger;
  }
  PL_TRY(pl_strdup(value, &s->values[s->count], e));
  s->hashes[s->count++] = hash;
out:
  return st;
}

static pl_status add(pl_key_values *k, const char *key, const pl_str *value, size_t *hint, pl_err *e) {
  pl_key_set *set = NULL;
  pl_status st = pl_str_check(value, e);
  if (st == PL_OK) st = find_or_add(k, key, hint, &set, e);
  return st == PL_OK ? add_value(set, pl_str_text(value), e) : st;
}

pl_status pl_key_values_add(pl_key_values *k, const pl_run_config *c, pl_err *e) {
  pl_status st = PL_OK;
  pl_config_part parts[PL_CONFIG_PARTS];
  size_t count = pl_config_parts(c, parts), hint = 0;
  pl_str key = {0}, value = {0};
  for (size_t i = 0; i < count; i++) {
    value.length = 0;
    pl_str_append(&value, parts[i].type ? parts[i].type : "");
    if (parts[i].type && parts[i].slot != PL_SLOT_CORRECTION) PL_TRY(add(k, parts[i].prefix, &value, &hint, e));
    for (const pl_param *row = parts[i].table; row->type != PL_END; row++) {
      if (row->not_identity) continue;
      key.length = value.length = 0;
      pl_config_key(&parts[i], row, &key);
      pl_config_value(&parts[i], row, &value);
      PL_TRY(pl_str_check(&key, e));
      PL_TRY(add(k, key.text, &value, &hint, e));
    }
  }
  value.length = 0;
  pl_run_config_correction_name(c, &value);
  PL_TRY(add(k, "correction", &value, &hint, e));
out:
  pl_str_free(&key);
  pl_str_free(&value);
  return st;
}

void pl_key_values_free(pl_key_values *k) {
  for (size_t i = 0; i < k->count; i++) {
    for (size_t v = 0; v < k->sets[i].count; v++) pl_free(k->sets[i].values[v]);
    pl_free(k->sets[i].values);
    pl_free(k->sets[i].hashes);
    pl_free(k->sets[i].key);
  }
  pl_free(k->sets);
  *k = (pl_key_values){0};
}

static bool holds(const pl_key_set *s, uint64_t hash) {
  for (size_t i = 0; i < s->count; i++)
    if (s->hashes[i] == hash) return true;
  return false;
}

bool pl_key_sets_equal(const pl_key_set *a, const pl_key_set *b) {
  if (!a || !b) return a == b;
  if (a->count != b->count) return false;
  for (size_t i = 0; i < a->count; i++)
    if (!holds(b, a->hashes[i])) return false;
  return true;
}

void pl_key_set_text(const pl_key_set *s, pl_str *out) {
  if (!s) pl_str_append(out, "-");
  for (size_t i = 0; s && i < s->count && i < SHOWN; i++)
    pl_str_printf(out, "%s%s", i > 0 ? ", " : "", s->values[i][0] ? s->values[i] : "\"\"");
  if (s && s->count > SHOWN) pl_str_printf(out, ", ... (%zu)", s->count);
}
