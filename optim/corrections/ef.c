/* Error feedback: the update of k steps ago should have been what arrives now, so the difference is added. */
#include "core/train/correction.h"

typedef enum form { FORM_HOLD, FORM_BLOCK } form;
typedef enum init { INIT_COPY, INIT_ZERO } init;

typedef struct config {
  double lambda;
  int form, init;
} config;

static const char *const forms[] = {"hold", "block", NULL};
static const char *const inits[] = {"copy", "zero", NULL};

static const pl_param params[] = {
    {.name = "lambda",
     .type = PL_REAL,
     .offset = offsetof(config, lambda),
     .def = 1,
     .min = 0,
     .max = 1e3,
     .help = "weight of the fed-back error; 0: no correction"},
    {.name = "form",
     .type = PL_CHOICE,
     .offset = offsetof(config, form),
     .choices = forms,
     .help = "hold: v = u + lambda k (u - u of 1 update ago); block: v = u + lambda (u - u of k updates ago)"},
    {.name = "init",
     .type = PL_CHOICE,
     .offset = offsetof(config, init),
     .choices = inits,
     .help = "displacements before the first one: copies of it, or zero"},
    {.type = PL_END},
};

/* The error is u_t - u_{t - distance}. The state is a ring of the newest distance + 1 displacements. */
static int64_t distance(const config *o, int64_t k) { return o->form == FORM_BLOCK ? k : 1; }

static double weight(const config *o, int64_t k) { return o->lambda * (double)(o->form == FORM_BLOCK ? 1 : k); }

static size_t state_arrays(const void *section, int64_t k) { return (size_t)distance(section, k) + 1; }

/* u of call `t`; negative ones are as init says. Slots of calls not made yet hold zero. */
static pl_real *slot(const config *o, const pl_correction_call *c, int64_t t) {
  int64_t slots = distance(o, c->k) + 1;
  if (t < 0) t = o->init == INIT_COPY ? 0 : t + slots;
  return c->state[t % slots];
}

static void displace(const void *section, const pl_correction_call *c) {
  const config *o = section;
  double w = weight(o, c->k);
  pl_real *old = slot(o, c, c->calls - distance(o, c->k));
  c->device->ops->copy(c->device, slot(o, c, c->calls), c->v, c->n * sizeof *c->v);
  if (w > 0) c->device->ops->axpby(c->device, c->n, -w, old, 1 + w, c->v);
}

/* y_{t+1} = y_t - u_t for y = x + weight (u_{t-1} + ... + u_{t-distance}). */
static void offset(const void *section, const pl_correction_call *c, pl_real *out) {
  const config *o = section;
  double w = weight(o, c->k);
  c->device->ops->zero(c->device, out, c->n * sizeof *out);
  if (c->calls == 0) return;
  for (int64_t i = 1; i <= distance(o, c->k); i++)
    c->device->ops->axpby(c->device, c->n, w, slot(o, c, c->calls - i), 1, out);
}

const pl_correction_type pl_correction_ef = {
    .base = {.name = "ef",
             .summary = "error feedback on the displacement",
             .source = "arXiv 2606.30634 for delay 1; hold and block forms for longer delays",
             .params = params,
             .config_size = sizeof(config)},
    .state_arrays = state_arrays,
    .displace = displace,
    .offset = offset,
};
