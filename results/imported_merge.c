#include <string.h>

#include "core/config/run_parts.h"
#include "results/imported.h"

static bool is_component(const char *path) {
  for (pl_part part = PL_PART_MODEL; part < PL_PARTS; part++)
    if (strcmp(path, pl_part_paths[part]) == 0) return true;
  return false;
}

static bool is_free(const char *path) {
  const char *key;
  pl_part part = pl_part_of(path, &key);
  return part >= PL_PART_MODEL && key[0] != '\0';
}

/* The JSON text of a list. */
static pl_json *as_text(const pl_json *list) {
  pl_str text = {0};
  pl_json_write_canonical(list, &text);
  pl_json *out = text.failed ? NULL : pl_json_new_string(pl_str_text(&text));
  pl_str_free(&text);
  return out;
}

/* "soap" as {"type": "soap"}; an object as it is. */
static pl_json *as_component(const pl_json *value) {
  if (!pl_json_string(value)) return pl_json_retain(value);
  pl_json *object = pl_json_new_object();
  return pl_json_keep(object, object && pl_json_set(object, "type", pl_json_retain(value)));
}

static pl_json *as_chain(const pl_json *list) {
  pl_json *chain = pl_json_new_array();
  bool ok = chain != NULL;
  for (size_t i = 0; ok && i < pl_json_size(list); i++) ok = pl_json_append(chain, as_component(pl_json_at(list, i)));
  return pl_json_keep(chain, ok);
}

/* A name chooses the type and keeps the other keys, which may have been said before. */
static bool set_type(pl_json *document, const char *path, const pl_json *name) {
  pl_str key = {0};
  const char *last = strrchr(path, '.');
  const pl_json *found = document;
  if (last) found = pl_json_get(document, "train");
  found = pl_json_get(found, last ? last + 1 : path);
  bool ok =
      !found || pl_json_kind_of(found) == PL_JSON_OBJECT || pl_json_set_path(document, path, pl_json_new_object());
  pl_str_printf(&key, "%s.type", path);
  ok = ok && !key.failed && pl_json_set_path(document, key.text, pl_json_retain(name));
  pl_str_free(&key);
  return ok;
}

static pl_status put(pl_json *document, const char *path, const pl_json *value, const char *where, pl_err *e);

static pl_status put_members(pl_json *document, const char *path, const pl_json *object, const char *where, pl_err *e) {
  char below[PL_WHERE];
  for (void *it = pl_json_iter(object); it; it = pl_json_iter_next(object, it)) {
    pl_status st = put(document, pl_where(path, pl_json_iter_key(it), below), pl_json_iter_value(it), where, e);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

static pl_status put(pl_json *document, const char *path, const pl_json *value, const char *where, pl_err *e) {
  pl_json_kind kind = pl_json_kind_of(value);
  bool ok;
  if (strcmp(path, PL_IMPORTED_KEY) == 0)
    return pl_fail(e, PL_BAD, "%s: the key \"" PL_IMPORTED_KEY "\" is pipelag's own", where);
  if (kind == PL_JSON_OBJECT) return put_members(document, path, value, where, e);
  if (is_component(path) && kind == PL_JSON_STRING)
    ok = set_type(document, path, value);
  else if (kind == PL_JSON_ARRAY && strcmp(path, "correction") == 0)
    ok = pl_json_set(document, path, as_chain(value));
  else if (is_component(path))
    return pl_fail(e, PL_BAD, "%s.%s: must be a name or an object with \"type\", not %s", where, path,
                   pl_json_kind_name(kind));
  else
    ok = pl_json_set_path(document, path,
                          kind == PL_JSON_ARRAY && is_free(path) ? as_text(value) : pl_json_retain(value));
  return ok ? PL_OK : pl_fail(e, PL_BAD, "%s.%s: stands below a key that is no object", where, path);
}

pl_status pl_imported_merge(pl_json *document, const pl_json *object, const char *where, pl_err *e) {
  if (object && pl_json_kind_of(object) != PL_JSON_OBJECT)
    return pl_fail(e, PL_BAD, "%s: must be an object, not %s", where, pl_json_kind_name(pl_json_kind_of(object)));
  return put_members(document, "", object, where, e);
}
