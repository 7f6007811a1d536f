/* LLaMA style by default; GPT-2 style is {"norm": "layernorm", "activation": "gelu", "positions": "learned", "bias":
 * true, "tied": true}. */
#include <inttypes.h>

#include "models/parts/transformer.h"

static const char *const norms[] = {"rmsnorm", "layernorm", NULL};
static const char *const activations[] = {"swiglu", "gelu", NULL};
static const char *const position_kinds[] = {"rope", "learned", NULL};
static const char *const inits[] = {"fan_in", "normal", NULL};

#define AT(member) .offset = offsetof(pl_transformer_config, member)
static const pl_param params[] = {
    {.name = "layers", .type = PL_INT, AT(layers), .def = 2, .min = 1, .max = 1024, .help = "number of layers"},
    {.name = "d_model", .type = PL_INT, AT(d_model), .def = 64, .min = 1, .max = 65536, .help = "width"},
    {.name = "heads", .type = PL_INT, AT(heads), .def = 2, .min = 1, .max = 65536, .help = "query heads"},
    {.name = "kv_heads",
     .type = PL_INT,
     AT(kv_heads),
     .def = 0,
     .min = 0,
     .max = 65536,
     .help = "key-value heads; 0 = heads"},
    {.name = "ff",
     .type = PL_INT,
     AT(ff),
     .def = 0,
     .min = 0,
     .max = 1048576,
     .help = "width of the MLP; 0 = 8/3 d_model up to a multiple of 8 (swiglu), 4 d_model (gelu)"},
    {.name = "context",
     .type = PL_INT,
     AT(context),
     .def = 64,
     .min = 1,
     .max = 1048576,
     .help = "tokens of a sequence"},
    {.name = "vocab",
     .type = PL_INT,
     AT(vocab),
     .def = 0,
     .min = 0,
     .max = 16777216,
     .help = "classes; 0 = the dataset's"},
    {.name = "tied", .type = PL_BOOL, AT(tied), .def = 0, .help = "the head is the token embedding"},
    {.name = "norm", .type = PL_CHOICE, AT(norm), .def = PL_NORM_RMSNORM, .choices = norms, .help = "normalisation"},
    {.name = "activation",
     .type = PL_CHOICE,
     AT(activation),
     .def = PL_ACTIVATION_SWIGLU,
     .choices = activations,
     .help = "activation of the MLP"},
    {.name = "positions",
     .type = PL_CHOICE,
     AT(positions),
     .def = PL_POSITIONS_ROPE,
     .choices = position_kinds,
     .help = "rotary embedding, or a learned table"},
    {.name = "bias", .type = PL_BOOL, AT(bias), .def = 0, .help = "biases in the layers' linear maps"},
    {.name = "rope_theta",
     .type = PL_REAL,
     AT(rope_theta),
     .def = 10000,
     .min = 1,
     .max = 1e12,
     .help = "base of the rotary wavelengths"},
    {.name = "norm_eps",
     .type = PL_REAL,
     AT(norm_eps),
     .def = 1e-5,
     .min = 0,
     .max = 1,
     .help = "added to the variance"},
    {.name = "init",
     .type = PL_CHOICE,
     AT(init),
     .def = PL_INIT_FAN_IN,
     .choices = inits,
     .help = "matrices by their fan-in, or everything from one normal distribution"},
    {.name = "init_embedding",
     .type = PL_REAL,
     AT(init_embedding),
     .def = 0.05,
     .min = 0,
     .max = 100,
     .help = "fan_in: standard deviation of the embeddings"},
    {.name = "init_gain",
     .type = PL_REAL,
     AT(init_gain),
     .def = 0.6,
     .min = 0,
     .max = 100,
     .help = "fan_in: a matrix has standard deviation init_gain/sqrt(fan_in)"},
    {.name = "init_std",
     .type = PL_REAL,
     AT(init_std),
     .def = 0.02,
     .min = 0,
     .max = 100,
     .help = "normal: standard deviation of matrices and embeddings"},
    {.name = "residual_scale",
     .type = PL_BOOL,
     AT(residual_scale),
     .def = 1,
     .help = "divides the attention-output and down projections by sqrt(2 layers) at initialisation"},
    {.name = NULL, .type = PL_END}};
