/* One pre-norm transformer layer: h = x + Attention(Norm(x)); y = h + MLP(Norm(h)) (LLaMA, arXiv 2302.13971). */
#ifndef PL_MODELS_PARTS_BLOCK_H
#define PL_MODELS_PARTS_BLOCK_H

#include "models/parts/linear.h"
#include "models/parts/norm.h"
#include "models/parts/space.h"

/* What all layers of a model share. */
typedef struct pl_block_shape {
  size_t width, heads, kv_heads, head_dim, ff;
  bool layernorm, gelu, bias; /* else RMSNorm, SwiGLU, no biases */
  double eps;
} pl_block_shape;

/* Standard deviations of a layer's initial matrices, by their fan-in. */
typedef struct pl_block_init {
  double from_width;             /* q, k, v, gate, up, in */
  double attention_out, mlp_out; /* the two projections that add to the residual stream */
} pl_block_init;

/* Where a layer's parameters stand in its stage's arrays. With GELU `up` is the MLP's only first matrix. */
typedef struct pl_block {
  pl_norm attention_norm, mlp_norm;
  pl_linear q, k, v, o, gate, up, down;
} pl_block;

/* What a layer keeps from forward to backward: offsets in its part of the tape, in bytes. q and k are kept rotated,
 * hidden is the MLP's activation. Backward puts deltas in places that it has used up: gate's and up's (SwiGLU) in
 * their own and, when split, down's in output, o's in middle. */
typedef struct pl_block_tape {
  size_t attention_stats, attention_in, q, k, v, attention_saved, attended, middle, mlp_stats, mlp_in, gate, up, hidden,
      output, bytes;
} pl_block_tape;

/* The deltas (gradients of a linear map's output, from which its weights' gradient is made) that have no place in the
 * tape: offsets in bytes in an area of their own. up is for GELU only. */
typedef struct pl_block_deltas {
  size_t q, k, v, up, bytes;
} pl_block_deltas;

/* What one call overwrites freely, shared by all layers: offsets in bytes. `deltas` is an area for the deltas of one
 * layer, for a backward that is not split; dhidden is for SwiGLU only. */
typedef struct pl_block_scratch {
  size_t dnormed, deltas, dattended, attention, dhidden, bytes;
} pl_block_scratch;

/* A layer at work on one microbatch. */
typedef struct pl_block_call {
  pl_device *device;
  const pl_block_shape *shape;
  const pl_block_tape *places;
  const pl_block_deltas *delta_places;
  const pl_block_scratch *scratch_places;
  const pl_block *block;
  const pl_real *weights; /* of the stage */
  const pl_real *rope;    /* the table of pl_ops.rope; NULL without */
  size_t sequences, context;
  void *tape, *deltas, *scratch; /* the layer's part of the tape; an area for its deltas; the shared scratch */
  bool split;                    /* backward leaves the weights' gradients to pl_block_backward_weights */
} pl_block_call;

/* Adds the segments layers.<index>.* to the layout. */
PL_MUST_CHECK pl_status pl_block_place(const pl_block_shape *s, const pl_block_init *init, size_t index, pl_layout *l,
                                       pl_block *out, pl_err *e);

/* Sizes for at most `sequences` of `context` tokens. */
void pl_block_sizes(pl_device *d, const pl_block_shape *s, size_t sequences, size_t context, pl_block_tape *tape,
                    pl_block_deltas *deltas, pl_block_scratch *scratch);

/* x, y: [sequences * context, width], distinct. */
void pl_block_forward(const pl_block_call *c, const pl_real *x, pl_real *y);

/* x as in forward. dx holds dy on entry and dx on return. Adds to grad. The tape is used up; when split, all but what
 * the other half needs. */
void pl_block_backward(const pl_block_call *c, const pl_real *x, pl_real *dx, pl_real *grad);

/* The other half of a split backward: adds the gradients of the linear maps' weights and biases. c->weights is not
 * read. */
void pl_block_backward_weights(const pl_block_call *c, pl_real *grad);

#endif
