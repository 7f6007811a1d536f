#include <string.h>

#include "core/base/json.h"
#include "core/base/memory.h"

double pl_json_get_number(const pl_json *object, const char *key, double fallback) {
  const pl_json *value = pl_json_get(object, key);
  const char *word = pl_json_string(value);
  pl_json_kind kind = pl_json_kind_of(value);
  bool named = word && (strcmp(word, "NaN") == 0 || strcmp(word, "Infinity") == 0 || strcmp(word, "-Infinity") == 0);
  return kind == PL_JSON_INT || kind == PL_JSON_REAL || named ? pl_json_number(value) : fallback;
}

int64_t pl_json_get_int(const pl_json *object, const char *key, int64_t fallback) {
  const pl_json *value = pl_json_get(object, key);
  return pl_json_kind_of(value) == PL_JSON_INT ? pl_json_int(value) : fallback;
}

const char *pl_json_get_string(const pl_json *object, const char *key, const char *fallback) {
  const char *text = pl_json_string(pl_json_get(object, key));
  return text ? text : fallback;
}

pl_json *pl_json_keep(pl_json *built, bool whole) {
  if (whole) return built;
  pl_json_release(built);
  return NULL;
}

/* The object under `key`, made when there is none; borrowed. NULL when something else is there or memory is out. */
static pl_json *enter(pl_json *object, const char *key) {
  if (!pl_json_get(object, key) && !pl_json_set(object, key, pl_json_new_object())) return NULL;
  const pl_json *inside = pl_json_get(object, key);
  if (pl_json_kind_of(inside) != PL_JSON_OBJECT) return NULL;
  pl_json *owned = pl_json_retain(inside);
  pl_json_release(owned); /* the container keeps it alive */
  return owned;
}

bool pl_json_set_path(pl_json *object, const char *dotted, pl_json *value) {
  char *path = NULL, *key;
  bool ok = pl_strdup(dotted, &path, NULL) == PL_OK;
  key = path;
  for (char *dot; ok && (dot = strchr(key, '.')); key = dot + 1) {
    *dot = '\0';
    object = enter(object, key);
    ok = object != NULL;
  }
  if (ok)
    ok = pl_json_set(object, key, value);
  else
    pl_json_release(value);
  pl_free(path);
  return ok;
}

static bool is_number(pl_json_kind kind) { return kind == PL_JSON_INT || kind == PL_JSON_REAL; }

static bool equal_members(const pl_json *a, const pl_json *b) {
  for (void *it = pl_json_iter(a); it; it = pl_json_iter_next(a, it)) {
    const pl_json *other = pl_json_get(b, pl_json_iter_key(it));
    if (!other || !pl_json_equal(pl_json_iter_value(it), other)) return false;
  }
  return true;
}

static bool equal_elements(const pl_json *a, const pl_json *b) {
  for (size_t i = 0; i < pl_json_size(a); i++)
    if (!pl_json_equal(pl_json_at(a, i), pl_json_at(b, i))) return false;
  return true;
}

bool pl_json_equal(const pl_json *a, const pl_json *b) {
  pl_json_kind kind = pl_json_kind_of(a), other = pl_json_kind_of(b);
  if (is_number(kind) && is_number(other) && kind != other) return pl_json_number(a) == pl_json_number(b);
  if (kind != other) return false;
  switch (kind) {
  case PL_JSON_NULL:
    return true;
  case PL_JSON_BOOL:
    return pl_json_bool(a) == pl_json_bool(b);
  case PL_JSON_INT:
    return pl_json_int(a) == pl_json_int(b);
  case PL_JSON_REAL:
    return pl_json_number(a) == pl_json_number(b);
  case PL_JSON_STRING:
    return strcmp(pl_json_string(a), pl_json_string(b)) == 0;
  case PL_JSON_ARRAY:
    return pl_json_size(a) == pl_json_size(b) && equal_elements(a, b);
  case PL_JSON_OBJECT:
    return pl_json_size(a) == pl_json_size(b) && equal_members(a, b);
  }
  return false;
}
