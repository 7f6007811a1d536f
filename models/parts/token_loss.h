/* The end of a language model: logits = x W^T and the cross-entropy of the next token. */
#ifndef PL_MODELS_PARTS_TOKEN_LOSS_H
#define PL_MODELS_PARTS_TOKEN_LOSS_H

#include "core/train/model.h"
#include "models/parts/linear.h"
#include "models/parts/space.h"

typedef struct pl_token_loss {
  pl_linear head;        /* [vocab, width] */
  size_t logits, losses; /* offsets in the tape, bytes */
} pl_token_loss;

/* Takes the tape's space for at most `rows` tokens. */
void pl_token_loss_space(pl_token_loss *t, size_t rows, pl_space *tape);

/* x is [tokens, width]. In training (b->step >= 0) the logits in the tape become their gradient at once. */
void pl_token_loss_forward(pl_device *d, const pl_token_loss *t, const pl_real *weights, const pl_batch *b,
                           const pl_real *x, void *tape);

/* Sum over tokens in nats; synchronises. */
double pl_token_loss_sum(pl_device *d, const pl_token_loss *t, const pl_batch *b, void *tape);

/* Overwrites dx. */
void pl_token_loss_backward_input(pl_device *d, const pl_token_loss *t, const pl_real *weights, const pl_batch *b,
                                  void *tape, pl_real *dx);

/* Adds to grad; x as in forward. */
void pl_token_loss_backward_weights(pl_device *d, const pl_token_loss *t, const pl_batch *b, const pl_real *x,
                                    void *tape, pl_real *grad);

#endif
