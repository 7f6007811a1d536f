/* A language model without attention: every position sees the embeddings of the last `window` tokens. Its first layer
 * applies one block of columns of its matrix to each of them, W = [W_0 ... W_(window-1)], W_j for the token j places
 * back; a token before the start of the sequence counts as zero. */
#include <math.h>
#include <stdio.h>

#include "core/base/memory.h"
#include "models/parts/stages.h"
#include "models/parts/token_loss.h"

typedef struct config {
  int64_t layers, hidden, embedding, window, context, vocab;
  double init_embedding, init_gain;
} config;

#define AT(member) .offset = offsetof(config, member)
static const pl_param params[] = {
    {.name = "layers", .type = PL_INT, AT(layers), .def = 2, .min = 1, .max = 1024, .help = "hidden layers"},
    {.name = "hidden",
     .type = PL_INT,
     AT(hidden),
     .def = 128,
     .min = 1,
     .max = 65536,
     .help = "width of the hidden layers"},
    {.name = "embedding",
     .type = PL_INT,
     AT(embedding),
     .def = 32,
     .min = 1,
     .max = 65536,
     .help = "width of a token's embedding"},
    {.name = "window",
     .type = PL_INT,
     AT(window),
     .def = 4,
     .min = 1,
     .max = 4096,
     .help = "tokens that a prediction sees"},
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
    {.name = "init_embedding",
     .type = PL_REAL,
     AT(init_embedding),
     .def = 1,
     .min = 0,
     .max = 100,
     .help = "standard deviation of the embeddings"},
    {.name = "init_gain",
     .type = PL_REAL,
     AT(init_gain),
     .def = 1,
     .min = 0,
     .max = 100,
     .help = "a matrix has standard deviation init_gain/sqrt(fan_in)"},
    {.name = NULL, .type = PL_END}};
#undef AT

struct pl_model {
  config config;
  pl_device *device;
  size_t vocab;
  pl_stages stages;
  size_t embedding;
  pl_linear *layers;
  pl_token_loss end;
  size_t before, active, layer_bytes; /* a layer's part of the tape: z (before) and gelu(z) (active) */
  size_t embedded, tape_bytes[PL_MAX_STAGES], split_tape_bytes[PL_MAX_STAGES];
  size_t dz_bytes; /* a layer's gradient of z: with a split backward they stand from tape_bytes on */
  size_t boundary;
  void *scratch; /* device: gradients of z, of an activation (dactive), of the embeddings (dembedded) */
  size_t dactive, dembedded;
};

static void shape(const void *c_, pl_model_shape *out) {
  const config *c = c_;
  *out = (pl_model_shape){
      .layers = (size_t)c->layers, .context = (size_t)c->context, .reads_tokens = true, .vocab = (size_t)c->vocab};
}

static double one_layer_flops(const config *c, int64_t i) {
  return 2 * (double)c->hidden * (double)(i == 0 ? c->window * c->embedding : c->hidden);
}

static double head_flops(const config *c, size_t vocab) {
  return 2 * (double)c->hidden * (double)(c->vocab != 0 ? (size_t)c->vocab : vocab);
}

static void layer_flops(const void *c_, size_t vocab, double *layers, double *first, double *last) {
  const config *c = c_;
  for (int64_t i = 0; i < c->layers; i++) layers[i] = one_layer_flops(c, i);
  *first = 0; /* rows are looked up */
  *last = head_flops(c, vocab);
}

static double flops_per_token(const void *c_, size_t vocab) {
  const config *c = c_;
  return 3 * (one_layer_flops(c, 0) + (double)(c->layers - 1) * one_layer_flops(c, 1) + head_flops(c, vocab));
}

static pl_status place_layer(pl_model *m, size_t i, pl_layout *l, pl_err *e) {
  const config *c = &m->config;
  char name[24];
  snprintf(name, sizeof name, "layers.%u", (unsigned)i);
  m->layers[i] = (pl_linear){
      .in = (size_t)(i == 0 ? c->window * c->embedding : c->hidden), .out = (size_t)c->hidden, .biased = true};
  return pl_linear_place(l, name, NULL, PL_SEGMENT_MATRIX, c->init_gain / sqrt((double)m->layers[i].in), &m->layers[i],
                         e);
}

