/* An optimizer at work, for tests: its arrays on a device and one step from and to host memory. */
#ifndef PL_TESTS_CONFORM_OPTIM_RIG_H
#define PL_TESTS_CONFORM_OPTIM_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/json.h"
#include "core/config/run_config.h"
#include "core/train/correction.h"
#include "core/train/lr_schedule.h"
#include "core/train/optimizer.h"
#include "optim/optim.h"

extern const pl_optimizer_type pl_optimizer_adamw, pl_optimizer_muon, pl_optimizer_sgd;
extern const pl_correction_type pl_correction_ef, pl_correction_lookahead;
extern const pl_lr_schedule_type pl_lr_schedule_constant, pl_lr_schedule_cosine, pl_lr_schedule_linear,
    pl_lr_schedule_wsd;

#ifdef PL_F64
#define VECTOR_TOLERANCE 1e-12
#define NS_TOLERANCE 1e-12
#define REAL_EPS 2.3e-16
#else
#define VECTOR_TOLERANCE 1e-5
#define NS_TOLERANCE 1e-4
#define REAL_EPS 1.2e-7
#endif

enum { RIG_STATE = 8, RIG_SIZE = 1024 };

static const char *const rig_devices[] = {"cpu", "paranoid"};

#define rig_ok(call) assert_int_equal((call), PL_OK)

/* Fills a component's config from JSON with ' for ". Returns what its check says. */
static inline pl_status rig_config(const pl_component *c, const char *json, void *config, pl_err *e) {
  char text[512];
  pl_json *object = NULL;
  snprintf(text, sizeof text, "%s", json);
  for (char *p = text; *p; p++)
    if (*p == '\'') *p = '"';
  rig_ok(pl_json_parse(text, strlen(text), "test", &object, e));
  pl_params_defaults(c->params, config);
  pl_status st = PL_OK;
  for (void *it = pl_json_iter(object); it && st == PL_OK; it = pl_json_iter_next(object, it)) {
    size_t row = pl_params_find(c->params, pl_json_iter_key(it));
    assert_true(row != SIZE_MAX);
    st = pl_param_set(&c->params[row], config, pl_json_iter_value(it), pl_json_iter_key(it), e);
  }
  if (st == PL_OK && c->check) st = c->check(config, e);
  pl_json_release(object);
  return st;
}

typedef struct rig {
  pl_device *device;
  const pl_optimizer_type *type;
  _Alignas(16) unsigned char config[PL_SECTION_SIZE];
  pl_layout layout;
  pl_real *x, *g, *u, *scratch, *state[RIG_STATE]; /* device */
  int64_t t;
  bool touched; /* a step changed x or g */
} rig;

static inline pl_real *rig_array(pl_device *d, size_t count) {
  pl_err e = {0};
  void *p = NULL;
  rig_ok(d->ops->alloc(d, count * sizeof(pl_real), "test", &p, &e));
  return p;
}

static inline void rig_open(rig *r, const char *device, const pl_optimizer_type *type, const char *json,
                            const pl_segment *segments, size_t count) {
  pl_err e = {0};
  pl_real host[RIG_SIZE] = {0};
  *r = (rig){.type = type};
  rig_ok(pl_device_open(device, PL_PRECISION_FP32, 1, &r->device, &e));
  rig_ok(rig_config(&type->base, json, r->config, &e));
  for (size_t i = 0; i < count; i++) rig_ok(pl_layout_add(&r->layout, &segments[i], &e));
  assert_true(r->layout.size <= RIG_SIZE && type->state_arrays <= RIG_STATE);
  r->x = rig_array(r->device, r->layout.size);
  r->g = rig_array(r->device, r->layout.size);
  r->u = rig_array(r->device, r->layout.size);
  r->scratch = rig_array(r->device, type->scratch_size ? type->scratch_size(r->config, &r->layout) : 0);
  for (size_t i = 0; i < type->state_arrays; i++) {
    r->state[i] = rig_array(r->device, r->layout.size);
    r->device->ops->zero(r->device, r->state[i], r->layout.size * sizeof(pl_real));
  }
  pl_layout_init(&r->layout, 11, host);
  r->device->ops->upload(r->device, r->x, host, r->layout.size * sizeof *host);
}

static inline void rig_close(rig *r) {
  r->device->ops->free(r->device, r->x);
  r->device->ops->free(r->device, r->g);
  r->device->ops->free(r->device, r->u);
  r->device->ops->free(r->device, r->scratch);
  for (size_t i = 0; i < r->type->state_arrays; i++) r->device->ops->free(r->device, r->state[i]);
  pl_device_close(r->device);
  pl_layout_free(&r->layout);
}

static inline void rig_download(const rig *r, const pl_real *from, pl_real *to) {
  r->device->ops->download(r->device, to, from, r->layout.size * sizeof *to);
}

/* One call: g and u are [layout.size] in host memory. */
static inline void rig_step(rig *r, double lr, const pl_real *g, pl_real *u) {
  pl_real before[RIG_SIZE], after[RIG_SIZE];
  size_t bytes = r->layout.size * sizeof *g;
  r->device->ops->upload(r->device, r->g, g, bytes);
  rig_download(r, r->x, before);
  pl_optimizer_call c = {.device = r->device,
                         .layout = &r->layout,
                         .t = r->t,
                         .lr = lr,
                         .x = r->x,
                         .g = r->g,
                         .state = r->state,
                         .scratch = r->scratch,
                         .u = r->u};
  r->type->displace(r->config, &c);
  r->t++;
  rig_download(r, r->u, u);
  rig_download(r, r->x, after);
  r->touched |= memcmp(before, after, bytes) != 0;
  rig_download(r, r->g, after);
  r->touched |= memcmp(g, after, bytes) != 0;
}

/* Reads a JSON matrix into an array; returns its number of elements. */
static inline size_t rig_matrix(const pl_json *m, double *out) {
  size_t n = 0;
  for (size_t i = 0; i < pl_json_size(m); i++)
    for (size_t j = 0; j < pl_json_size(pl_json_at(m, i)); j++)
      out[n++] = pl_json_number(pl_json_at(pl_json_at(m, i), j));
  return n;
}

static inline pl_json *rig_vector(const char *name) {
  char path[512];
  pl_json *out = NULL;
  pl_err e = {0};
  snprintf(path, sizeof path, "%s/vectors/%s.json", PL_TESTS, name);
  if (pl_json_read(path, &out, &e) != PL_OK) fail_msg("%s", e.text);
  return out;
}

static inline double rig_largest_difference(const pl_real *a, const double *b, size_t n) {
  double largest = 0;
  for (size_t i = 0; i < n; i++) {
    double difference = fabs((double)a[i] - b[i]);
    if (!(difference <= largest)) largest = difference; /* also NaN */
  }
  return largest;
}

#endif