#undef AT

static pl_status check(const void *config, pl_err *e) {
  const pl_transformer_config *c = config;
  if (c->d_model % c->heads != 0) {
    return pl_fail(e, PL_BAD,
                   "d_model: %" PRId64 " is not a multiple of heads %" PRId64 "; allowed: a multiple of %" PRId64,
                   c->d_model, c->heads, c->heads);
  }
  if (c->kv_heads > c->heads || (c->kv_heads != 0 && c->heads % c->kv_heads != 0)) {
    return pl_fail(e, PL_BAD,
                   "kv_heads: %" PRId64 " does not divide heads %" PRId64
                   "; allowed: 0 (= heads) or a divisor of %" PRId64,
                   c->kv_heads, c->heads, c->heads);
  }
  if (c->positions == PL_POSITIONS_ROPE && c->d_model / c->heads % 2 != 0) {
    return pl_fail(e, PL_BAD,
                   "d_model: %" PRId64 " with heads %" PRId64 " gives heads of odd width %" PRId64
                   ", which cannot be rotated; allowed with positions rope: a multiple of %" PRId64,
                   c->d_model, c->heads, c->d_model / c->heads, 2 * c->heads);
  }
  return PL_OK;
}

static void shape(const void *config, pl_model_shape *out) {
  const pl_transformer_config *c = config;
  *out = (pl_model_shape){.layers = (size_t)c->layers,
                          .context = (size_t)c->context,
                          .reads_tokens = true,
                          .tied_head = c->tied,
                          .vocab = (size_t)c->vocab};
}

/* Attention counts the whole context: its kernels may leave out what the mask hides. */
static double one_layer_flops(const pl_transformer_config *c) {
  double width = (double)c->d_model, kv = width / (double)c->heads * (double)pl_transformer_kv_heads(c);
  double mlp = (c->activation == PL_ACTIVATION_GELU ? 2 : 3) * width * (double)pl_transformer_ff(c);
  return 2 * (2 * width * (width + kv) + mlp) + 4 * (double)c->context * width;
}

static double head_flops(const pl_transformer_config *c, size_t vocab) {
  return 2 * (double)c->d_model * (double)(c->vocab != 0 ? (size_t)c->vocab : vocab);
}

static void layer_flops(const void *config, size_t vocab, double *layers, double *first, double *last) {
  const pl_transformer_config *c = config;
  for (int64_t i = 0; i < c->layers; i++) layers[i] = one_layer_flops(c);
  *first = 0; /* rows are looked up */
  *last = head_flops(c, vocab);
}

static double flops_per_token(const void *config, size_t vocab) {
  const pl_transformer_config *c = config;
  return 3 * ((double)c->layers * one_layer_flops(c) + head_flops(c, vocab));
}

static const pl_layout *layout(const pl_model *m, size_t stage) { return &m->stages.layouts[stage]; }
static size_t tape_bytes(const pl_model *m, size_t stage) { return m->ends[stage].bytes; }
static size_t split_tape_bytes(const pl_model *m, size_t stage) { return m->ends[stage].split_bytes; }
static size_t boundary_size(const pl_model *m) { return m->boundary; }

static bool tie(const pl_model *m, pl_tie *out) {
  if (!m->config.tied) return false;
  *out = (pl_tie){m->embedding, m->stages.count - 1, m->end.head.gradient, m->vocab * m->shape.width};
  return true;
}

