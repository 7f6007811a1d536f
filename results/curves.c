#include "results/curves.h"

#include <stdio.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/curves_image.h"

enum { NAME = 96 }; /* "runs/<id>/train/clip_scale" */

static void put_ints(pl_h5 *f, const char *group, const char *name, const int64_t *values, size_t n) {
  char path[NAME];
  snprintf(path, sizeof path, "%s%s", group, name);
  pl_h5_write_ints(f, path, values, n);
}

static void put_series(pl_h5 *f, const char *group, const char *name, const double *values, size_t n) {
  char path[NAME];
  snprintf(path, sizeof path, "%s%s", group, name);
  pl_h5_write_numbers(f, path, values, n);
}

pl_status pl_curves_put(pl_h5 *f, const char *group, const pl_curve *c, pl_err *e) {
  pl_status st = PL_OK;
  int64_t *ints = NULL;
  double *numbers = NULL;
  PL_TRY(pl_alloc(c->count, sizeof *ints, "a curve", &ints, e));
  PL_TRY(pl_alloc(c->count, sizeof *numbers, "a curve", &numbers, e));
  for (size_t i = 0; i < c->count; i++) ints[i] = c->rows[i].point.step;
  put_ints(f, group, "step", ints, c->count);
  for (size_t i = 0; i < c->count; i++) ints[i] = c->rows[i].point.tokens;
  put_ints(f, group, "tokens", ints, c->count);
  for (size_t i = 0; i < c->count; i++) ints[i] = c->rows[i].attempt;
  put_ints(f, group, "attempt", ints, c->count);
  for (size_t s = 0; s < PL_SERIES_COUNT; s++) {
    for (size_t i = 0; i < c->count; i++) numbers[i] = c->rows[i].point.values[s];
    put_series(f, group, pl_series_names[s], numbers, c->count);
  }
out:
  pl_free(numbers);
  pl_free(ints);
  return st;
}

pl_status pl_curves_image(const pl_curve *c, const pl_json *config, uint64_t id, char **bytes, size_t *count,
                          pl_err *e) {
  pl_status st = PL_OK;
  pl_h5 *f = NULL;
  pl_str text = {0};
  char hex[PL_ID_SIZE];
  *bytes = NULL;
  pl_hash_hex(id, hex);
  pl_json_write_canonical(config, &text);
  PL_TRY(pl_str_check(&text, e));
  PL_TRY(pl_h5_create(&f, e));
  pl_h5_set_text(f, "/", "generator", "pipelag");
  pl_h5_set_text(f, "/", "id", hex);
  pl_h5_set_text(f, "/", "config", text.text);
  pl_h5_set_int(f, "/", "attempts", c->attempts);
  PL_TRY(pl_curves_put(f, "", c, e));
  PL_TRY(pl_h5_image(f, bytes, count, e));
out:
  pl_h5_free(f);
  pl_str_free(&text);
  return st;
}

pl_status pl_curves_write(const char *path, const pl_curve *c, const pl_json *config, uint64_t id, pl_err *e) {
  char *bytes;
  size_t count;
  pl_status st = pl_curves_image(c, config, id, &bytes, &count, e);
  if (st != PL_OK) {
    pl_err_prefix(e, "%s", path);
    return st;
  }
  st = pl_file_replace(path, bytes, count, e);
  pl_free(bytes);
  return st;
}
