/* f(x) = 1/2 (x - x*)^T H (x - x*), the test problem of stability theory. A sample's gradient is H (x - x*) + noise;
 * the loss is f itself. The vector is cut into equal pieces, the layers; the message between stages is the whole
 * vector, to which each stage adds its pieces, and backward the whole gradient, from which each stage takes its own. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "core/base/memory.h"
#include "core/base/rng.h"
#include "models/parts/space.h"
#include "models/parts/spectrum.h"
#include "models/parts/stages.h"

typedef struct config {
  int64_t dim, layers, problem_seed;
  pl_spectrum spectrum;
  double noise, init_std, init_value, optimum_std;
} config;

static const char *const spectra[] = {"geometric", "linear", "constant", NULL};

#define AT(member) .offset = offsetof(config, member)
static const pl_param params[] = {
    {.name = "dim", .type = PL_INT, AT(dim), .def = 16, .min = 1, .max = 1024, .help = "length of x"},
    {.name = "layers",
     .type = PL_INT,
     AT(layers),
     .def = 1,
     .min = 1,
     .max = 1024,
     .help = "equal pieces of x, for stages"},
    {.name = "spectrum",
     .type = PL_CHOICE,
     AT(spectrum.kind),
     .def = PL_SPECTRUM_GEOMETRIC,
     .choices = spectra,
     .help = "eigenvalues of H from h_min to h_max; constant: all h_max"},
    {.name = "h_min",
     .type = PL_REAL,
     AT(spectrum.h_min),
     .def = 0.01,
     .min = 0,
     .max = 1e6,
     .help = "smallest eigenvalue"},
    {.name = "h_max",
     .type = PL_REAL,
     AT(spectrum.h_max),
     .def = 1,
     .min = 0,
     .max = 1e6,
     .help = "largest eigenvalue"},
    {.name = "rotated",
     .type = PL_BOOL,
     AT(spectrum.rotated),
     .def = 0,
     .help = "H = Q diag(h) Q^T with a random orthogonal Q, else diagonal"},
    {.name = "noise",
     .type = PL_REAL,
     AT(noise),
     .def = 0,
     .min = 0,
     .max = 1e6,
     .help = "standard deviation of a sample's gradient noise, per coordinate"},
    {.name = "init_std",
     .type = PL_REAL,
     AT(init_std),
     .def = 1,
     .min = 0,
     .max = 1e6,
     .help = "standard deviation of x_0"},
    {.name = "init_value",
     .type = PL_REAL,
     AT(init_value),
     .def = NAN,
     .min = -1e38,
     .max = 1e38,
     .help = "every coordinate of x_0, instead of a random one"},
    {.name = "optimum_std",
     .type = PL_REAL,
     AT(optimum_std),
     .def = 0,
     .min = 0,
     .max = 1e6,
     .help = "standard deviation of x*; 0: x* = 0"},
    {.name = "problem_seed",
     .type = PL_INT,
     AT(problem_seed),
     .def = 0,
     .min = 0,
     .max = 9007199254740992,
     .help = "draws Q and x*"},
    {.name = NULL, .type = PL_END}};
#undef AT

struct pl_model {
  config config;
  pl_device *device;
  pl_stages stages;
  size_t dim, piece;
  size_t *offsets;                                /* [layers]: of each piece in its stage's arrays */
  pl_real *hessian, *optimum, *gradient, *random; /* device: H, x*, two scratch vectors */
  pl_real *host;                                  /* [dim * dim] */
  size_t distance, slope, bytes;                  /* the last stage's tape: x - x*, H (x - x*) */
};

static pl_status check(const void *c_, pl_err *e) {
  const config *c = c_;
  if (c->dim % c->layers != 0) {
    return pl_fail(e, PL_BAD,
                   "dim: %" PRId64 " is not a multiple of layers %" PRId64 "; allowed: a multiple of %" PRId64, c->dim,
                   c->layers, c->layers);
  }
  if (c->spectrum.kind != PL_SPECTRUM_CONSTANT && c->spectrum.h_min > c->spectrum.h_max) {
    return pl_fail(e, PL_BAD, "h_min: %g is above h_max %g; allowed: at most h_max", c->spectrum.h_min,
                   c->spectrum.h_max);
  }
  if (c->spectrum.kind == PL_SPECTRUM_GEOMETRIC && c->spectrum.h_min <= 0) {
    return pl_fail(e, PL_BAD, "h_min: %g; allowed with spectrum geometric: above 0", c->spectrum.h_min);
  }
  return PL_OK;
}

