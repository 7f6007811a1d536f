/* Sweeps made up for tests of the analysis: small registries, and catalogs built by hand. */
#ifndef FAKE_SWEEP_H
#define FAKE_SWEEP_H

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "core/train/dataset.h"
#include "core/train/model.h"
#include "results/catalog.h"
#include "results/journal.h"

typedef struct fake_model {
  int64_t layers;
} fake_model;

typedef struct fake_optimizer {
  double lr, beta1;
} fake_optimizer;

typedef struct fake_correction {
  double lambda;
} fake_correction;

static const pl_param fake_nothing_params[] = {{0}};
static const pl_param fake_model_params[] = {
    {.name = "layers", .type = PL_INT, .offset = offsetof(fake_model, layers), .def = 2}, {0}};
static const pl_param fake_optimizer_params[] = {
    {.name = "lr", .type = PL_REAL, .offset = offsetof(fake_optimizer, lr), .def = 1e-3},
    {.name = "beta1", .type = PL_REAL, .offset = offsetof(fake_optimizer, beta1), .def = 0.9},
    {0}};
static const pl_param fake_correction_params[] = {
    {.name = "lambda", .type = PL_REAL, .offset = offsetof(fake_correction, lambda), .def = 1}, {0}};

#define FAKE(symbol, text, table, size)                                                                                \
  static const pl_component symbol = {                                                                                 \
      .name = text, .summary = "made up", .source = "tests", .params = table, .config_size = size}
FAKE(fake_cosine, "cosine", fake_nothing_params, 0);
FAKE(fake_adamw, "adamw", fake_optimizer_params, sizeof(fake_optimizer));
FAKE(fake_muon, "muon", fake_optimizer_params, sizeof(fake_optimizer));
FAKE(fake_soap, "soap", fake_optimizer_params, sizeof(fake_optimizer));
FAKE(fake_adan, "adan", fake_optimizer_params, sizeof(fake_optimizer));
FAKE(fake_ef, "ef", fake_correction_params, sizeof(fake_correction));
FAKE(fake_lookahead, "lookahead", fake_correction_params, sizeof(fake_correction));
#undef FAKE

static const pl_dataset_type fake_none = {
    .base = {.name = "none", .summary = "made up", .source = "tests", .params = fake_nothing_params}};

static inline void fake_shape(const void *config, pl_model_shape *out) {
  *out = (pl_model_shape){.layers = (size_t)((const fake_model *)config)->layers, .context = 1};
}
static const pl_model_type fake_toy = {.base = {.name = "toy",
                                                .summary = "made up",
                                                .source = "tests",
                                                .params = fake_model_params,
                                                .config_size = sizeof(fake_model)},
                                       .shape = fake_shape};

static inline pl_registries fake_registries(void) {
  static const pl_component *const models[] = {&fake_toy.base}, *const datasets[] = {&fake_none.base},
                                   *const schedules[] = {&fake_cosine},
                                   *const optimizers[] = {&fake_adamw, &fake_muon, &fake_soap, &fake_adan},
                                   *const corrections[] = {&fake_ef, &fake_lookahead};
  return (pl_registries){.models = {"model", models, 1},
                         .datasets = {"dataset", datasets, 1},
                         .optimizers = {"optimizer", optimizers, 4},
                         .corrections = {"correction", corrections, 2},
                         .lr_schedules = {"lr_schedule", schedules, 1}};
}

enum { FAKE_MOST_RUNS = 256 };

static inline pl_catalog fake_catalog(const char *dir) {
  pl_err e = {0};
  pl_catalog c = {0};
  assert_int_equal(pl_strdup(dir, &c.dir, &e), PL_OK);
  assert_int_equal(pl_strdup("made-up", &c.name, &e), PL_OK);
  assert_int_equal(pl_alloc(FAKE_MOST_RUNS, sizeof c.runs[0], "runs", &c.runs, &e), PL_OK);
  return c;
}