/* The call of layer i on stage `stage`. */
static pl_block_call call_of(const pl_model *m, size_t stage, size_t i, const pl_real *weights, const pl_batch *b,
                             void *tape) {
  size_t place = (i - m->stages.first[stage]) * m->places.bytes;
  return (pl_block_call){.device = m->device,
                         .shape = &m->shape,
                         .places = &m->places,
                         .delta_places = &m->delta_places,
                         .scratch_places = &m->scratch_places,
                         .block = &m->blocks[i],
                         .weights = weights,
                         .rope = m->rope,
                         .sequences = b->sequences,
                         .context = b->context,
                         .tape = pl_space_at(tape, place),
                         .deltas = pl_space_at(m->scratch, m->scratch_places.deltas),
                         .scratch = m->scratch};
}

/* The same for a half of a split backward, which keeps its deltas behind the usual tape. */
static pl_block_call half_of(const pl_model *m, size_t stage, size_t i, const pl_real *weights, const pl_batch *b,
                             void *tape) {
  pl_block_call c = call_of(m, stage, i, weights, b, tape);
  c.deltas = pl_space_at(tape, m->ends[stage].bytes + (i - m->stages.first[stage]) * m->delta_places.bytes);
  c.split = true;
  return c;
}

/* Where the input of layer i of a stage stands: the message, the embedded tokens, or the output of the layer before. */
static const pl_real *input_of(const pl_model *m, size_t stage, size_t i, const pl_real *in, void *tape) {
  size_t before = i - m->stages.first[stage];
  if (before == 0) return stage == 0 ? pl_space_at(tape, m->ends[0].embedded) : in;
  return pl_space_at(tape, (before - 1) * m->places.bytes + m->places.output);
}

static void embed(pl_model *m, const pl_real *weights, const pl_batch *b, pl_real *out) {
  pl_device *d = m->device;
  size_t rows = b->sequences * b->context, width = m->shape.width;
  d->ops->embedding_forward(d, rows, width, b->tokens, weights + m->embedding, out);
  if (m->config.positions == PL_POSITIONS_LEARNED) {
    d->ops->add_rows_forward(d, rows, width, b->context, weights + m->positions, out);
  }
}

static void embed_backward(pl_model *m, const pl_batch *b, const pl_real *dx, pl_real *grad) {
  pl_device *d = m->device;
  size_t rows = b->sequences * b->context, width = m->shape.width;
  d->ops->embedding_backward(d, rows, width, b->tokens, dx, grad + m->embedding);
  if (m->config.positions == PL_POSITIONS_LEARNED) {
    d->ops->add_rows_backward(d, rows, width, b->context, dx, grad + m->positions);
  }
}

static void forward(pl_model *m, size_t stage, const pl_real *weights, const pl_batch *b, const pl_real *in,
                    pl_real *out, void *tape) {
  const pl_transformer_ends *ends = &m->ends[stage];
  size_t end = m->stages.first[stage + 1];
  bool last = pl_stage_is_last(&m->stages, stage);
  if (stage == 0) embed(m, weights, b, pl_space_at(tape, ends->embedded));
  for (size_t i = m->stages.first[stage]; i < end; i++) {
    pl_block_call c = call_of(m, stage, i, weights, b, tape);
    pl_block_forward(&c, input_of(m, stage, i, in, tape),
                     i + 1 == end && !last ? out : pl_space_at(c.tape, m->places.output));
  }
  if (last) {
    pl_real *normed = pl_space_at(tape, ends->normed);
    pl_norm_forward(m->device, &m->final_norm, weights, b->sequences * b->context, input_of(m, stage, end, in, tape),
                    normed, pl_space_at(tape, ends->stats));
    pl_token_loss_forward(m->device, &m->end, weights, b, normed, tape);
  }
}

static double loss(pl_model *m, const pl_batch *b, void *tape) {
  return pl_token_loss_sum(m->device, &m->end, b, tape);
}

