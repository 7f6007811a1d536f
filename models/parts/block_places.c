#include <stdio.h>

#include "models/parts/block.h"
#include "models/parts/stages.h"

static void describe(const pl_block_shape *s, pl_block *b) {
  size_t width = s->width, kv = s->kv_heads * s->head_dim;
  pl_norm norm = {.layernorm = s->layernorm, .eps = s->eps, .width = width};
  b->attention_norm = b->mlp_norm = norm;
  b->q = b->o = (pl_linear){.in = width, .out = width, .biased = s->bias};
  b->k = b->v = (pl_linear){.in = width, .out = kv, .biased = s->bias};
  b->gate = b->up = (pl_linear){.in = width, .out = s->ff, .biased = s->bias};
  b->down = (pl_linear){.in = s->ff, .out = width, .biased = s->bias};
}

pl_status pl_block_place(const pl_block_shape *s, const pl_block_init *init, size_t index, pl_layout *l, pl_block *out,
                         pl_err *e) {
  pl_status st = PL_OK;
  char layer[24];
  snprintf(layer, sizeof layer, "layers.%u", (unsigned)index);
  describe(s, out);
  PL_TRY(pl_norm_place(l, layer, "attention_norm", &out->attention_norm, e));
  PL_TRY(pl_linear_place(l, layer, "attention.q", PL_SEGMENT_MATRIX, init->from_width, &out->q, e));
  PL_TRY(pl_linear_place(l, layer, "attention.k", PL_SEGMENT_MATRIX, init->from_width, &out->k, e));
  PL_TRY(pl_linear_place(l, layer, "attention.v", PL_SEGMENT_MATRIX, init->from_width, &out->v, e));
  PL_TRY(pl_linear_place(l, layer, "attention.o", PL_SEGMENT_MATRIX, init->attention_out, &out->o, e));
  PL_TRY(pl_norm_place(l, layer, "mlp_norm", &out->mlp_norm, e));
  if (!s->gelu) PL_TRY(pl_linear_place(l, layer, "mlp.gate", PL_SEGMENT_MATRIX, init->from_width, &out->gate, e));
  PL_TRY(pl_linear_place(l, layer, s->gelu ? "mlp.in" : "mlp.up", PL_SEGMENT_MATRIX, init->from_width, &out->up, e));
  PL_TRY(pl_linear_place(l, layer, s->gelu ? "mlp.out" : "mlp.down", PL_SEGMENT_MATRIX, init->mlp_out, &out->down, e));
out:
  return st;
}

static void tape_places(const pl_block_shape *s, size_t rows, size_t saved, pl_block_tape *t) {
  pl_space space = {0};
  pl_norm norm = {.layernorm = s->layernorm};
  size_t kv = s->kv_heads * s->head_dim;
  t->attention_stats = pl_space_reals(&space, pl_norm_stats_size(&norm, rows), 1);
  t->attention_in = pl_space_reals(&space, rows, s->width);
  t->q = pl_space_reals(&space, rows, s->width);
  t->k = pl_space_reals(&space, rows, kv);
  t->v = pl_space_reals(&space, rows, kv);
  t->attention_saved = pl_space_reals(&space, saved, 1);
  t->attended = pl_space_reals(&space, rows, s->width);
  t->middle = pl_space_reals(&space, rows, s->width);
  t->mlp_stats = pl_space_reals(&space, pl_norm_stats_size(&norm, rows), 1);
  t->mlp_in = pl_space_reals(&space, rows, s->width);
  t->gate = pl_space_reals(&space, s->gelu ? 0 : rows, s->ff);
  t->up = pl_space_reals(&space, rows, s->ff);
  t->hidden = pl_space_reals(&space, rows, s->ff);
  t->output = pl_space_reals(&space, rows, s->width);
  t->bytes = space.bytes;
}

static void delta_places(const pl_block_shape *s, size_t rows, pl_block_deltas *p) {
  pl_space space = {0};
  size_t kv = s->kv_heads * s->head_dim;
  p->q = pl_space_reals(&space, rows, s->width);
  p->k = pl_space_reals(&space, rows, kv);
  p->v = pl_space_reals(&space, rows, kv);
  p->up = pl_space_reals(&space, s->gelu ? rows : 0, s->ff);
  p->bytes = space.bytes;
}

void pl_block_sizes(pl_device *d, const pl_block_shape *s, size_t sequences, size_t context, pl_block_tape *tape,
                    pl_block_deltas *deltas, pl_block_scratch *scratch) {
  size_t rows = pl_times(sequences, context);
  pl_attention a = {sequences, context, s->heads, s->kv_heads, s->head_dim};
  tape_places(s, rows, d->ops->attention_saved_size(&a), tape);
  delta_places(s, rows, deltas);
  pl_space attention = {0};
  scratch->dnormed = pl_space_reals(&attention, rows, s->width);
  scratch->deltas = pl_space_take(&attention, deltas->bytes, 1, 1);
  /* The attention's and the MLP's scratch are never alive together. */
  pl_space mlp = attention;
  scratch->dattended = pl_space_reals(&attention, rows, s->width);
  scratch->attention = pl_space_reals(&attention, d->ops->attention_scratch_size(d, &a), 1);
  scratch->dhidden = pl_space_reals(&mlp, s->gelu ? 0 : rows, s->ff);
  scratch->bytes = attention.bytes > mlp.bytes ? attention.bytes : mlp.bytes;
}
