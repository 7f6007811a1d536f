#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/curves.h"
#include "results/curves_image.h"
#include "results/figures.h"

typedef struct collector {
  const pl_catalog *catalog;
  pl_h5 *file;
  void (*say)(void *self, const char *line);
  void *say_self;
} collector;

static void say(const collector *k, uint64_t id, const char *what) {
  char line[PL_ERR_TEXT + 64], hex[PL_ID_SIZE];
  if (!k->say) return;
  pl_hash_hex(id, hex);
  snprintf(line, sizeof line, "run %s: %s", hex, what);
  k->say(k->say_self, line);
}

/* The bytes of a file equal those given. */
static bool holds(const char *path, const char *bytes, size_t count) {
  char *found;
  size_t length;
  if (pl_file_read(path, count, &found, &length, NULL) != PL_OK) return false;
  bool same = length == count && memcmp(found, bytes, count) == 0;
  pl_free(found);
  return same;
}

/* curves.h5 is made from the journal byte for byte, so any other bytes are damage. */
static pl_status mend(const collector *k, const pl_catalog_run *r, const pl_curve *c, pl_err *e) {
  pl_status st = PL_OK;
  char *path = NULL, *bytes = NULL;
  size_t count;
  PL_TRY(pl_run_path(k->catalog->dir, r->id, "curves.h5", &path, e));
  PL_TRY(pl_curves_image(c, r->document, r->id, &bytes, &count, e));
  if (holds(path, bytes, count)) goto out;
  say(k, r->id,
      pl_path_exists(path) ? "curves.h5 did not match the journal and is rebuilt from it"
                           : "curves.h5 was missing and is rebuilt from the journal");
  PL_TRY(pl_file_replace(path, bytes, count, e));
out:
  pl_free(bytes);
  pl_free(path);
  return st;
}

static void say_damage(const collector *k, const pl_catalog_run *r, size_t damaged, const char *where) {
  char text[80];
  snprintf(text, sizeof text, "%zu damaged records of the %s are left out", damaged, where);
  if (damaged > 0) say(k, r->id, text);
}

/* The curve from the journals; what is wrong with one run is said and does not stop the others. */
static void read_curve(const collector *k, const pl_catalog_run *r, pl_curve *c) {
  pl_err e = {0};
  char *journal = NULL, *times = NULL;
  *c = (pl_curve){0};
  if (pl_run_path(k->catalog->dir, r->id, "journal", &journal, &e) != PL_OK ||
      pl_run_path(k->catalog->dir, r->id, "times", &times, &e) != PL_OK)
    goto out;
  if (pl_curve_read(journal, c, &e) != PL_OK) say(k, r->id, e.text);
  e = (pl_err){0};
  if (pl_times_read(times, &c->times, &e) != PL_OK) say(k, r->id, e.text);
  say_damage(k, r, c->damaged, "journal");
  say_damage(k, r, c->times.damaged, "times of the stages");
out:
  pl_free(times);
  pl_free(journal);
}

static void put_attributes(const collector *k, const pl_catalog_run *r, const char *group) {
  pl_h5_set_int(k->file, group, "index", (int64_t)r->index);
  pl_h5_set_text(k->file, group, "label", r->label);
  pl_h5_set_text(k->file, group, "state", pl_run_state_name(r->state));
  if (r->document) pl_h5_set_json(k->file, group, "", r->document);
  if (!r->has_result) return;
  for (size_t i = 0; i < PL_FIGURES; i++) {
    const pl_figure *f = &pl_figures[i];
    if (f->integer)
      pl_h5_set_int(k->file, group, f->name, pl_figure_int(f, &r->result.outcome));
    else
      pl_h5_set_number(k->file, group, f->name, pl_figure_number(f, &r->result.outcome));
  }
  pl_h5_set_text(k->file, group, "reason", r->result.outcome.reason);
  pl_h5_set_text(k->file, group, "error", r->result.error);
}

