/* A model that does what a test's script says: a loss and a gradient per update, whatever the weights are. Each stage
 * has one weight. It keeps count of what it is asked. */
#ifndef PL_TESTS_CONFORM_TRAIN_SCRIPT_H
#define PL_TESTS_CONFORM_TRAIN_SCRIPT_H

#include "tests/conform/train_rig.h"

enum { SCRIPT_STAGES = 4 };

typedef struct script {
  double (*loss)(int64_t step, size_t microbatch, size_t sequences); /* sum over the sequences; step -1: validation */
  double (*gradient)(int64_t step, size_t stage); /* the update's gradient, shared among microbatches by their size */
  double val_loss[64];                            /* of the i-th validation, where loss gives NaN for step -1 */
  size_t validations;
  bool undecayed[SCRIPT_STAGES];                           /* the stage's weight takes no weight decay */
  void (*seen)(int64_t step, size_t stage, double weight); /* at each forward of training; NULL: not */
} script;

static script the_script;

struct pl_model {
  pl_device *device;
  pl_layout layout[SCRIPT_STAGES];
  size_t stages;
};

static void script_shape(const void *config, pl_model_shape *out) {
  (void)config;
  *out = (pl_model_shape){.layers = SCRIPT_STAGES, .context = 1};
}

static pl_status script_create(const void *config, const pl_model_env *env, pl_model **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_segment s = {.kind = PL_SEGMENT_BIAS, .rows = 1, .cols = 1, .init_mean = 1};
  (void)config;
  PL_TRY(pl_alloc(1, sizeof **out, "test", out, e));
  (*out)->device = env->device;
  (*out)->stages = env->stages;
  for (size_t p = 0; p < env->stages; p++) {
    snprintf(s.name, sizeof s.name, "weight.%u", (unsigned)p);
    s.decay = !the_script.undecayed[p];
    PL_TRY(pl_layout_add(&(*out)->layout[p], &s, e));
  }
out:
  return st;
}

static void script_destroy(pl_model *m) {
  for (size_t p = 0; m && p < m->stages; p++) pl_layout_free(&m->layout[p]);
  pl_free(m);
}

static const pl_layout *script_layout(const pl_model *m, size_t stage) { return &m->layout[stage]; }

static size_t script_tape_bytes(const pl_model *m, size_t stage) {
  (void)m;
  (void)stage;
  return PL_ALIGN;
}

static size_t script_boundary_size(const pl_model *m) {
  (void)m;
  return 1;
}

static void script_forward(pl_model *m, size_t stage, const pl_real *w, const pl_batch *b, const pl_real *in,
                           pl_real *out, void *tape) {
  pl_real weight = 0;
  (void)in;
  (void)tape;
  if (out) m->device->ops->zero(m->device, out, sizeof *out);
  m->device->ops->download(m->device, &weight, w, sizeof weight);
  if (b->step >= 0 && the_script.seen) the_script.seen(b->step, stage, (double)weight);
}

static double script_loss(pl_model *m, const pl_batch *b, void *tape) {
  (void)m;
  (void)tape;
  double loss = the_script.loss(b->step, b->microbatch, b->sequences);
  return b->step < 0 && isnan(loss) ? the_script.val_loss[the_script.validations++] : loss;
}

static void script_backward(pl_model *m, size_t stage, const pl_real *w, const pl_batch *b, const pl_real *in,
                            void *tape, const pl_real *dout, pl_real *din, pl_real *grad) {
  pl_real g = 0;
  (void)w;
  (void)in;
  (void)tape;
  (void)dout;
  if (din) m->device->ops->zero(m->device, din, sizeof *din);
  m->device->ops->download(m->device, &g, grad, sizeof g);
  g += (pl_real)(b->scale * (double)b->sequences * the_script.gradient(b->step, stage));
  m->device->ops->upload(m->device, grad, &g, sizeof g);
}

static const pl_param script_params[] = {{.type = PL_END}};
static const pl_model_type script_model = {
    .base = {.name = "script", .summary = "a test's script", .source = "test", .params = script_params},
    .shape = script_shape,
    .create = script_create,
    .destroy = script_destroy,
    .layout = script_layout,
    .tape_bytes = script_tape_bytes,
    .boundary_size = script_boundary_size,
    .forward = script_forward,
    .loss = script_loss,
    .backward = script_backward};
static const pl_component *const script_items[] = {&script_model.base};
static const pl_registry script_models = {.kind = "model", .items = script_items, .count = 1};

#endif