/* From the loss to the gradient dx of the last layer's output x. */
static void end_backward_input(pl_model *m, size_t stage, const pl_real *weights, const pl_batch *b, const pl_real *x,
                               void *tape, pl_real *dx, pl_real *grad) {
  pl_device *d = m->device;
  size_t rows = b->sequences * b->context;
  pl_real *dnormed = pl_space_at(m->scratch, m->scratch_places.dnormed);
  pl_token_loss_backward_input(d, &m->end, weights, b, tape, dnormed);
  d->ops->zero(d, dx, rows * m->shape.width * sizeof *dx);
  pl_norm_backward(d, &m->final_norm, weights, rows, x, pl_space_at(tape, m->ends[stage].stats), dnormed, dx, grad);
}

static void end_backward_weights(pl_model *m, size_t stage, const pl_batch *b, void *tape, pl_real *grad) {
  if (!pl_stage_is_last(&m->stages, stage)) return;
  pl_token_loss_backward_weights(m->device, &m->end, b, pl_space_at(tape, m->ends[stage].normed), tape, grad);
}

/* All but the gradient of the head's weights; when split, the input half. */
static void layers_backward(pl_model *m, size_t stage, const pl_real *weights, const pl_batch *b, const pl_real *in,
                            void *tape, const pl_real *dout, pl_real *din, pl_real *grad, bool split) {
  pl_device *d = m->device;
  size_t end = m->stages.first[stage + 1];
  pl_real *dx = stage == 0 ? pl_space_at(m->scratch, m->residual) : din;
  if (pl_stage_is_last(&m->stages, stage)) {
    end_backward_input(m, stage, weights, b, input_of(m, stage, end, in, tape), tape, dx, grad);
  } else {
    d->ops->copy(d, dx, dout, b->sequences * b->context * m->shape.width * sizeof *dx);
  }
  for (size_t i = end; i-- > m->stages.first[stage];) {
    pl_block_call c = split ? half_of(m, stage, i, weights, b, tape) : call_of(m, stage, i, weights, b, tape);
    pl_block_backward(&c, input_of(m, stage, i, in, tape), dx, grad);
  }
  if (stage == 0) embed_backward(m, b, dx, grad);
}

static void backward(pl_model *m, size_t stage, const pl_real *weights, const pl_batch *b, const pl_real *in,
                     void *tape, const pl_real *dout, pl_real *din, pl_real *grad) {
  end_backward_weights(m, stage, b, tape, grad);
  layers_backward(m, stage, weights, b, in, tape, dout, din, grad, false);
}

static void backward_input(pl_model *m, size_t stage, const pl_real *weights, const pl_batch *b, const pl_real *in,
                           void *tape, const pl_real *dout, pl_real *din, pl_real *grad) {
  layers_backward(m, stage, weights, b, in, tape, dout, din, grad, true);
}

static void backward_weight(pl_model *m, size_t stage, const pl_batch *b, const pl_real *in, void *tape,
                            pl_real *grad) {
  (void)in;
  for (size_t i = m->stages.first[stage + 1]; i-- > m->stages.first[stage];) {
    pl_block_call c = half_of(m, stage, i, NULL, b, tape);
    pl_block_backward_weights(&c, grad);
  }
  end_backward_weights(m, stage, b, tape, grad);
}

const pl_model_type pl_model_transformer = {.base = {.name = "transformer",
                                                     .summary = "decoder-only language model, LLaMA or GPT-2 style",
                                                     .source = "LLaMA (arXiv 2302.13971), GPT-2",
                                                     .params = params,
                                                     .config_size = sizeof(pl_transformer_config),
                                                     .check = check},
                                            .shape = shape,
                                            .create = pl_transformer_create,
                                            .destroy = pl_transformer_destroy,
                                            .layout = layout,
                                            .tie = tie,
                                            .tape_bytes = tape_bytes,
                                            .split_tape_bytes = split_tape_bytes,
                                            .boundary_size = boundary_size,
                                            .forward = forward,
                                            .loss = loss,
                                            .backward = backward,
                                            .backward_input = backward_input,
                                            .backward_weight = backward_weight,
                                            .flops_per_token = flops_per_token,
                                            .layer_flops = layer_flops};
