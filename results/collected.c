#include "results/collected.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"
#include "results/figures.h"

_Static_assert(PL_FIGURES <= sizeof((pl_collected){0}.figures) / sizeof(void *), "one column for each figure");

enum { PATH = 96, GROUP = 32 };

static pl_status wrong_length(const char *path, size_t n, size_t expected, pl_err *e) {
  return pl_fail(e, PL_FAIL, "HDF5: %s is damaged: it has %zu entries, not %zu", path, n, expected);
}

static pl_status read_texts(const pl_collected *c, const char *path, pl_h5_texts *out, pl_err *e) {
  pl_status st = pl_h5_read_texts(c->file, path, out, e);
  return st == PL_OK && out->count != c->count ? wrong_length(path, out->count, c->count, e) : st;
}

static pl_status read_ints(const pl_collected *c, const char *path, size_t expected, int64_t **out, pl_err *e) {
  size_t n = 0;
  pl_status st = pl_h5_read_ints(c->file, path, out, &n, e);
  return st == PL_OK && n != expected ? wrong_length(path, n, expected, e) : st;
}

static pl_status read_numbers(const pl_collected *c, const char *path, size_t expected, double **out, pl_err *e) {
  size_t n = 0;
  pl_status st = pl_h5_read_numbers(c->file, path, out, &n, e);
  return st == PL_OK && n != expected ? wrong_length(path, n, expected, e) : st;
}

static pl_status read_figures(pl_collected *c, pl_err *e) {
  char path[PATH];
  pl_status st = PL_OK;
  for (size_t i = 0; i < PL_FIGURES; i++) {
    int64_t *ints = NULL;
    double *numbers = NULL;
    snprintf(path, sizeof path, "table/%s", pl_figures[i].name);
    PL_TRY(pl_figures[i].integer ? read_ints(c, path, c->count, &ints, e)
                                 : read_numbers(c, path, c->count, &numbers, e));
    c->figures[i] = ints ? (void *)ints : (void *)numbers;
  }
out:
  return st;
}

static pl_status read_columns(pl_collected *c, pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(pl_h5_read_texts(c->file, "table/id", &c->id, e));
  c->count = c->id.count;
  PL_TRY(read_texts(c, "table/label", &c->label, e));
  PL_TRY(read_texts(c, "table/state", &c->state, e));
  PL_TRY(read_texts(c, "table/config", &c->config, e));
  PL_TRY(read_texts(c, "table/meta", &c->meta, e));
  PL_TRY(read_texts(c, "table/reason", &c->reason, e));
  PL_TRY(read_texts(c, "table/error", &c->error, e));
  PL_TRY(read_texts(c, "table/ended", &c->ended, e));
  PL_TRY(read_ints(c, "table/current", c->count, &c->current, e));
  PL_TRY(read_ints(c, "table/has_result", c->count, &c->has_result, e));
  PL_TRY(read_ints(c, "table/attempts", c->count, &c->attempts, e));
  PL_TRY(read_figures(c, e));
out:
  return st;
}

static pl_status check_ours(const pl_collected *c, const char *path, pl_err *e) {
  char *generator = NULL;
  pl_status st = PL_OK;
  bool ours = pl_h5_has(c->file, "table") && pl_h5_get_text(c->file, "/", "generator", &generator, NULL) == PL_OK &&
              strcmp(generator, "pipelag") == 0;
  if (!ours) st = pl_fail(e, PL_BAD, "%s: was not made by `pipelag collect`", path);
  if (ours && !pl_h5_has(c->file, "table/config"))
    st =
        pl_fail(e, PL_BAD, "%s: was collected by an older pipelag, which kept no table/config; collect it again", path);
  pl_free(generator);
  return st;
}

pl_status pl_collected_open(const char *path, pl_collected **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_collected *c = NULL;
  *out = NULL;
  PL_TRY(pl_alloc(1, sizeof *c, "a collected file", &c, e));
  if (!pl_h5_is_file(path))
    PL_TRY(
        pl_fail(e, PL_BAD, "%s: is no HDF5 file; allowed: a result directory, or a file of `pipelag collect`", path));
  PL_TRY(pl_h5_open(path, &c->file, e));
  PL_TRY(check_ours(c, path, e));
  PL_TRY(pl_h5_get_text(c->file, "/", "name", &c->name, e));
  st = read_columns(c, e);
  if (st != PL_OK) pl_err_prefix(e, "%s", path);
  *out = c;
out:
  if (st != PL_OK) {
    pl_collected_free(c);
    *out = NULL;
  }
  return st;
}

void pl_collected_free(pl_collected *c) {
  if (!c) return;
  pl_h5_texts *const texts[] = {&c->id, &c->label, &c->state, &c->config, &c->meta, &c->reason, &c->error, &c->ended};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) pl_h5_texts_free(texts[i]);
  for (size_t i = 0; i < PL_FIGURES; i++) pl_free(c->figures[i]);
  pl_free(c->current);
  pl_free(c->has_result);
  pl_free(c->attempts);
  pl_free(c->name);
  pl_h5_close(c->file);
  pl_free(c);
}

static bool find_state(const char *name, pl_run_state *out) {
  for (*out = 0; *out < PL_RUN_STATES; ++*out)
    if (strcmp(name, pl_run_state_name(*out)) == 0) return true;
  return false;
}

