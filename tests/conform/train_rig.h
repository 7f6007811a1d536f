/* The trainer at work, for tests: a config from JSON with ' for ", a device, a dataset, a log in memory, and the
 * weights and points that a training gave. Includes cmocka. */
#ifndef PL_TESTS_CONFORM_TRAIN_RIG_H
#define PL_TESTS_CONFORM_TRAIN_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/memory.h"
#include "core/train/trainer.h"
#include "models/models.h"
#include "optim/optim.h"

enum { RIG_POINTS = 512, RIG_TEXT = 2048 };

typedef struct rig {
  pl_json *json;
  pl_run_config config;
  pl_device *device;
  pl_dataset *dataset;
  pl_log_sink sink;
  pl_trainer_args args;
  /* What a training gave. */
  pl_outcome outcome;
  pl_real *weights;
  size_t count, said;
  char line[256];      /* the last one said */
  char table[1024];    /* what was said of the optimizer's rules, a line each; not counted in `said` */
  size_t checkpointed; /* calls of the sink's member of that name */
  pl_point points[RIG_POINTS];
  size_t point_count;
  uint64_t log_length; /* what the sink gives as its length at the start */
  bool write_fails;
} rig;

static inline pl_status rig_write(void *self, const pl_point *p, pl_err *e) {
  rig *r = self;
  if (r->write_fails) return pl_fail(e, PL_FAIL, "the log is broken");
  assert_true(r->point_count < RIG_POINTS);
  r->points[r->point_count++] = *p;
  return PL_OK;
}

static inline pl_status rig_sync(void *self, uint64_t *length, pl_err *e) {
  rig *r = self;
  (void)e;
  *length = r->log_length + 100 * r->point_count;
  return PL_OK;
}

static inline uint64_t rig_length(void *self) { return ((rig *)self)->log_length; }

static inline pl_status rig_checkpointed(void *self, pl_err *e) {
  (void)e;
  ((rig *)self)->checkpointed++;
  return PL_OK;
}

static inline void rig_say(void *self, const char *line) {
  rig *r = self;
  if (strncmp(line, "optimizer ", 10) == 0) {
    size_t length = strlen(r->table);
    snprintf(r->table + length, sizeof r->table - length, "%s\n", line);
    return;
  }
  r->said++;
  snprintf(r->line, sizeof r->line, "%s", line);
}

/* Puts " for ' in place. */
static inline void rig_quotes(char *text) {
  for (; *text; text++)
    if (*text == '\'') *text = '"';
}

/* `models` replaces the real ones when it is not NULL. Returns the status of the build or the check. */
static inline pl_status rig_config(rig *r, const pl_registry *models, const char *json, pl_err *e) {
  char text[RIG_TEXT];
  pl_registries registries = {models ? *models : pl_models, pl_datasets, pl_optimizers, pl_corrections,
                              pl_lr_schedules};
  *r = (rig){0};
  assert_true(strlen(json) < sizeof text);
  snprintf(text, sizeof text, "%s", json);
  rig_quotes(text);
  pl_status st = pl_json_parse(text, strlen(text), "test", &r->json, e);
  if (st == PL_OK) st = pl_run_config_from_json(&registries, r->json, "", &r->config, e);
  if (st == PL_OK) st = pl_run_config_check(&r->config, e);
  return st;
}

static inline void rig_must(pl_status st, const pl_err *e) {
  if (st != PL_OK) fail_msg("status %d: %s", (int)st, e->text);
}

static inline void rig_open_on(rig *r, const char *device, const pl_registry *models, const char *json) {
  pl_err e = {0};
  rig_must(rig_config(r, models, json, &e), &e);
  const pl_dataset_type *data = (const pl_dataset_type *)r->config.data.type;
  pl_model_shape shape = {0};
  ((const pl_model_type *)r->config.model.type)->shape(r->config.model.config, &shape);
  rig_must(pl_device_open(device, PL_PRECISION_FP32, 1, &r->device, &e), &e);
  if (data->has_tokens)
    rig_must(data->open(r->config.data.config, ".", shape.context, r->config.train.val_tokens, &r->dataset, &e), &e);
  r->sink = (pl_log_sink){
      .self = r, .write = rig_write, .sync = rig_sync, .length = rig_length, .checkpointed = rig_checkpointed};
  r->args = (pl_trainer_args){.config = &r->config,
                              .dataset_type = data,
                              .dataset = r->dataset,
                              .device = r->device,
                              .sink = &r->sink,
                              .say = rig_say,
                              .say_self = r};
}

static inline void rig_open(rig *r, const pl_registry *models, const char *json) {
  rig_open_on(r, "cpu", models, json);
}

static inline void rig_train(rig *r) {
  pl_err e = {0};
  pl_free(r->weights);
  r->weights = NULL;
  r->point_count = r->checkpointed = 0;
  r->table[0] = '\0';
  rig_must(pl_train_weights(&r->args, &r->outcome, &r->weights, &r->count, &e), &e);
}

static inline void rig_close(rig *r) {
  const pl_dataset_type *data = (const pl_dataset_type *)r->config.data.type;
  pl_free(r->weights);
  if (r->dataset) data->close(r->dataset);
  if (r->device) pl_device_close(r->device);
  pl_json_release(r->json);
  *r = (rig){0};
}

/* Same bits, NaN included. */
static inline bool rig_same(const void *a, const void *b, size_t bytes) { return memcmp(a, b, bytes) == 0; }

static inline bool rig_same_weights(const rig *a, const rig *b) {
  return a->count == b->count && rig_same(a->weights, b->weights, a->count * sizeof *a->weights);
}

#endif