static pl_status place(pl_model *m, pl_err *e) {
  pl_status st = PL_OK;
  const config *c = &m->config;
  for (size_t p = 0; p < m->stages.count; p++) {
    pl_layout *l = &m->stages.layouts[p];
    if (p == 0) {
      pl_segment table =
          pl_segment_named("embedding", NULL, NULL, PL_SEGMENT_EMBEDDING, m->vocab, (size_t)c->embedding);
      table.init_std = c->init_embedding;
      PL_TRY(pl_segment_place(l, &table, &m->embedding, e));
    }
    for (size_t i = m->stages.first[p]; i < m->stages.first[p + 1]; i++) PL_TRY(place_layer(m, i, l, e));
    if (pl_stage_is_last(&m->stages, p)) {
      m->end.head = (pl_linear){.in = (size_t)c->hidden, .out = m->vocab};
      PL_TRY(
          pl_linear_place(l, NULL, "head", PL_SEGMENT_HEAD, c->init_gain / sqrt((double)c->hidden), &m->end.head, e));
    }
  }
out:
  return st;
}

static pl_status allocate(pl_model *m, size_t sequences, pl_err *e) {
  size_t rows = pl_times(sequences, (size_t)m->config.context), hidden = (size_t)m->config.hidden;
  pl_space layer = {0}, dz = {0}, scratch;
  m->before = pl_space_reals(&layer, rows, hidden);
  m->active = pl_space_reals(&layer, rows, hidden);
  m->layer_bytes = layer.bytes;
  pl_space_reals(&dz, rows, hidden);
  m->dz_bytes = dz.bytes;
  for (size_t p = 0; p < m->stages.count; p++) {
    size_t layers = m->stages.first[p + 1] - m->stages.first[p];
    pl_space tape = {0};
    pl_space_take(&tape, layers, layer.bytes, 1);
    if (p == 0) m->embedded = pl_space_reals(&tape, rows, (size_t)m->config.embedding);
    if (pl_stage_is_last(&m->stages, p)) pl_token_loss_space(&m->end, rows, &tape);
    m->tape_bytes[p] = tape.bytes;
    pl_space_take(&tape, layers, dz.bytes, 1);
    m->split_tape_bytes[p] = tape.bytes;
  }
  m->boundary = pl_times(rows, hidden);
  scratch = dz;
  m->dactive = pl_space_reals(&scratch, rows, hidden);
  m->dembedded = pl_space_reals(&scratch, rows, (size_t)m->config.embedding);
  return m->device->ops->alloc(m->device, scratch.bytes, "the model's scratch", &m->scratch, e);
}

static void destroy(pl_model *m) {
  if (m == NULL) return;
  pl_device_release(m->device, m->scratch);
  pl_free(m->layers);
  pl_stages_free(&m->stages);
  pl_free(m);
}

static pl_status create(const void *c, const pl_model_env *env, pl_model **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_model *m = NULL;
  PL_TRY(pl_alloc(1, sizeof *m, "the model", &m, e));
  m->config = *(const config *)c;
  m->device = env->device;
  PL_TRY(pl_model_vocab(m->config.vocab, env, &m->vocab, e));
  PL_TRY(pl_stages_start(env, &m->stages, e));
  PL_TRY(pl_alloc((size_t)m->config.layers, sizeof *m->layers, "the model's layers", &m->layers, e));
  PL_TRY(place(m, e));
  PL_TRY(allocate(m, env->max_sequences, e));
  *out = m;
  m = NULL;
out:
  destroy(m);
  return st;
}

static const pl_layout *layout(const pl_model *m, size_t stage) { return &m->stages.layouts[stage]; }
static size_t tape_bytes(const pl_model *m, size_t stage) { return m->tape_bytes[stage]; }
static size_t split_tape_bytes(const pl_model *m, size_t stage) { return m->split_tape_bytes[stage]; }
static size_t boundary_size(const pl_model *m) { return m->boundary; }