static pl_status put_run(const collector *k, const pl_catalog_run *r, pl_err *e) {
  char hex[PL_ID_SIZE], group[40];
  pl_curve c;
  pl_err mending = {0};
  pl_hash_hex(r->id, hex);
  snprintf(group, sizeof group, "runs/%s/", hex);
  read_curve(k, r, &c);
  bool settled = r->document && r->state != PL_RUN_RUNNING && c.attempts > 0;
  if (settled && mend(k, r, &c, &mending) != PL_OK) say(k, r->id, mending.text);
  pl_h5_group(k->file, group);
  put_attributes(k, r, group);
  pl_h5_set_int(k->file, group, "attempts", c.attempts);
  pl_status st = pl_curves_put(k->file, group, &c, e);
  pl_curve_free(&c);
  return st;
}

static void label_of(const pl_catalog_run *r, pl_str *out) { pl_str_append(out, r->label); }

static void state_of(const pl_catalog_run *r, pl_str *out) { pl_str_append(out, pl_run_state_name(r->state)); }

static void id_of(const pl_catalog_run *r, pl_str *out) {
  char hex[PL_ID_SIZE];
  pl_hash_hex(r->id, hex);
  pl_str_append(out, hex);
}

static void optimizer_of(const pl_catalog_run *r, pl_str *out) {
  if (r->document) pl_str_append(out, r->config->optimizer.type->name);
}

static void delay_of(const pl_catalog_run *r, pl_str *out) {
  if (r->document) pl_run_config_delay_name(r->config, out);
}

static void correction_of(const pl_catalog_run *r, pl_str *out) {
  if (r->document) pl_run_config_correction_name(r->config, out);
}

static void config_of(const pl_catalog_run *r, pl_str *out) {
  if (r->document) pl_json_write_canonical(r->document, out);
}

static void meta_of(const pl_catalog_run *r, pl_str *out) {
  pl_json *meta = NULL;
  out->failed |= pl_catalog_meta(r, &meta, NULL) != PL_OK;
  if (meta) pl_json_write_canonical(meta, out);
  pl_json_release(meta);
}

static void reason_of(const pl_catalog_run *r, pl_str *out) {
  if (r->has_result) pl_str_append(out, r->result.outcome.reason);
}

static void error_of(const pl_catalog_run *r, pl_str *out) {
  if (r->has_result) pl_str_append(out, r->result.error);
}

static void ended_of(const pl_catalog_run *r, pl_str *out) {
  if (r->has_result) pl_str_append(out, r->result.ended);
}

/* NaN where none is stated. */
static double lr_of(const pl_catalog_run *r) {
  double lr = r->document ? pl_run_config_lr(r->config) : (double)NAN;
  return r->imported && lr == 0 ? (double)NAN : lr;
}

/* Columns of the table of runs that are no figures. */
static const struct {
  const char *path;
  void (*get)(const pl_catalog_run *r, pl_str *out);
} text_columns[] = {{"table/id", id_of},         {"table/label", label_of},
                    {"table/state", state_of},   {"table/optimizer", optimizer_of},
                    {"table/delay", delay_of},   {"table/correction", correction_of},
                    {"table/config", config_of}, {"table/meta", meta_of},
                    {"table/reason", reason_of}, {"table/error", error_of},
                    {"table/ended", ended_of}};

static pl_status put_text_columns(const collector *k, pl_err *e) {
  const pl_catalog *c = k->catalog;
  pl_status st = PL_OK;
  pl_str *texts = NULL;
  const char **views = NULL;
  PL_TRY(pl_alloc(c->count, sizeof *texts, "a table", &texts, e));
  PL_TRY(pl_alloc(c->count, sizeof *views, "a table", &views, e));
  for (size_t column = 0; column < sizeof text_columns / sizeof *text_columns; column++) {
    for (size_t i = 0; i < c->count; i++) {
      pl_str_free(&texts[i]);
      text_columns[column].get(&c->runs[i], &texts[i]);
      PL_TRY(pl_str_check(&texts[i], e));
      views[i] = pl_str_text(&texts[i]);
    }
    pl_h5_write_texts(k->file, text_columns[column].path, views, c->count);
  }
out:
  for (size_t i = 0; texts && i < c->count; i++) pl_str_free(&texts[i]);
  pl_free(views);
  pl_free(texts);
  return st;
}

