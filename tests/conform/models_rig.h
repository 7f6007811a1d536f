/* A model at work, for tests: its stages' weights, gradients, tapes and messages on a device, with copies of weights
 * and gradients on the host. */
#ifndef PL_TESTS_CONFORM_MODELS_RIG_H
#define PL_TESTS_CONFORM_MODELS_RIG_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/memory.h"
#include "core/base/rng.h"
#include "core/train/model.h"
#include "models/models.h"

extern const pl_model_type pl_model_mlp, pl_model_quadratic, pl_model_transformer;

/* A model and its parameters, as JSON. */
typedef struct model_case {
  const pl_model_type *type;
  const char *config;
} model_case;

enum { RIG_STAGES = 4, RIG_CONFIG = 1536, RIG_VOCAB = 11, RIG_SEQUENCES = 4 };

#ifdef PL_F64
#define RIG_EPS 2.3e-16
#else
#define RIG_EPS 1.2e-7
#endif

typedef struct rig {
  const pl_model_type *type;
  _Alignas(16) unsigned char config[RIG_CONFIG];
  pl_device *device;
  pl_model *model;
  pl_model_shape shape;
  size_t stages;
  const pl_layout *layouts[RIG_STAGES];
  pl_real *x[RIG_STAGES], *g[RIG_STAGES];                  /* host: weights, gradients */
  pl_real *weights[RIG_STAGES], *grad[RIG_STAGES];         /* device */
  pl_real *message[RIG_STAGES + 1], *back[RIG_STAGES + 1]; /* device: [p] is between stages p-1 and p */
  void *tape[RIG_STAGES];
  int32_t *tokens, *targets;                     /* device */
  int32_t host_tokens[1024], host_targets[1024]; /* [RIG_SEQUENCES * context] */
} rig;

/* Registered model i with its defaults. */
static inline model_case rig_default(size_t i) {
  return (model_case){(const pl_model_type *)(const void *)pl_models.items[i], "{}"};
}

#define rig_ok(call) assert_int_equal((call), PL_OK)

static inline void rig_config(const pl_model_type *type, const char *json, void *config) {
  pl_err e = {0};
  pl_json *doc = NULL;
  pl_params_defaults(type->base.params, config);
  rig_ok(pl_json_parse(json, strlen(json), "test", &doc, &e));
  for (void *it = pl_json_iter(doc); it != NULL; it = pl_json_iter_next(doc, it)) {
    size_t row = pl_params_find(type->base.params, pl_json_iter_key(it));
    assert_true(row != SIZE_MAX);
    rig_ok(pl_param_set(&type->base.params[row], config, pl_json_iter_value(it), "test", &e));
  }
  pl_json_release(doc);
}

static inline void rig_alloc(rig *r, size_t bytes, void *out) {
  pl_err e = {0};
  void *p = NULL;
  rig_ok(r->device->ops->alloc(r->device, bytes, "test", &p, &e));
  memcpy(out, &p, sizeof p);
}

static inline void rig_tokens(rig *r) {
  size_t count = RIG_SEQUENCES * r->shape.context;
  assert_true(count <= 1024);
  pl_rng rng = pl_rng_at(7, PL_STREAM_DATA, 0, 0);
  for (size_t i = 0; i < count; i++) {
    r->host_tokens[i] = (int32_t)pl_rng_below(&rng, RIG_VOCAB);
    r->host_targets[i] = (int32_t)pl_rng_below(&rng, RIG_VOCAB);
  }
  rig_alloc(r, count * sizeof(int32_t), &r->tokens);
  rig_alloc(r, count * sizeof(int32_t), &r->targets);
  r->device->ops->upload(r->device, r->tokens, r->host_tokens, count * sizeof(int32_t));
  r->device->ops->upload(r->device, r->targets, r->host_targets, count * sizeof(int32_t));
}

static inline void rig_upload(rig *r) {
  for (size_t p = 0; p < r->stages; p++) {
    r->device->ops->upload(r->device, r->weights[p], r->x[p], r->layouts[p]->size * sizeof(pl_real));
  }
}

/* Random, but not so regular as an initialisation: no norm is one, no bias zero. Named by segment, so that the weights
 * do not depend on the split. */
static inline void rig_weights(rig *r) {
  for (size_t p = 0; p < r->stages; p++) {
    pl_layout_init(r->layouts[p], 3, r->x[p]);
    for (size_t i = 0; i < r->layouts[p]->count; i++) {
      const pl_segment *s = &r->layouts[p]->segments[i];
      uint64_t name = 5;
      for (const char *c = s->name; *c != '\0'; c++) name = name * 131 + (uint64_t)*c;
      pl_rng rng = pl_rng_at(11, PL_STREAM_SYNTHETIC, name, 0);
      for (size_t j = 0; j < s->rows * s->cols; j++) r->x[p][s->offset + j] += (pl_real)(0.2 * pl_rng_normal(&rng));
    }
  }
  rig_upload(r);
}

static inline void rig_zero(rig *r) {
  for (size_t p = 0; p < r->stages; p++) {
    r->device->ops->zero(r->device, r->grad[p], r->layouts[p]->grad_size * sizeof(pl_real));
  }
}

