#include <math.h>

#include "core/base/memory.h"
#include "models/parts/transformer.h"

size_t pl_transformer_kv_heads(const pl_transformer_config *c) {
  return (size_t)(c->kv_heads != 0 ? c->kv_heads : c->heads);
}

size_t pl_transformer_ff(const pl_transformer_config *c) {
  if (c->ff != 0) return (size_t)c->ff;
  if (c->activation == PL_ACTIVATION_GELU) return (size_t)(4 * c->d_model);
  return (size_t)((c->d_model + 2) / 3 * 8); /* 8/3 d_model, up to a multiple of 8 */
}

static void describe(pl_model *m) {
  const pl_transformer_config *c = &m->config;
  m->shape = (pl_block_shape){.width = (size_t)c->d_model,
                              .heads = (size_t)c->heads,
                              .kv_heads = pl_transformer_kv_heads(c),
                              .head_dim = (size_t)(c->d_model / c->heads),
                              .ff = pl_transformer_ff(c),
                              .layernorm = c->norm == PL_NORM_LAYERNORM,
                              .gelu = c->activation == PL_ACTIVATION_GELU,
                              .bias = c->bias,
                              .eps = c->norm_eps};
  m->final_norm = (pl_norm){.layernorm = m->shape.layernorm, .eps = c->norm_eps, .width = m->shape.width};
  m->end.head = (pl_linear){.in = m->shape.width, .out = m->vocab};
}

static double matrix_std(const pl_transformer_config *c, size_t fan_in, bool residual) {
  double std = c->init == PL_INIT_NORMAL ? c->init_std : c->init_gain / sqrt((double)fan_in);
  return residual && c->residual_scale ? std / sqrt(2 * (double)c->layers) : std;
}

static double embedding_std(const pl_transformer_config *c) {
  return c->init == PL_INIT_NORMAL ? c->init_std : c->init_embedding;
}

static pl_segment table_segment(const pl_model *m, const char *name, pl_segment_kind kind, size_t rows) {
  pl_segment s = pl_segment_named(name, NULL, NULL, kind, rows, m->shape.width);
  s.init_std = embedding_std(&m->config);
  return s;
}

static pl_status place_start(pl_model *m, pl_layout *l, pl_err *e) {
  pl_status st = PL_OK;
  pl_segment embedding = table_segment(m, "embedding", PL_SEGMENT_EMBEDDING, m->vocab);
  PL_TRY(pl_segment_place(l, &embedding, &m->embedding, e));
  if (m->config.positions == PL_POSITIONS_LEARNED) {
    pl_segment positions = table_segment(m, "positions", PL_SEGMENT_EMBEDDING, (size_t)m->config.context);
    PL_TRY(pl_segment_place(l, &positions, &m->positions, e));
  }
out:
  return st;
}

/* A tied head is the embedding itself when they share a stage, with a gradient of its own behind the parameters; else a
 * copy that is initialised by the embedding's name. */
static pl_status place_end(pl_model *m, pl_layout *l, pl_err *e) {
  pl_status st = PL_OK;
  pl_linear *head = &m->end.head;
  PL_TRY(pl_norm_place(l, NULL, "final_norm", &m->final_norm, e));
  if (!m->config.tied) {
    PL_TRY(pl_linear_place(l, NULL, "head", PL_SEGMENT_HEAD, matrix_std(&m->config, m->shape.width, false), head, e));
  } else if (m->stages.count > 1) {
    PL_TRY(pl_linear_place(l, NULL, "embedding", PL_SEGMENT_HEAD, embedding_std(&m->config), head, e));
    l->segments[l->count - 1].tied_copy = true;
  } else {
    pl_space behind = {l->size * sizeof(pl_real)};
    head->weight = m->embedding;
    head->gradient = pl_space_reals(&behind, m->vocab, m->shape.width) / sizeof(pl_real);
    l->grad_size = behind.bytes / sizeof(pl_real);
  }
out:
  return st;
}

