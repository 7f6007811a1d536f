#include "core/base/memory.h"
#include "sweeps/parts.h"

size_t pl_path_depth(const char *path) {
  size_t dots = 0;
  for (; *path != '\0'; path++) dots += *path == '.';
  return dots;
}

static bool is_taken(void *it, const pl_json *left_out) { return pl_json_get(left_out, pl_json_iter_key(it)) == NULL; }

pl_status pl_entries_parse(const pl_json *object, const pl_json *left_out, pl_entry **entries, size_t *count,
                           pl_err *e) {
  size_t total = 0, filled = 0;
  for (void *it = pl_json_iter(object); it != NULL; it = pl_json_iter_next(object, it)) total += is_taken(it, left_out);
  pl_status st = pl_alloc(total, sizeof **entries, "the settings of a block", entries, e);
  if (st != PL_OK) return st;
  for (size_t depth = 0; filled < total; depth++)
    for (void *it = pl_json_iter(object); it != NULL; it = pl_json_iter_next(object, it)) {
      const char *key = pl_json_iter_key(it);
      if (is_taken(it, left_out) && pl_path_depth(key) == depth)
        (*entries)[filled++] = (pl_entry){.path = key, .value = pl_json_iter_value(it), .where = ""};
    }
  *count = total;
  return PL_OK;
}
