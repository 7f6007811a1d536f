/* The transformer's configuration and its parts, shared by models/transformer.c and transformer_build.c. */
#ifndef PL_MODELS_PARTS_TRANSFORMER_H
#define PL_MODELS_PARTS_TRANSFORMER_H

#include "models/parts/block.h"
#include "models/parts/stages.h"
#include "models/parts/token_loss.h"

typedef enum pl_norm_kind { PL_NORM_RMSNORM, PL_NORM_LAYERNORM } pl_norm_kind;
typedef enum pl_activation { PL_ACTIVATION_SWIGLU, PL_ACTIVATION_GELU } pl_activation;
typedef enum pl_positions { PL_POSITIONS_ROPE, PL_POSITIONS_LEARNED } pl_positions;
typedef enum pl_init_kind { PL_INIT_FAN_IN, PL_INIT_NORMAL } pl_init_kind;

typedef struct pl_transformer_config {
  int64_t layers, d_model, heads, kv_heads, ff, context, vocab;
  bool tied, bias, residual_scale;
  int norm, activation, positions, init; /* the enums above */
  double rope_theta, norm_eps, init_embedding, init_gain, init_std;
} pl_transformer_config;

/* Where the first and last stage keep what is not a layer's: offsets in their tape, in bytes. With a split backward the
 * layers' deltas stand from `bytes` on, one area behind the other. */
typedef struct pl_transformer_ends {
  size_t embedded, stats, normed, bytes, split_bytes;
} pl_transformer_ends;

struct pl_model {
  pl_transformer_config config;
  pl_device *device;
  size_t vocab;
  pl_stages stages;
  pl_block_shape shape;
  pl_block *blocks; /* [layers] */
  size_t embedding, positions;
  pl_norm final_norm;
  pl_token_loss end;
  pl_block_tape places;
  pl_transformer_ends ends[PL_MAX_STAGES]; /* the layers' parts come first, one behind the other */
  pl_block_deltas delta_places;
  pl_block_scratch scratch_places;
  size_t boundary;
  void *scratch;   /* device: the layers' scratch, then from `residual` on [rows, width] for a gradient */
  size_t residual; /* bytes */
  pl_real *rope;   /* device: [context, head_dim], or NULL */
};

/* Defaults that depend on other parameters. */
size_t pl_transformer_ff(const pl_transformer_config *c);
size_t pl_transformer_kv_heads(const pl_transformer_config *c);

/* Of pl_model_type. */
PL_MUST_CHECK pl_status pl_transformer_create(const void *config, const pl_model_env *env, pl_model **out, pl_err *e);
void pl_transformer_destroy(pl_model *m);

#endif
