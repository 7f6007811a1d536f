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

/* The delta of the MLP's first matrix. */
static pl_real *delta_up(const pl_block_call *c) {
  return c->shape->gelu ? pl_space_at(c->deltas, c->delta_places->up) : kept(c, c->places->up);
}

/* From a linear map's delta: dW += delta^T x, which waits when split, and dx (+)= delta W. */
static void map_backward(const pl_block_call *c, const pl_linear *l, const pl_real *x, const pl_real *delta, bool add,
                         pl_real *dx, pl_real *grad) {
  if (!c->split) pl_linear_backward_weights(c->device, l, rows_of(c), x, delta, grad);
  pl_linear_backward_input(c->device, l, c->weights, rows_of(c), delta, add, dx);
}

/* A delta that stands in dx, which goes on changing. */
static void keep_delta(const pl_block_call *c, const pl_real *dx, size_t offset) {
  if (!c->split) return;
  c->device->ops->copy(c->device, kept(c, offset), dx, rows_of(c) * c->shape->width * sizeof(pl_real));
}

static void mlp_backward(const pl_block_call *c, const pl_real *x, pl_real *dx, pl_real *grad) {
  pl_device *d = c->device;
  const pl_block *b = c->block;
  const pl_block_tape *t = c->places;
  size_t rows = rows_of(c), n = rows * c->shape->ff;
  pl_real *normed = kept(c, t->mlp_in), *gate = kept(c, t->gate), *up = kept(c, t->up), *dup = delta_up(c);
  pl_real *dhidden = c->shape->gelu ? dup : spare(c, c->scratch_places->dhidden);
  pl_real *dnormed = spare(c, c->scratch_places->dnormed);
  keep_delta(c, dx, t->output);
  map_backward(c, &b->down, kept(c, t->hidden), dx, false, dhidden, grad);
  if (c->shape->gelu) {
    d->ops->gelu_backward(d, n, up, dhidden, dup);
  } else {
    d->ops->swiglu_backward(d, n, gate, up, dhidden, gate, dup); /* the deltas take their place */
    map_backward(c, &b->gate, normed, gate, false, dnormed, grad);
  }
  map_backward(c, &b->up, normed, dup, !c->shape->gelu, dnormed, grad);
  pl_norm_backward(d, &b->mlp_norm, c->weights, rows, x, kept(c, t->mlp_stats), dnormed, dx, grad);
}

static void attention_backward(const pl_block_call *c, const pl_real *x, pl_real *dx, pl_real *grad) {
  pl_device *d = c->device;
  const pl_block *b = c->block;
  const pl_block_tape *t = c->places;
  const pl_block_deltas *p = c->delta_places;
  const pl_block_scratch *s = c->scratch_places;
  pl_attention shape = attention_of(c);
  const pl_real *normed = kept(c, t->attention_in), *attended = kept(c, t->attended);
  pl_real *dq = pl_space_at(c->deltas, p->q), *dk = pl_space_at(c->deltas, p->k), *dv = pl_space_at(c->deltas, p->v);
  pl_real *dattended = spare(c, s->dattended), *dnormed = spare(c, s->dnormed);
  keep_delta(c, dx, t->middle);
  map_backward(c, &b->o, attended, dx, false, dattended, grad);
  d->ops->attention_backward(d, &shape, kept(c, t->q), kept(c, t->k), kept(c, t->v), attended,
                             kept(c, t->attention_saved), dattended, dq, dk, dv, spare(c, s->attention));
  rotate(c, true, dq, dk);
  map_backward(c, &b->q, normed, dq, false, dnormed, grad);
  map_backward(c, &b->k, normed, dk, true, dnormed, grad);
  map_backward(c, &b->v, normed, dv, true, dnormed, grad);
  pl_norm_backward(d, &b->attention_norm, c->weights, rows_of(c), x, kept(c, t->attention_stats), dnormed, dx, grad);
}

void pl_block_backward(const pl_block_call *c, const pl_real *x, pl_real *dx, pl_real *grad) {
  mlp_backward(c, kept(c, c->places->middle), dx, grad);
  attention_backward(c, x, dx, grad);
}

void pl_block_backward_weights(const pl_block_call *c, pl_real *grad) {
  pl_device *d = c->device;
  const pl_block *b = c->block;
  const pl_block_tape *t = c->places;
  const pl_block_deltas *p = c->delta_places;
  size_t rows = rows_of(c);
  const pl_real *attention_in = kept(c, t->attention_in), *mlp_in = kept(c, t->mlp_in);
  pl_linear_backward_weights(d, &b->down, rows, kept(c, t->hidden), kept(c, t->output), grad);
  if (!c->shape->gelu) pl_linear_backward_weights(d, &b->gate, rows, mlp_in, kept(c, t->gate), grad);
  pl_linear_backward_weights(d, &b->up, rows, mlp_in, delta_up(c), grad);
  pl_linear_backward_weights(d, &b->o, rows, kept(c, t->attended), kept(c, t->middle), grad);
  pl_linear_backward_weights(d, &b->q, rows, attention_in, pl_space_at(c->deltas, p->q), grad);
  pl_linear_backward_weights(d, &b->k, rows, attention_in, pl_space_at(c->deltas, p->k), grad);
  pl_linear_backward_weights(d, &b->v, rows, attention_in, pl_space_at(c->deltas, p->v), grad);
}
