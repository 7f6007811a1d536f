#include "models/parts/block.h"

static pl_real *kept(const pl_block_call *c, size_t offset) { return pl_space_at(c->tape, offset); }
static pl_real *spare(const pl_block_call *c, size_t offset) { return pl_space_at(c->scratch, offset); }
static size_t rows_of(const pl_block_call *c) { return c->sequences * c->context; }

static pl_attention attention_of(const pl_block_call *c) {
  const pl_block_shape *s = c->shape;
  return (pl_attention){c->sequences, c->context, s->heads, s->kv_heads, s->head_dim};
}

static void rotate(const pl_block_call *c, bool inverse, pl_real *q, pl_real *k) {
  const pl_block_shape *s = c->shape;
  if (c->rope == NULL) return;
  c->device->ops->rope(c->device, rows_of(c), c->context, s->heads, s->head_dim, c->rope, inverse, q);
  c->device->ops->rope(c->device, rows_of(c), c->context, s->kv_heads, s->head_dim, c->rope, inverse, k);
}

/* to = from + linear(x): the residual stream goes on in `to`, `from` stays for backward. */
static void add_residual(const pl_block_call *c, const pl_linear *l, const pl_real *from, const pl_real *x,
                         pl_real *to) {
  c->device->ops->copy(c->device, to, from, rows_of(c) * c->shape->width * sizeof(pl_real));
  pl_linear_forward(c->device, l, c->weights, rows_of(c), x, true, to);
}

static void attention_forward(const pl_block_call *c, const pl_real *x, pl_real *y) {
  pl_device *d = c->device;
  const pl_block *b = c->block;
  const pl_block_tape *t = c->places;
  size_t rows = rows_of(c);
  pl_attention shape = attention_of(c);
  pl_real *normed = kept(c, t->attention_in), *q = kept(c, t->q), *k = kept(c, t->k), *v = kept(c, t->v);
  pl_real *attended = kept(c, t->attended);
  pl_norm_forward(d, &b->attention_norm, c->weights, rows, x, normed, kept(c, t->attention_stats));
  pl_linear_forward(d, &b->q, c->weights, rows, normed, false, q);
  pl_linear_forward(d, &b->k, c->weights, rows, normed, false, k);
  pl_linear_forward(d, &b->v, c->weights, rows, normed, false, v);
  rotate(c, false, q, k);
  d->ops->attention_forward(d, &shape, q, k, v, attended, kept(c, t->attention_saved),
                            spare(c, c->scratch_places->attention));
  add_residual(c, &b->o, x, attended, y);
}

static void mlp_forward(const pl_block_call *c, const pl_real *x, pl_real *y) {
  pl_device *d = c->device;
  const pl_block *b = c->block;
  const pl_block_tape *t = c->places;
  size_t rows = rows_of(c), n = rows * c->shape->ff;
  pl_real *normed = kept(c, t->mlp_in), *gate = kept(c, t->gate), *up = kept(c, t->up), *hidden = kept(c, t->hidden);
  pl_norm_forward(d, &b->mlp_norm, c->weights, rows, x, normed, kept(c, t->mlp_stats));
  pl_linear_forward(d, &b->up, c->weights, rows, normed, false, up);
  if (c->shape->gelu) {
    d->ops->gelu_forward(d, n, up, hidden);
  } else {
    pl_linear_forward(d, &b->gate, c->weights, rows, normed, false, gate);
    d->ops->swiglu_forward(d, n, gate, up, hidden);
  }
  add_residual(c, &b->down, x, hidden, y);
}

void pl_block_forward(const pl_block_call *c, const pl_real *x, pl_real *y) {
  pl_real *middle = kept(c, c->places->middle);
  attention_forward(c, x, middle);
  mlp_forward(c, middle, y);
}

/* Gradient of a linear layer on the normed input: dnormed (+)= dy W, dW += dy^T normed. */
static void project_back(const pl_block_call *c, const pl_linear *l, const pl_real *normed, const pl_real *dy, bool add,
                         pl_real *grad) {
  pl_linear_backward_weights(c->device, l, rows_of(c), normed, dy, grad);
  pl_linear_backward_input(c->device, l, c->weights, rows_of(c), dy, add, spare(c, c->scratch_places->dnormed));
}

static void mlp_backward(const pl_block_call *c, const pl_real *x, pl_real *dx, pl_real *grad) {
  pl_device *d = c->device;
  const pl_block *b = c->block;
  const pl_block_tape *t = c->places;
  size_t rows = rows_of(c), n = rows * c->shape->ff;
  pl_real *normed = kept(c, t->mlp_in), *gate = kept(c, t->gate), *up = kept(c, t->up);
  pl_real *dhidden = spare(c, c->scratch_places->dhidden), *dnormed = spare(c, c->scratch_places->dnormed);
  pl_linear_backward_weights(d, &b->down, rows, kept(c, t->hidden), dx, grad);
  pl_linear_backward_input(d, &b->down, c->weights, rows, dx, false, dhidden);
  if (c->shape->gelu) {
    d->ops->gelu_backward(d, n, up, dhidden, dhidden);
    project_back(c, &b->up, normed, dhidden, false, grad);
  } else {
    d->ops->swiglu_backward(d, n, gate, up, dhidden, gate, up); /* the gradients take their place */
    project_back(c, &b->gate, normed, gate, false, grad);
    project_back(c, &b->up, normed, up, true, grad);
  }
  pl_norm_backward(d, &b->mlp_norm, c->weights, rows, x, kept(c, t->mlp_stats), dnormed, dx, grad);
}

static void attention_backward(const pl_block_call *c, const pl_real *x, pl_real *dx, pl_real *grad) {
  pl_device *d = c->device;
  const pl_block *b = c->block;
  const pl_block_tape *t = c->places;
  const pl_block_scratch *s = c->scratch_places;
  size_t rows = rows_of(c);
  pl_attention shape = attention_of(c);
  const pl_real *normed = kept(c, t->attention_in), *attended = kept(c, t->attended);
  pl_real *dattended = spare(c, s->dattended), *dq = spare(c, s->dq), *dk = spare(c, s->dk), *dv = spare(c, s->dv);
  pl_linear_backward_weights(d, &b->o, rows, attended, dx, grad);
  pl_linear_backward_input(d, &b->o, c->weights, rows, dx, false, dattended);
  d->ops->attention_backward(d, &shape, kept(c, t->q), kept(c, t->k), kept(c, t->v), attended,
                             kept(c, t->attention_saved), dattended, dq, dk, dv, spare(c, s->attention));
  rotate(c, true, dq, dk);
  project_back(c, &b->q, normed, dq, false, grad);
  project_back(c, &b->k, normed, dk, true, grad);
  project_back(c, &b->v, normed, dv, true, grad);
  pl_norm_backward(d, &b->attention_norm, c->weights, rows, x, kept(c, t->attention_stats), spare(c, s->dnormed), dx,
                   grad);
}

void pl_block_backward(const pl_block_call *c, const pl_real *x, pl_real *dx, pl_real *grad) {
  mlp_backward(c, kept(c, c->places->middle), dx, grad);
  attention_backward(c, x, dx, grad);
}