static void shape(const void *c_, pl_model_shape *out) {
  const config *c = c_;
  *out = (pl_model_shape){.layers = (size_t)c->layers, .context = 1};
}

/* H (x - x*), once: backward reuses it. */
static double flops_per_sample(const void *c_, size_t vocab) {
  const config *c = c_;
  (void)vocab;
  return 2 * (double)c->dim * (double)c->dim;
}

/* The last stage computes the product, but it counts by the rows of each piece: stages get equal pieces of x, as closed
 * forms assume. */
static void layer_flops(const void *c_, size_t vocab, double *layers, double *first, double *last) {
  const config *c = c_;
  for (int64_t i = 0; i < c->layers; i++) layers[i] = flops_per_sample(c, vocab) / (double)c->layers;
  *first = *last = 0;
}

static pl_status place(pl_model *m, pl_err *e) {
  pl_status st = PL_OK;
  const config *c = &m->config;
  for (size_t p = 0; p < m->stages.count; p++) {
    for (size_t i = m->stages.first[p]; i < m->stages.first[p + 1]; i++) {
      pl_segment point = {.kind = PL_SEGMENT_POINT, .rows = 1, .cols = m->piece, .init_std = c->init_std};
      snprintf(point.name, sizeof point.name, "point.%u", (unsigned)i);
      if (!isnan(c->init_value)) {
        point.init_mean = c->init_value;
        point.init_std = 0;
      }
      PL_TRY(pl_segment_place(&m->stages.layouts[p], &point, &m->offsets[i], e));
    }
  }
out:
  return st;
}

static pl_status vector(pl_model *m, pl_real **out, pl_err *e) {
  return m->device->ops->alloc(m->device, m->dim * sizeof **out, "the quadratic's vectors", (void **)out, e);
}

static pl_status make_problem(pl_model *m, pl_err *e) {
  pl_status st = PL_OK;
  pl_device *d = m->device;
  size_t bytes = m->dim * m->dim * sizeof(pl_real);
  uint64_t seed = (uint64_t)m->config.problem_seed;
  PL_TRY(d->ops->alloc(d, bytes, "the quadratic's matrix", (void **)&m->hessian, e));
  PL_TRY(vector(m, &m->optimum, e));
  PL_TRY(vector(m, &m->gradient, e));
  PL_TRY(vector(m, &m->random, e));
  PL_TRY(pl_alloc(m->dim * m->dim, sizeof *m->host, "the quadratic's matrix", &m->host, e));
  PL_TRY(pl_spectrum_matrix(&m->config.spectrum, seed, m->dim, m->host, e));
  d->ops->upload(d, m->hessian, m->host, bytes);
  pl_rng rng = pl_rng_at(seed, PL_STREAM_PROBLEM, 0, PL_DRAW_OPTIMUM);
  pl_rng_fill_normal(&rng, m->dim, 0, m->config.optimum_std, m->host);
  d->ops->upload(d, m->optimum, m->host, m->dim * sizeof *m->host);
out:
  return st;
}

static void destroy(pl_model *m) {
  if (m == NULL) return;
  pl_device_release(m->device, m->hessian);
  pl_device_release(m->device, m->optimum);
  pl_device_release(m->device, m->gradient);
  pl_device_release(m->device, m->random);
  pl_free(m->host);
  pl_free(m->offsets);
  pl_stages_free(&m->stages);
  pl_free(m);
}

static pl_status create(const void *c, const pl_model_env *env, pl_model **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_model *m = NULL;
  pl_space tape = {0};
  PL_TRY(pl_alloc(1, sizeof *m, "the model", &m, e));
  m->config = *(const config *)c;
  m->device = env->device;
  m->dim = (size_t)m->config.dim;
  m->piece = (size_t)(m->config.dim / m->config.layers);
  PL_TRY(pl_stages_start(env, &m->stages, e));
  PL_TRY(pl_alloc((size_t)m->config.layers, sizeof *m->offsets, "the model's layers", &m->offsets, e));
  PL_TRY(place(m, e));
  m->distance = pl_space_reals(&tape, m->dim, 1);
  m->slope = pl_space_reals(&tape, m->dim, 1);
  m->bytes = tape.bytes;
  PL_TRY(make_problem(m, e));
  *out = m;
  m = NULL;
out:
  destroy(m);
  return st;
}

