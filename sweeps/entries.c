#include <string.h>

#include "core/base/memory.h"
#include "sweeps/parts.h"

enum { LONGEST_PATH = 200 };

size_t pl_path_depth(const char *path) {
  size_t dots = 0;
  for (; *path != '\0'; path++) dots += *path == '.';
  return dots;
}

pl_status pl_path_check(const char *path, pl_err *e) {
  size_t length = strlen(path);
  if (length <= LONGEST_PATH) return PL_OK;
  return pl_fail(e, PL_BAD, "a key of %zu bytes that starts with \"%.40s\"; allowed: at most %d", length, path,
                 LONGEST_PATH);
}

static bool is_taken(void *it, const pl_json *left_out) { return pl_json_get(left_out, pl_json_iter_key(it)) == NULL; }

/* Whether nested objects reach the path: "train" holds "steps", or "train.x" holds it, for "train.x.steps". */
static bool is_nested(const pl_json *object, const char *path) {
  char head[LONGEST_PATH + 1];
  for (const char *dot = strchr(path, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
    memcpy(head, path, (size_t)(dot - path));
    head[dot - path] = '\0';
    const pl_json *inner = pl_json_get(object, head);
    if (pl_json_get(inner, dot + 1) != NULL || is_nested(inner, dot + 1)) return true;
  }
  return false;
}

static pl_status check_path(const pl_json *object, const char *path, const char *where, pl_err *e) {
  pl_status st = pl_path_check(path, e);
  if (st == PL_OK && is_nested(object, path))
    return pl_fail(e, PL_BAD, "%s%s%s: given twice, with dots and inside %.*s; allowed: once", where,
                   where[0] != '\0' ? "." : "", path, (int)strcspn(path, "."), path);
  if (st != PL_OK && where[0] != '\0') pl_err_prefix(e, "%s", where);
  return st;
}

pl_status pl_entries_parse(const pl_json *object, const pl_json *left_out, const char *where, pl_entry **entries,
                           size_t *count, pl_err *e) {
  size_t total = 0, filled = 0;
  pl_status st = PL_OK;
  for (void *it = pl_json_iter(object); it != NULL; it = pl_json_iter_next(object, it)) {
    PL_TRY(check_path(object, pl_json_iter_key(it), where, e));
    total += is_taken(it, left_out);
  }
  PL_TRY(pl_alloc(total, sizeof **entries, "the settings of a block", entries, e));
  for (size_t depth = 0; filled < total; depth++)
    for (void *it = pl_json_iter(object); it != NULL; it = pl_json_iter_next(object, it)) {
      const char *key = pl_json_iter_key(it);
      if (is_taken(it, left_out) && pl_path_depth(key) == depth)
        (*entries)[filled++] = (pl_entry){.path = key, .value = pl_json_iter_value(it), .where = ""};
    }
  *count = total;
out:
  return st;
}
