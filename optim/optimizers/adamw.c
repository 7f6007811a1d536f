/* AdamW as torch has it; the decoupled decay is the trainer's. */
#include "core/train/optimizer.h"
#include "optim/parts/adam_part.h"

typedef struct config {
  double lr;
  pl_adam adam;
} config;

static const pl_param params[] = {
    {.name = "lr",
     .type = PL_REAL,
     .offset = offsetof(config, lr),
     .def = 1e-3,
     .min = 0,
     .max = 1e6,
     .help = "peak learning rate"},
    {.name = "beta1",
     .type = PL_REAL,
     .offset = offsetof(config, adam.beta1),
     .def = 0.9,
     .min = 0,
     .max = 0.9999999999,
     .help = "decay of the first moment per update"},
    {.name = "beta2",
     .type = PL_REAL,
     .offset = offsetof(config, adam.beta2),
     .def = 0.95,
     .min = 0,
     .max = 0.9999999999,
     .help = "decay of the second moment per update"},
    {.name = "eps",
     .type = PL_REAL,
     .offset = offsetof(config, adam.eps),
     .def = 1e-8,
     .min = 1e-30,
     .max = 1,
     .help = "added to the root of the bias-corrected second moment"},
    {.type = PL_END},
};

static void displace(const void *section, const pl_optimizer_call *c) {
  const config *o = section;
  pl_adam_displace(&o->adam, c->device, c->layout->size, c->g, c->t, c->lr, c->state[0], c->state[1], c->u);
}

const pl_optimizer_type pl_optimizer_adamw = {
    .base = {.name = "adamw",
             .summary = "Adam with decoupled weight decay",
             .source = "Loshchilov and Hutter, arXiv 1711.05101; torch.optim.AdamW",
             .params = params,
             .config_size = sizeof(config)},
    .state_arrays = PL_ADAM_STATE,
    .displace = displace,
    .elementwise = true,
};