pl_status pl_collected_result(const pl_collected *c, size_t index, pl_run_state *state, bool *has_result,
                              pl_result *out, pl_err *e) {
  pl_outcome *o = &out->outcome;
  *out = (pl_result){.outcome = pl_outcome_nothing};
  if (!find_state(c->state.items[index], state))
    return pl_fail(e, PL_FAIL, "its state is \"%.40s\"", c->state.items[index]);
  *has_result = c->has_result[index] != 0;
  out->state = *state;
  out->attempts = c->attempts[index];
  for (size_t i = 0; i < PL_FIGURES; i++)
    memcpy((char *)o + pl_figures[i].offset, (const char *)c->figures[i] + 8 * index, 8);
  if (*state == PL_RUN_DONE) o->end = PL_END_DONE;
  if (*state == PL_RUN_DIVERGED) o->end = PL_END_DIVERGED;
  snprintf(o->reason, sizeof o->reason, "%s", c->reason.items[index]);
  snprintf(out->error, sizeof out->error, "%s", c->error.items[index]);
  snprintf(out->ended, sizeof out->ended, "%s", c->ended.items[index]);
  return PL_OK;
}

/* The steps say how long the other columns are. */
static pl_status read_points(const pl_collected *c, const char group[GROUP], pl_curve *out, pl_err *e) {
  pl_status st = PL_OK;
  char path[PATH];
  int64_t *steps = NULL, *tokens = NULL, *attempts = NULL;
  double *values = NULL;
  size_t n = 0;
  snprintf(path, sizeof path, "%.31s/step", group);
  PL_TRY(pl_h5_read_ints(c->file, path, &steps, &n, e));
  PL_TRY(pl_alloc(n, sizeof *out->rows, "a curve", &out->rows, e));
  snprintf(path, sizeof path, "%.31s/tokens", group);
  PL_TRY(read_ints(c, path, n, &tokens, e));
  snprintf(path, sizeof path, "%.31s/attempt", group);
  PL_TRY(read_ints(c, path, n, &attempts, e));
  for (size_t i = 0; i < n; i++)
    out->rows[i] = (pl_curve_row){.point = {.step = steps[i], .tokens = tokens[i]}, .attempt = attempts[i]};
  for (size_t s = 0; s < PL_SERIES_COUNT; s++) {
    snprintf(path, sizeof path, "%.31s/%.60s", group, pl_series_names[s]);
    bool there = pl_h5_has(c->file, path); /* not a series that is newer than the file */
    if (there) PL_TRY(read_numbers(c, path, n, &values, e));
    for (size_t i = 0; i < n; i++) out->rows[i].point.values[s] = there ? values[i] : (double)NAN;
    pl_free(values);
    values = NULL;
  }
  out->count = n;
  PL_TRY(pl_h5_get_int(c->file, group, "attempts", &out->attempts, e));
out:
  pl_free(steps);
  pl_free(tokens);
  pl_free(attempts);
  pl_free(values);
  return st;
}

pl_status pl_collected_curve(const pl_collected *c, uint64_t id, pl_curve *out, pl_err *e) {
  char hex[PL_ID_SIZE], group[GROUP];
  *out = (pl_curve){0};
  pl_hash_hex(id, hex);
  snprintf(group, sizeof group, "runs/%s", hex);
  pl_status st = read_points(c, group, out, e);
  if (st != PL_OK) pl_curve_free(out);
  return st;
}

/* One of the three columns of times. */
static pl_status read_share(const pl_collected *c, const char group[GROUP], const char *name, size_t offset,
                            pl_times *t, pl_err *e) {
  char path[PATH];
  double *values = NULL;
  size_t rows = 0, columns = 0;
  pl_status st = PL_OK;
  snprintf(path, sizeof path, "%.31s/stages/%.31s", group, name);
  PL_TRY(pl_h5_read_table(c->file, path, &values, &rows, &columns, e));
  if (!t->times) {
    t->stages = columns;
    PL_TRY(pl_alloc(rows * columns, sizeof *t->times, "the times of stages", &t->times, e));
  }
  if (rows != t->count || columns != t->stages) PL_TRY(wrong_length(path, rows * columns, t->count * t->stages, e));
  for (size_t i = 0; i < rows * columns; i++) memcpy((char *)&t->times[i] + offset, &values[i], sizeof *values);
out:
  pl_free(values);
  return st;
}

static pl_status read_times(const pl_collected *c, const char group[GROUP], pl_times *t, pl_err *e) {
  char path[PATH];
  pl_status st = PL_OK;
  snprintf(path, sizeof path, "%.31s/stages", group);
  if (!pl_h5_has(c->file, path)) goto out;
  snprintf(path, sizeof path, "%.31s/stages/step", group);
  PL_TRY(pl_h5_read_ints(c->file, path, &t->steps, &t->count, e));
  snprintf(path, sizeof path, "%.31s/stages/attempt", group);
  PL_TRY(read_ints(c, path, t->count, &t->attempts_of, e));
  PL_TRY(read_share(c, group, "busy", offsetof(pl_stage_times, busy), t, e));
  PL_TRY(read_share(c, group, "communication", offsetof(pl_stage_times, communication), t, e));
  PL_TRY(read_share(c, group, "idle", offsetof(pl_stage_times, idle), t, e));
  for (size_t i = 0; i < t->count; i++)
    if (t->attempts_of[i] > t->attempts) t->attempts = t->attempts_of[i];
out:
  return st;
}

pl_status pl_collected_times(const pl_collected *c, uint64_t id, pl_times *out, pl_err *e) {
  char hex[PL_ID_SIZE], group[GROUP];
  *out = (pl_times){0};
  pl_hash_hex(id, hex);
  snprintf(group, sizeof group, "runs/%s", hex);
  pl_status st = read_times(c, group, out, e);
  if (st != PL_OK) pl_times_free(out);
  return st;
}