static const pl_layout *layout(const pl_model *m, size_t stage) { return &m->stages.layouts[stage]; }
static size_t tape_bytes(const pl_model *m, size_t stage) {
  return pl_stage_is_last(&m->stages, stage) ? m->bytes : PL_ALIGN;
}
static size_t boundary_size(const pl_model *m) { return m->dim; }

static void forward(pl_model *m, size_t stage, const pl_real *weights, const pl_batch *b, const pl_real *in,
                    pl_real *out, void *tape) {
  pl_device *d = m->device;
  bool last = pl_stage_is_last(&m->stages, stage);
  pl_real *x = last ? pl_space_at(tape, m->distance) : out;
  (void)b;
  if (stage == 0) {
    d->ops->zero(d, x, m->dim * sizeof *x);
  } else {
    d->ops->copy(d, x, in, m->dim * sizeof *x);
  }
  for (size_t i = m->stages.first[stage]; i < m->stages.first[stage + 1]; i++) {
    d->ops->copy(d, x + i * m->piece, weights + m->offsets[i], m->piece * sizeof *x);
  }
  if (last) {
    d->ops->axpby(d, m->dim, -1, m->optimum, 1, x);
    d->ops->gemm(d, false, true, 1, m->dim, m->dim, 1, x, m->dim, m->hessian, m->dim, 0, pl_space_at(tape, m->slope),
                 m->dim);
  }
}

static double loss(pl_model *m, const pl_batch *b, void *tape) {
  pl_device *d = m->device;
  return (double)b->sequences * 0.5 *
         d->ops->dot(d, m->dim, pl_space_at(tape, m->distance), pl_space_at(tape, m->slope));
}

/* The gradient of scale * (sum over the samples): their noises' mean has the standard deviation noise/sqrt(samples). */
static void whole_gradient(pl_model *m, const pl_batch *b, void *tape, pl_real *gradient) {
  pl_device *d = m->device;
  double samples = (double)b->sequences, factor = b->scale * samples;
  d->ops->axpby(d, m->dim, factor, pl_space_at(tape, m->slope), 0, gradient);
  if (m->config.noise > 0) {
    pl_rng rng = pl_rng_at(b->data_seed, PL_STREAM_NOISE, (uint64_t)b->step, (uint32_t)b->microbatch);
    pl_rng_fill_normal(&rng, m->dim, 0, m->config.noise / sqrt(samples), m->host);
    d->ops->upload(d, m->random, m->host, m->dim * sizeof *m->host);
    d->ops->axpby(d, m->dim, factor, m->random, 1, gradient);
  }
}

static void backward(pl_model *m, size_t stage, const pl_real *weights, const pl_batch *b, const pl_real *in,
                     void *tape, const pl_real *dout, pl_real *din, pl_real *grad) {
  pl_device *d = m->device;
  pl_real *gradient = stage == 0 ? m->gradient : din;
  (void)weights;
  (void)in;
  if (pl_stage_is_last(&m->stages, stage)) {
    whole_gradient(m, b, tape, gradient);
  } else {
    d->ops->copy(d, gradient, dout, m->dim * sizeof *gradient);
  }
  for (size_t i = m->stages.first[stage]; i < m->stages.first[stage + 1]; i++) {
    d->ops->axpby(d, m->piece, 1, gradient + i * m->piece, 1, grad + m->offsets[i]);
  }
}

/* The gradient costs nothing once its message is there: nothing is postponed. */
static void backward_weight(pl_model *m, size_t stage, const pl_batch *b, const pl_real *in, void *tape,
                            pl_real *grad) {
  (void)m;
  (void)stage;
  (void)b;
  (void)in;
  (void)tape;
  (void)grad;
}

const pl_model_type pl_model_quadratic = {.base = {.name = "quadratic",
                                                   .summary = "quadratic function with a chosen spectrum and noise",
                                                   .source = "none: closed forms",
                                                   .params = params,
                                                   .config_size = sizeof(config),
                                                   .check = check},
                                          .shape = shape,
                                          .create = create,
                                          .destroy = destroy,
                                          .layout = layout,
                                          .tape_bytes = tape_bytes,
                                          .split_tape_bytes = tape_bytes,
                                          .boundary_size = boundary_size,
                                          .forward = forward,
                                          .loss = loss,
                                          .backward = backward,
                                          .backward_input = backward,
                                          .backward_weight = backward_weight,
                                          .flops_per_token = flops_per_sample,
                                          .layer_flops = layer_flops};