static pl_status place(pl_model *m, pl_err *e) {
  pl_status st = PL_OK;
  const pl_transformer_config *c = &m->config;
  pl_block_init init = {matrix_std(c, m->shape.width, false), matrix_std(c, m->shape.width, true),
                        matrix_std(c, m->shape.ff, true)};
  for (size_t p = 0; p < m->stages.count; p++) {
    pl_layout *l = &m->stages.layouts[p];
    if (p == 0) PL_TRY(place_start(m, l, e));
    for (size_t i = m->stages.first[p]; i < m->stages.first[p + 1]; i++) {
      PL_TRY(pl_block_place(&m->shape, &init, i, l, &m->blocks[i], e));
    }
    if (pl_stage_is_last(&m->stages, p)) PL_TRY(place_end(m, l, e));
  }
out:
  return st;
}

static void size_memory(pl_model *m, size_t sequences) {
  size_t context = (size_t)m->config.context, rows = pl_times(sequences, context), width = m->shape.width;
  pl_block_sizes(m->device, &m->shape, sequences, context, &m->places, &m->delta_places, &m->scratch_places);
  for (size_t p = 0; p < m->stages.count; p++) {
    pl_transformer_ends *ends = &m->ends[p];
    size_t layers = m->stages.first[p + 1] - m->stages.first[p];
    pl_space tape = {0};
    pl_space_take(&tape, layers, m->places.bytes, 1);
    if (p == 0) ends->embedded = pl_space_reals(&tape, rows, width);
    if (pl_stage_is_last(&m->stages, p)) {
      ends->stats = pl_space_reals(&tape, pl_norm_stats_size(&m->final_norm, rows), 1);
      ends->normed = pl_space_reals(&tape, rows, width);
      pl_token_loss_space(&m->end, rows, &tape);
    }
    ends->bytes = tape.bytes;
    pl_space_take(&tape, layers, m->delta_places.bytes, 1);
    ends->split_bytes = tape.bytes;
  }
  m->boundary = pl_times(rows, width);
}

static pl_status make_rope(pl_model *m, pl_err *e) {
  pl_status st = PL_OK;
  pl_device *d = m->device;
  pl_real *table = NULL;
  size_t context = (size_t)m->config.context, width = m->shape.head_dim, half = width / 2,
         bytes = context * width * sizeof *table;
  PL_TRY(pl_alloc(context * width, sizeof(pl_real), "the rotary table", &table, e));
  for (size_t t = 0; t < context; t++) {
    for (size_t i = 0; i < half; i++) {
      double angle = (double)t * pow(m->config.rope_theta, -2 * (double)i / (double)width);
      table[t * width + i] = (pl_real)cos(angle);
      table[t * width + half + i] = (pl_real)sin(angle);
    }
  }
  PL_TRY(d->ops->alloc(d, bytes, "the rotary table", (void **)&m->rope, e));
  d->ops->upload(d, m->rope, table, bytes);
out:
  pl_free(table);
  return st;
}

pl_status pl_transformer_create(const void *config, const pl_model_env *env, pl_model **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_model *m = NULL;
  PL_TRY(pl_alloc(1, sizeof *m, "the model", &m, e));
  m->config = *(const pl_transformer_config *)config;
  m->device = env->device;
  PL_TRY(pl_model_vocab(m->config.vocab, env, &m->vocab, e));
  PL_TRY(pl_stages_start(env, &m->stages, e));
  describe(m);
  PL_TRY(pl_alloc((size_t)m->config.layers, sizeof *m->blocks, "the model's layers", &m->blocks, e));
  PL_TRY(place(m, e));
  size_memory(m, env->max_sequences);
  pl_space scratch = {m->scratch_places.bytes};
  m->residual = pl_space_reals(&scratch, m->boundary, 1);
  PL_TRY(m->device->ops->alloc(m->device, scratch.bytes, "the model's scratch", &m->scratch, e));
  if (m->config.positions == PL_POSITIONS_ROPE) PL_TRY(make_rope(m, e));
  *out = m;
  m = NULL;
out:
  pl_transformer_destroy(m);
  return st;
}

void pl_transformer_destroy(pl_model *m) {
  if (m == NULL) return;
  pl_device_release(m->device, m->rope);
  pl_device_release(m->device, m->scratch);
  pl_free(m->blocks);
  pl_stages_free(&m->stages);
  pl_free(m);
}