static void put_figure_column(const collector *k, const pl_figure *f, int64_t *ints, double *numbers) {
  const pl_catalog *c = k->catalog;
  char path[64];
  snprintf(path, sizeof path, "table/%s", f->name);
  for (size_t i = 0; i < c->count; i++) {
    const pl_outcome *o = c->runs[i].has_result ? &c->runs[i].result.outcome : &pl_outcome_nothing;
    if (f->integer)
      ints[i] = pl_figure_int(f, o);
    else
      numbers[i] = pl_figure_number(f, o);
  }
  if (f->integer)
    pl_h5_write_ints(k->file, path, ints, c->count);
  else
    pl_h5_write_numbers(k->file, path, numbers, c->count);
}

static pl_status put_number_columns(const collector *k, pl_err *e) {
  const pl_catalog *c = k->catalog;
  pl_status st = PL_OK;
  int64_t *ints = NULL;
  double *numbers = NULL;
  PL_TRY(pl_alloc(c->count, sizeof *ints, "a table", &ints, e));
  PL_TRY(pl_alloc(c->count, sizeof *numbers, "a table", &numbers, e));
  for (size_t i = 0; i < c->count; i++) ints[i] = (int64_t)c->runs[i].index;
  pl_h5_write_ints(k->file, "table/index", ints, c->count);
  for (size_t i = 0; i < c->count; i++) ints[i] = c->runs[i].current;
  pl_h5_write_ints(k->file, "table/current", ints, c->count);
  for (size_t i = 0; i < c->count; i++) ints[i] = c->runs[i].has_result;
  pl_h5_write_ints(k->file, "table/has_result", ints, c->count);
  for (size_t i = 0; i < c->count; i++) ints[i] = c->runs[i].has_result ? c->runs[i].result.attempts : 0;
  pl_h5_write_ints(k->file, "table/attempts", ints, c->count);
  for (size_t i = 0; i < c->count; i++) ints[i] = c->runs[i].document ? c->runs[i].config->root.seed : -1;
  pl_h5_write_ints(k->file, "table/seed", ints, c->count);
  for (size_t i = 0; i < c->count; i++) numbers[i] = lr_of(&c->runs[i]);
  pl_h5_write_numbers(k->file, "table/lr", numbers, c->count);
  for (size_t i = 0; i < PL_FIGURES; i++) put_figure_column(k, &pl_figures[i], ints, numbers);
out:
  pl_free(numbers);
  pl_free(ints);
  return st;
}

/* A curve and its image come and go for every run, between small things of HDF5 that stay: glibc would keep the holes.
 */
static void give_back_memory(size_t runs) {
#ifdef __GLIBC__
  enum { EVERY = 256 };
  if (runs % EVERY == 0) malloc_trim(0);
#else
  (void)runs;
#endif
}

pl_status pl_curves_collect(const pl_catalog *c, const char *path, void (*say_line)(void *self, const char *line),
                            void *say_self, pl_err *e) {
  pl_status st = PL_OK;
  collector k = {.catalog = c, .say = say_line, .say_self = say_self};
  PL_TRY(pl_h5_create_large(path, &k.file, e));
  pl_h5_set_text(k.file, "/", "generator", "pipelag");
  pl_h5_set_text(k.file, "/", "name", c->name);
  pl_h5_set_text(k.file, "/", "layout",
                 "table/COLUMN: one entry a run, by index; runs/ID: the curves of a run against step and tokens, NaN "
                 "where a series was not measured, and the times of its stages; attributes of runs/ID: its "
                 "configuration and final figures");
  pl_h5_group(k.file, "runs");
  for (size_t i = 0; i < c->count; i++) {
    PL_TRY(put_run(&k, &c->runs[i], e));
    give_back_memory(i + 1);
  }
  PL_TRY(put_text_columns(&k, e));
  PL_TRY(put_number_columns(&k, e));
  PL_TRY(pl_h5_commit(k.file, e));
out:
  pl_h5_free(k.file);
  return st;
}
