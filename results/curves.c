#include "results/curves.h"

#include <stdio.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/curves_image.h"

enum { NAME = 96 }; /* "runs/<id>/train/clip_scale" */

/* What a dataset holds, as its attributes. */
static void describe(pl_h5 *f, const char *path, const char *unit, const char *text) {
  if (unit[0] != '\0') pl_h5_set_text(f, path, "unit", unit);
  pl_h5_set_text(f, path, "description", text);
}

static void put_ints(pl_h5 *f, const char *group, const char *name, const int64_t *values, size_t n, const char *unit,
                     const char *text) {
  char path[NAME];
  snprintf(path, sizeof path, "%s%s", group, name);
  pl_h5_write_ints(f, path, values, n);
  describe(f, path, unit, text);
}

static void put_series(pl_h5 *f, const char *group, size_t series, const double *values, size_t n) {
  char path[NAME];
  snprintf(path, sizeof path, "%s%s", group, pl_series_names[series]);
  pl_h5_write_numbers(f, path, values, n);
  describe(f, path, pl_series_units[series], pl_series_texts[series]);
}

static const char step_text[] = "updates that had been made";

static const struct {
  const char *name;
  size_t offset;
  const char *text;
} time_columns[] = {
    {"busy", offsetof(pl_stage_times, busy), "time in which the stage computed, since its previous record"},
    {"communication", offsetof(pl_stage_times, communication), "time inside the transport, since the previous record"},
    {"idle", offsetof(pl_stage_times, idle), "time in which the stage waited, since its previous record"}};

/* Columns are stages, replica by replica. */
static pl_status put_times(pl_h5 *f, const char *group, const pl_times *t, pl_err *e) {
  char below[NAME], path[NAME];
  double *numbers = NULL;
  if (t->stages == 0) return PL_OK;
  pl_status st = pl_alloc(t->count * t->stages, sizeof *numbers, "the times of stages", &numbers, e);
  if (st != PL_OK) return st;
  snprintf(below, sizeof below, "%sstages/", group);
  put_ints(f, below, "step", t->steps, t->count, "updates", step_text);
  put_ints(f, below, "attempt", t->attempts_of, t->count, "", "attempt that recorded the times");
  for (size_t k = 0; k < sizeof time_columns / sizeof *time_columns; k++) {
    for (size_t i = 0; i < t->count * t->stages; i++)
      memcpy(&numbers[i], (const char *)&t->times[i] + time_columns[k].offset, sizeof *numbers);
    snprintf(path, sizeof path, "%s%s", below, time_columns[k].name);
    pl_h5_write_table(f, path, numbers, t->count, t->stages);
    describe(f, path, "s", time_columns[k].text);
  }
  pl_free(numbers);
  return PL_OK;
}

pl_status pl_curves_put(pl_h5 *f, const char *group, const pl_curve *c, pl_err *e) {
  pl_status st = PL_OK;
  int64_t *ints = NULL;
  double *numbers = NULL;
  PL_TRY(pl_alloc(c->count, sizeof *ints, "a curve", &ints, e));
  PL_TRY(pl_alloc(c->count, sizeof *numbers, "a curve", &numbers, e));
  for (size_t i = 0; i < c->count; i++) ints[i] = c->rows[i].point.step;
  put_ints(f, group, "step", ints, c->count, "updates", step_text);
  for (size_t i = 0; i < c->count; i++) ints[i] = c->rows[i].point.tokens;
  put_ints(f, group, "tokens", ints, c->count, "tokens", "tokens that these updates were trained on");
  for (size_t i = 0; i < c->count; i++) ints[i] = c->rows[i].attempt;
  put_ints(f, group, "attempt", ints, c->count, "", "attempt that logged the point");
  for (size_t s = 0; s < PL_SERIES_COUNT; s++) {
    for (size_t i = 0; i < c->count; i++) numbers[i] = c->rows[i].point.values[s];
    put_series(f, group, s, numbers, c->count);
  }
  PL_TRY(put_times(f, group, &c->times, e));
out:
  pl_free(numbers);
  pl_free(ints);
  return st;
}

static pl_status put_run(pl_h5 *f, const pl_curve *c, const pl_json *config, uint64_t id, pl_err *e) {
  pl_status st = PL_OK;
  pl_str text = {0};
  char hex[PL_ID_SIZE];
  pl_hash_hex(id, hex);
  pl_json_write_canonical(config, &text);
  PL_TRY(pl_str_check(&text, e));
  pl_h5_set_text(f, "/", "generator", "pipelag");
  pl_h5_set_text(f, "/", "id", hex);
  pl_h5_set_text(f, "/", "config", text.text);
  pl_h5_set_int(f, "/", "attempts", c->attempts);
  PL_TRY(pl_curves_put(f, "", c, e));
out:
  pl_str_free(&text);
  return st;
}

/* Takes `f`; NULL: a new one. */
static pl_status make_image(pl_h5 *f, const pl_curve *c, const pl_json *config, uint64_t id, char **bytes,
                            size_t *count, pl_err *e) {
  pl_status st = PL_OK;
  *bytes = NULL;
  if (!f) PL_TRY(pl_h5_create(&f, e));
  PL_TRY(put_run(f, c, config, id, e));
  PL_TRY(pl_h5_image(f, bytes, count, e));
out:
  pl_h5_free(f);
  return st;
}

pl_status pl_curves_image(const pl_curve *c, const pl_json *config, uint64_t id, char **bytes, size_t *count,
                          pl_err *e) {
  return make_image(NULL, c, config, id, bytes, count, e);
}

pl_status pl_curves_write(const char *path, const pl_curve *c, const pl_json *config, uint64_t id, pl_err *e) {
  return pl_curves_write_into(NULL, path, c, config, id, e);
}

pl_status pl_curves_write_into(pl_h5 *blank, const char *path, const pl_curve *c, const pl_json *config, uint64_t id,
                               pl_err *e) {
  char *bytes;
  size_t count;
  pl_status st = make_image(blank, c, config, id, &bytes, &count, e);
  if (st != PL_OK) {
    pl_err_prefix(e, "%s", path);
    return st;
  }
  st = pl_file_replace_whole(path, bytes, count, e);
  pl_free(bytes);
  return st;
}