/* Layer i's part of its stage's tape. */
static pl_real *part(const pl_model *m, size_t stage, size_t i, size_t offset, void *tape) {
  return pl_space_at(tape, (i - m->stages.first[stage]) * m->layer_bytes + offset);
}

/* The place of layer i's dz that is kept for the weight half. */
static pl_real *kept_dz(const pl_model *m, size_t stage, size_t i, void *tape) {
  return pl_space_at(tape, m->tape_bytes[stage] + (i - m->stages.first[stage]) * m->dz_bytes);
}

static const pl_real *input_of(const pl_model *m, size_t stage, size_t i, const pl_real *in, void *tape) {
  return i == m->stages.first[stage] ? in : part(m, stage, i - 1, m->active, tape);
}

/* Positions of one sequence that see a token j places back. */
static size_t seeing(const pl_batch *b, size_t j) { return j < b->context ? b->context - j : 0; }

static void window_forward(pl_model *m, const pl_real *weights, const pl_batch *b, void *tape, pl_real *z) {
  pl_device *d = m->device;
  const pl_linear *l = &m->layers[0];
  size_t width = (size_t)m->config.embedding, rows = b->sequences * b->context;
  pl_real *embedded = pl_space_at(tape, m->embedded);
  d->ops->embedding_forward(d, rows, width, b->tokens, weights + m->embedding, embedded);
  for (size_t j = 0; j < l->in / width && seeing(b, j) > 0; j++) {
    for (size_t s = 0; s < b->sequences; s++) {
      size_t start = s * b->context;
      d->ops->gemm_low(d, false, true, seeing(b, j), l->out, width, 1, embedded + start * width, width,
                       weights + l->weight + j * width, l->in, j > 0, z + (start + j) * l->out, l->out);
    }
  }
  d->ops->add_rows_forward(d, rows, l->out, 1, weights + l->bias, z);
}

static void window_backward_input(pl_model *m, const pl_real *weights, const pl_batch *b, const pl_real *dz,
                                  pl_real *grad) {
  pl_device *d = m->device;
  const pl_linear *l = &m->layers[0];
  size_t width = (size_t)m->config.embedding, rows = b->sequences * b->context;
  pl_real *dembedded = pl_space_at(m->scratch, m->dembedded);
  for (size_t j = 0; j < l->in / width && seeing(b, j) > 0; j++) {
    for (size_t s = 0; s < b->sequences; s++) {
      size_t start = s * b->context;
      d->ops->gemm_low(d, false, false, seeing(b, j), width, l->out, 1, dz + (start + j) * l->out, l->out,
                       weights + l->weight + j * width, l->in, j > 0, dembedded + start * width, width);
    }
  }
  d->ops->embedding_backward(d, rows, width, b->tokens, dembedded, grad + m->embedding);
}

static void window_backward_weights(pl_model *m, const pl_batch *b, void *tape, const pl_real *dz, pl_real *grad) {
  pl_device *d = m->device;
  const pl_linear *l = &m->layers[0];
  size_t width = (size_t)m->config.embedding, rows = b->sequences * b->context;
  const pl_real *embedded = pl_space_at(tape, m->embedded);
  for (size_t j = 0; j < l->in / width && seeing(b, j) > 0; j++) {
    for (size_t s = 0; s < b->sequences; s++) {
      size_t start = s * b->context;
      d->ops->gemm_low(d, true, false, l->out, width, seeing(b, j), 1, dz + (start + j) * l->out, l->out,
                       embedded + start * width, width, 1, grad + l->gradient + j * width, l->in);
    }
  }
  d->ops->add_rows_backward(d, rows, l->out, 1, dz, grad + l->bias);
}

static void forward(pl_model *m, size_t stage, const pl_real *weights, const pl_batch *b, const pl_real *in,
                    pl_real *out, void *tape) {
  size_t rows = b->sequences * b->context, end = m->stages.first[stage + 1];
  bool last = pl_stage_is_last(&m->stages, stage);
  for (size_t i = m->stages.first[stage]; i < end; i++) {
    pl_real *z = part(m, stage, i, m->before, tape);
    if (i == 0) {
      window_forward(m, weights, b, tape, z);
    } else {
      pl_linear_forward(m->device, &m->layers[i], weights, rows, input_of(m, stage, i, in, tape), false, z);
    }
    m->device->ops->gelu_forward(m->device, rows * m->layers[i].out, z,
                                 i + 1 == end && !last ? out : part(m, stage, i, m->active, tape));
  }
  if (last) pl_token_loss_forward(m->device, &m->end, weights, b, input_of(m, stage, end, in, tape), tape);
}