static inline void rig_open(rig *r, const char *device, const pl_model_type *type, const char *json, size_t stages) {
  pl_err e = {0};
  memset(r, 0, sizeof *r);
  r->type = type;
  r->stages = stages;
  rig_config(type, json, r->config);
  if (type->base.check != NULL) rig_ok(type->base.check(r->config, &e));
  rig_ok(pl_device_open(device, PL_PRECISION_FP32, 1, &r->device, &e));
  type->shape(r->config, &r->shape);
  size_t first[RIG_STAGES + 1];
  for (size_t p = 0; p <= stages; p++) first[p] = p * r->shape.layers / stages;
  pl_model_env env = {.device = r->device,
                      .stages = stages,
                      .first_layer = first,
                      .vocab = RIG_VOCAB,
                      .max_sequences = RIG_SEQUENCES,
                      .seed = 1};
  rig_ok(type->create(r->config, &env, &r->model, &e));
  for (size_t p = 0; p < stages; p++) {
    const pl_layout *l = r->layouts[p] = type->layout(r->model, p);
    rig_ok(pl_alloc(l->size, sizeof(pl_real), "x", &r->x[p], &e));
    rig_ok(pl_alloc(l->grad_size, sizeof(pl_real), "g", &r->g[p], &e));
    rig_alloc(r, l->size * sizeof(pl_real), &r->weights[p]);
    rig_alloc(r, l->grad_size * sizeof(pl_real), &r->grad[p]);
    rig_alloc(r, type->tape_bytes(r->model, p), &r->tape[p]);
    if (p == 0) continue;
    rig_alloc(r, type->boundary_size(r->model) * sizeof(pl_real), &r->message[p]);
    rig_alloc(r, type->boundary_size(r->model) * sizeof(pl_real), &r->back[p]);
  }
  rig_tokens(r);
  rig_weights(r);
  rig_zero(r);
}

static inline void rig_close(rig *r) {
  const pl_ops *o = r->device->ops;
  for (size_t p = 0; p < r->stages; p++) {
    pl_free(r->x[p]);
    pl_free(r->g[p]);
    o->free(r->device, r->weights[p]);
    o->free(r->device, r->grad[p]);
    o->free(r->device, r->tape[p]);
    if (p == 0) continue;
    o->free(r->device, r->message[p]);
    o->free(r->device, r->back[p]);
  }
  o->free(r->device, r->tokens);
  o->free(r->device, r->targets);
  r->type->destroy(r->model);
  pl_device_close(r->device);
}

/* Sequences first .. first + count - 1 of the rig's tokens as microbatch `index` of step 5. */
static inline pl_batch rig_batch(const rig *r, size_t first, size_t count, size_t index) {
  pl_batch b = {
      .sequences = count, .context = r->shape.context, .data_seed = 9, .step = 5, .microbatch = index, .scale = 1};
  if (r->shape.reads_tokens) {
    b.tokens = r->tokens + first * r->shape.context;
    b.targets = r->targets + first * r->shape.context;
  }
  return b;
}

static inline double rig_forward(rig *r, const pl_batch *b) {
  for (size_t p = 0; p < r->stages; p++) {
    r->type->forward(r->model, p, r->weights[p], b, r->message[p], p + 1 < r->stages ? r->message[p + 1] : NULL,
                     r->tape[p]);
  }
  return r->type->loss(r->model, b, r->tape[r->stages - 1]);
}

/* Adds to the gradients, and brings them to the host. */
static inline void rig_backward(rig *r, const pl_batch *b) {
  for (size_t p = r->stages; p-- > 0;) {
    r->type->backward(r->model, p, r->weights[p], b, r->message[p], r->tape[p],
                      p + 1 < r->stages ? r->back[p + 1] : NULL, p > 0 ? r->back[p] : NULL, r->grad[p]);
  }
  for (size_t p = 0; p < r->stages; p++) {
    r->device->ops->download(r->device, r->g[p], r->grad[p], r->layouts[p]->grad_size * sizeof(pl_real));
  }
}

static inline double rig_both(rig *r, const pl_batch *b) {
  double loss = rig_forward(r, b);
  rig_backward(r, b);
  return loss;
}

/* As the trainer does: the two uses of a tied matrix summed, on the host. One stage only. */
static inline void rig_sum_tied(rig *r) {
  pl_tie tie;
  if (r->type->tie == NULL || !r->type->tie(r->model, &tie)) return;
  assert_int_equal(tie.head_stage, 0);
  for (size_t i = 0; i < tie.count; i++)
    r->g[0][tie.embedding + i] = r->g[0][tie.head + i] + r->g[0][tie.embedding + i];
}

/* The segment of that name, and its stage. */
static inline const pl_segment *rig_find(const rig *r, const char *name, size_t *stage) {
  for (*stage = 0; *stage < r->stages; ++*stage) {
    const pl_layout *l = r->layouts[*stage];
    for (size_t i = 0; i < l->count; i++) {
      if (strcmp(l->segments[i].name, name) == 0) return &l->segments[i];
    }
  }
  return NULL;
}

#endif