/* Adds a run: its state, its final validation loss, and its configuration as JSON members besides the model. */
static inline pl_catalog_run *fake_run(pl_catalog *c, pl_run_state state, double loss, const char *format, ...) {
  char members[512], text[600];
  pl_err e = {0};
  pl_registries r = fake_registries();
  va_list args;
  va_start(args, format);
  vsnprintf(members, sizeof members, format, args);
  va_end(args);
  int length = snprintf(text, sizeof text, "{\"model\": \"toy\", %s}", members);
  assert_true(c->count < FAKE_MOST_RUNS);
  pl_catalog_run *run = &c->runs[c->count];
  run->dir = c->dir;
  run->index = c->count++;
  run->current = true;
  run->state = state;
  run->has_result = state == PL_RUN_DONE || state == PL_RUN_DIVERGED || state == PL_RUN_FAILED;
  run->result = (pl_result){.state = state, .outcome = {.final_val_loss = loss, .tokens = 1000}};
  assert_int_equal(pl_json_parse(text, (size_t)length, "run", &run->document, &e), PL_OK);
  assert_int_equal(pl_alloc(1, sizeof *run->config, "a configuration", &run->config, &e), PL_OK);
  if (pl_run_config_from_json(&r, run->document, "run", run->config, &e) != PL_OK) fail_msg("%s", e.text);
  run->id = pl_run_config_id(run->config);
  assert_int_equal(pl_strdup(members, &run->label, &e), PL_OK);
  return run;
}

/* The usual run: optimizer, learning rate, delay, correction, seed; 1200 updates. */
static inline pl_catalog_run *fake_arm_run(pl_catalog *c, const char *optimizer, double lr, const char *delay,
                                           const char *correction, int seed, double loss) {
  bool diverged = !isfinite(loss);
  return fake_run(c, diverged ? PL_RUN_DIVERGED : PL_RUN_DONE, loss,
                  "\"optimizer\": \"%s\", \"optimizer.lr\": %.17g, \"delay\": %s, \"correction\": %s, \"seed\": %d, "
                  "\"train\": {\"steps\": 1200, \"val_every\": 100}",
                  optimizer, lr, delay, correction, seed);
}

/* Writes a run's journal below the catalog's folder: a curve from 5.5 down to the run's final loss, with noise in the
 * train loss and validation losses at train.val_every. */
static inline void fake_journal(const pl_catalog *c, const pl_catalog_run *run) {
  pl_err e = {0};
  char *path = NULL, *folder = NULL;
  pl_journal *j = NULL;
  const pl_train_config *t = &run->config->train;
  const double final = isfinite(run->result.outcome.final_val_loss) ? run->result.outcome.final_val_loss : 6;
  assert_int_equal(pl_run_path(c->dir, run->id, "", &folder, &e), PL_OK);
  assert_int_equal(pl_make_folders(folder, &e), PL_OK);
  assert_int_equal(pl_run_path(c->dir, run->id, "journal", &path, &e), PL_OK);
  assert_int_equal(pl_journal_open(path, &j, &e), PL_OK);
  for (int64_t s = 0; s <= t->steps; s++) {
    double done = (double)s / (double)t->steps, loss = final + (5.5 - final) * exp(-6 * done) * (1 - done);
    pl_point p = {.step = s, .tokens = 1024 * s};
    for (size_t i = 0; i < PL_SERIES_COUNT; i++) p.values[i] = (double)NAN;
    if (s > 0) p.values[PL_SERIES_train_loss] = loss + 0.1 * sin(12.9898 * (double)(s + 7 * (int64_t)run->index));
    bool validated = s == 0 || s == t->steps || (t->val_every > 0 && s % t->val_every == 0);
    if (validated) p.values[PL_SERIES_val_loss] = loss;
    assert_int_equal(pl_journal_write(j, &p, &e), PL_OK);
  }
  pl_journal_close(j);
  pl_free(path);
  pl_free(folder);
}

#endif
