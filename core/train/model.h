/* Models. Weights are an argument of every call, never held, so the caller chooses the version: stale, predicted or
 * current. */
#ifndef PL_TRAIN_MODEL_H
#define PL_TRAIN_MODEL_H

#include "core/config/registry.h"
#include "core/device/device.h"
#include "core/train/layout.h"

/* One microbatch. tokens and targets are [sequences * context] in device memory (NULL for models that do not read
 * tokens). */
typedef struct pl_batch {
  const int32_t *tokens, *targets;
  size_t sequences, context;
  uint64_t data_seed; /* with step and microbatch: names the noise of models that draw their own */
  int64_t step;       /* -1 for validation: no noise */
  size_t microbatch;
  double scale; /* gradients are those of scale * (sum of the losses): 1/(tokens of the update), so that microbatches
                   are token-weighted */
} pl_batch;

/* What the rest of the program must know before a model exists. */
typedef struct pl_model_shape {
  size_t layers;  /* how many pieces stages can be cut into */
  size_t context; /* tokens of a sequence; 1 for models that do not read tokens */
  bool reads_tokens;
  bool tied_head;
  size_t vocab; /* 0: takes the dataset's */
} pl_model_shape;

typedef struct pl_model_env {
  pl_device *device; /* borrowed until destroy */
  size_t stages;
  const size_t
      *first_layer; /* [stages + 1]: stage p owns layers first_layer[p] .. first_layer[p+1]-1; borrowed during create */
  size_t vocab;     /* the dataset's; 0 without tokens */
  size_t max_sequences; /* largest microbatch */
  uint64_t seed;
} pl_model_env;

typedef struct pl_model pl_model; /* private to each implementation */

/* Where the tied matrix accumulates its two gradients: the embedding's in stage 0 at `embedding` and the head's in
 * stage `head_stage` at offset `head` of its gradient array (with one stage: behind the parameters). Summed once as
 * head + embedding. */
typedef struct pl_tie {
  size_t embedding, head_stage, head, count;
} pl_tie;

typedef struct pl_model_type {
  pl_component base;
  /* Fills the shape from a checked config. */
  void (*shape)(const void *config, pl_model_shape *out);
  /* Copies the config. All memory is allocated here. */
  pl_status (*create)(const void *config, const pl_model_env *env, pl_model **out, pl_err *e);
  void (*destroy)(pl_model *m); /* NULL allowed */
  const pl_layout *(*layout)(const pl_model *m, size_t stage);
  bool (*tie)(const pl_model *m, pl_tie *out); /* false when nothing is tied; NULL means never */
  /* Sizes for a microbatch of max_sequences: bytes of a stage's tape, elements of the message between stages. */
  size_t (*tape_bytes)(const pl_model *m, size_t stage);
  size_t (*boundary_size)(const pl_model *m);
  /* Bytes of a tape with room for what the first half of a split backward leaves for the second: at least tape_bytes;
   * such a tape serves backward too. */
  size_t (*split_tape_bytes)(const pl_model *m, size_t stage);
  /* in: message of the previous stage (NULL for the first); out: message to the next (NULL for the last). The tape is
   * filled. */
  void (*forward)(pl_model *m, size_t stage, const pl_real *weights, const pl_batch *b, const pl_real *in, pl_real *out,
                  void *tape);
  /* Sum over the microbatch's tokens of the loss in nats, after forward of the last stage; synchronises. */
  double (*loss)(pl_model *m, const pl_batch *b, void *tape);
  /* Adds to grad [grad_size]. dout: NULL for the last stage; din: NULL for the first. `weights` are the ones of
   * forward. `in` is forward's. */
  void (*backward)(pl_model *m, size_t stage, const pl_real *weights, const pl_batch *b, const pl_real *in, void *tape,
                   const pl_real *dout, pl_real *din, pl_real *grad);
  /* The halves of backward, for a tape of split_tape_bytes: the input's gives din, and adds to grad what is not worth
   * postponing; the weight's adds the rest, from what the first left in the tape. Between the two, other microbatches
   * with tapes of their own may pass; `in` must stay, dout and din need not. When each half takes the microbatches in
   * the order in which backward would take them, grad has the same bits. */
  void (*backward_input)(pl_model *m, size_t stage, const pl_real *weights, const pl_batch *b, const pl_real *in,
                         void *tape, const pl_real *dout, pl_real *din, pl_real *grad);
  void (*backward_weight)(pl_model *m, size_t stage, const pl_batch *b, const pl_real *in, void *tape, pl_real *grad);
  /* Multiply-adds times 2 of forward and backward per token, for estimates of cost; NULL means unknown. */
  double (*flops_per_token)(const void *config, size_t vocab);
  /* Those of forward alone, of each layer: layers[shape.layers]; and what the first stage does besides (the embedding)
   * and the last (head and loss). Only products of matrices count. NULL means unknown: layers count as equal. */
  void (*layer_flops)(const void *config, size_t vocab, double *layers, double *first, double *last);
} pl_model_type;

#endif
