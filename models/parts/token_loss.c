#include "models/parts/token_loss.h"

static double *losses(const pl_token_loss *t, void *tape) { return (double *)(void *)((char *)tape + t->losses); }

void pl_token_loss_space(pl_token_loss *t, size_t rows, pl_space *tape) {
  t->logits = pl_space_reals(tape, rows, t->head.out);
  t->losses = pl_space_take(tape, rows, 1, sizeof(double));
}

void pl_token_loss_forward(pl_device *d, const pl_token_loss *t, const pl_real *weights, const pl_batch *b,
                           const pl_real *x, void *tape) {
  size_t rows = b->sequences * b->context;
  pl_real *logits = pl_space_at(tape, t->logits);
  pl_linear_forward(d, &t->head, weights, rows, x, false, logits);
  d->ops->cross_entropy(d, rows, t->head.out, b->targets, b->step >= 0, b->scale, logits, losses(t, tape));
}

double pl_token_loss_sum(pl_device *d, const pl_token_loss *t, const pl_batch *b, void *tape) {
  return d->ops->sum_double(d, b->sequences * b->context, losses(t, tape));
}

void pl_token_loss_backward_input(pl_device *d, const pl_token_loss *t, const pl_real *weights, const pl_batch *b,
                                  void *tape, pl_real *dx) {
  pl_linear_backward_input(d, &t->head, weights, b->sequences * b->context, pl_space_at(tape, t->logits), false, dx);
}

void pl_token_loss_backward_weights(pl_device *d, const pl_token_loss *t, const pl_batch *b, const pl_real *x,
                                    void *tape, pl_real *grad) {
  pl_linear_backward_weights(d, &t->head, b->sequences * b->context, x, pl_space_at(tape, t->logits), grad);
}
