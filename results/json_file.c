#include "results/json_file.h"

#include "core/base/fs.h"

pl_status pl_json_file_read(const char *path, pl_json **out, pl_err *e) {
  if (pl_json_read(path, out, e) == PL_OK) return PL_OK;
  if (e) e->status = PL_FAIL;
  return PL_FAIL;
}

typedef pl_status replace(const char *path, const void *bytes, size_t count, pl_err *e);

static pl_status write_by(replace *how, const char *path, const pl_json *document, pl_err *e) {
  pl_str text = {0};
  if (!document) return pl_fail(e, PL_FAIL, "%s: cannot be written: out of memory", path);
  pl_json_write_pretty(document, &text);
  pl_status st = pl_str_check(&text, e);
  if (st == PL_OK) st = how(path, text.text, text.length, e);
  pl_str_free(&text);
  return st;
}

pl_status pl_json_file_write(const char *path, const pl_json *document, pl_err *e) {
  return write_by(pl_file_replace, path, document, e);
}

pl_status pl_json_file_write_unsynced(const char *path, const pl_json *document, pl_err *e) {
  return write_by(pl_file_replace_unsynced, path, document, e);
}
