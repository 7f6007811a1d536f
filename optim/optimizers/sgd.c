/* SGD with momentum as torch has it: the learning rate multiplies the buffer and is not stored in it. */
#include "core/train/optimizer.h"

typedef struct config {
  double lr, momentum, dampening;
  bool nesterov;
} config;

static const pl_param params[] = {
    {.name = "lr",
     .type = PL_REAL,
     .offset = offsetof(config, lr),
     .def = 0.1,
     .min = 0,
     .max = 1e6,
     .help = "peak learning rate"},
    {.name = "momentum",
     .type = PL_REAL,
     .offset = offsetof(config, momentum),
     .def = 0.9,
     .min = 0,
     .max = 0.9999999999,
     .help = "decay of the buffer per update; 0: plain gradient descent"},
    {.name = "dampening",
     .type = PL_REAL,
     .offset = offsetof(config, dampening),
     .def = 0,
     .min = 0,
     .max = 1,
     .help = "a gradient enters the buffer with weight 1 - dampening, the first one with weight 1"},
    {.name = "nesterov",
     .type = PL_BOOL,
     .offset = offsetof(config, nesterov),
     .def = 0,
     .help = "steps along gradient + momentum * buffer"},
    {.type = PL_END},
};

static pl_status check(const void *section, pl_err *e) {
  const config *o = section;
  if (!o->nesterov || (o->momentum > 0 && o->dampening <= 0)) return PL_OK;
  return pl_fail(e, PL_BAD, "nesterov needs momentum above 0 and dampening 0, but momentum is %g and dampening %g",
                 o->momentum, o->dampening);
}

static void displace(const void *section, const pl_optimizer_call *c) {
  const config *o = section;
  double take = c->t == 0 ? 1 : 1 - o->dampening;
  c->device->ops->momentum(c->device, c->layout->size, c->g, o->momentum, take, o->nesterov, 1, c->lr, c->state[0],
                           c->u);
}

const pl_optimizer_type pl_optimizer_sgd = {
    .base = {.name = "sgd",
             .summary = "stochastic gradient descent with momentum, Nesterov, dampening",
             .source = "Sutskever et al. 2013; torch.optim.SGD",
             .params = params,
             .config_size = sizeof(config),
             .check = check},
    .state_arrays = 1,
    .displace = displace,
    .elementwise = true,
};
