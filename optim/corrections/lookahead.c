/* Nesterov look-ahead around any optimizer: the weights are the look-ahead point. */
#include "core/train/correction.h"

typedef struct config {
  double gamma;
  bool at_zero;
} config;

static const pl_param params[] = {
    {.name = "gamma",
     .type = PL_REAL,
     .offset = offsetof(config, gamma),
     .def = 0.9,
     .min = 0,
     .max = 0.9999999999,
     .help = "momentum of the look-ahead; 0: no correction"},
    {.name = "at_zero",
     .type = PL_BOOL,
     .offset = offsetof(config, at_zero),
     .def = 0,
     .help = "stays on at delay 0, as an arm of its own"},
    {.type = PL_END},
};

static size_t state_arrays(const void *section, int64_t k) {
  (void)section;
  (void)k;
  return 1;
}

/* u' = (1 - gamma) u;  p_t = gamma p_{t-1} - u', p_{-1} = 0;  v = u' - gamma p_t. */
static void displace(const void *section, const pl_correction_call *c) {
  const config *o = section;
  pl_real *p = c->state[0];
  c->device->ops->axpby(c->device, c->n, -(1 - o->gamma), c->v, o->gamma, p);
  c->device->ops->axpby(c->device, c->n, -o->gamma, p, 1 - o->gamma, c->v);
}

static bool at_zero(const void *section) {
  const config *o = section;
  return o->at_zero;
}

const pl_correction_type pl_correction_lookahead = {
    .base = {.name = "lookahead",
             .summary = "Nesterov look-ahead on the displacement",
             .source = "Ajanthan et al., ICML 2025, arXiv 2505.01099, made independent of the optimizer",
             .params = params,
             .config_size = sizeof(config)},
    .state_arrays = state_arrays,
    .displace = displace,
    .at_zero = at_zero,
};