static double loss(pl_model *m, const pl_batch *b, void *tape) {
  return pl_token_loss_sum(m->device, &m->end, b, tape);
}

static void layer_backward_weights(pl_model *m, size_t stage, size_t i, const pl_batch *b, const pl_real *in,
                                   void *tape, const pl_real *dz, pl_real *grad) {
  if (i == 0) {
    window_backward_weights(m, b, tape, dz, grad);
  } else {
    pl_linear_backward_weights(m->device, &m->layers[i], b->sequences * b->context, input_of(m, stage, i, in, tape), dz,
                               grad);
  }
}

static void end_backward_weights(pl_model *m, size_t stage, const pl_batch *b, const pl_real *in, void *tape,
                                 pl_real *grad) {
  if (!pl_stage_is_last(&m->stages, stage)) return;
  pl_token_loss_backward_weights(m->device, &m->end, b, input_of(m, stage, m->stages.first[stage + 1], in, tape), tape,
                                 grad);
}

/* All but the gradient of the head's weights; when split, the input half. */
static void layers_backward(pl_model *m, size_t stage, const pl_real *weights, const pl_batch *b, const pl_real *in,
                            void *tape, const pl_real *dout, pl_real *din, pl_real *grad, bool split) {
  pl_device *d = m->device;
  size_t rows = b->sequences * b->context, n = rows * (size_t)m->config.hidden, first = m->stages.first[stage];
  pl_real *dactive = pl_space_at(m->scratch, m->dactive);
  if (pl_stage_is_last(&m->stages, stage)) {
    pl_token_loss_backward_input(d, &m->end, weights, b, tape, dactive);
    dout = dactive;
  }
  for (size_t i = m->stages.first[stage + 1]; i-- > first; dout = dactive) {
    pl_real *dz = split ? kept_dz(m, stage, i, tape) : m->scratch;
    d->ops->gelu_backward(d, n, part(m, stage, i, m->before, tape), dout, dz);
    if (!split) layer_backward_weights(m, stage, i, b, in, tape, dz, grad);
    if (i == 0) {
      window_backward_input(m, weights, b, dz, grad);
    } else {
      pl_linear_backward_input(d, &m->layers[i], weights, rows, dz, false, i == first ? din : dactive);
    }
  }
}

static void backward(pl_model *m, size_t stage, const pl_real *weights, const pl_batch *b, const pl_real *in,
                     void *tape, const pl_real *dout, pl_real *din, pl_real *grad) {
  end_backward_weights(m, stage, b, in, tape, grad);
  layers_backward(m, stage, weights, b, in, tape, dout, din, grad, false);
}

static void backward_input(pl_model *m, size_t stage, const pl_real *weights, const pl_batch *b, const pl_real *in,
                           void *tape, const pl_real *dout, pl_real *din, pl_real *grad) {
  layers_backward(m, stage, weights, b, in, tape, dout, din, grad, true);
}

static void backward_weight(pl_model *m, size_t stage, const pl_batch *b, const pl_real *in, void *tape,
                            pl_real *grad) {
  for (size_t i = m->stages.first[stage + 1]; i-- > m->stages.first[stage];) {
    layer_backward_weights(m, stage, i, b, in, tape, kept_dz(m, stage, i, tape), grad);
  }
  end_backward_weights(m, stage, b, in, tape, grad);
}

const pl_model_type pl_model_mlp = {.base = {.name = "mlp",
                                             .summary = "language model of a window of tokens and GELU layers",
                                             .source = "Bengio et al. 2003",
                                             .params = params,
                                             .config_size = sizeof(config)},
                                    .shape = shape,
                                    .create = create,
                                    .destroy = destroy,
                                    .layout = layout,
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
