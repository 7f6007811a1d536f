/* Flat parameters: one contiguous array per stage holds all its parameters; gradients, optimizer state, displacements
 * and weight versions share the layout. */
#ifndef PL_TRAIN_LAYOUT_H
#define PL_TRAIN_LAYOUT_H

#include <stdint.h>

#include "core/base/real.h"
#include "core/base/status.h"

typedef enum pl_segment_kind {
  PL_SEGMENT_MATRIX,    /* 2-D hidden weight, rows = d_out, cols = d_in */
  PL_SEGMENT_EMBEDDING, /* token or position table */
  PL_SEGMENT_HEAD,
  PL_SEGMENT_NORM,
  PL_SEGMENT_BIAS,
  PL_SEGMENT_POINT /* the quadratic model's vector */
} pl_segment_kind;

enum { PL_SEGMENT_NAME = 48 };

typedef struct pl_segment {
  char name[PL_SEGMENT_NAME]; /* "layers.3.attention.q", the same whatever the number of stages */
  pl_segment_kind kind;
  size_t offset, rows, cols;  /* in elements; rows * cols elements; offset is a multiple of PL_ALIGN bytes */
  bool decay;                 /* takes weight decay */
  bool tied_copy;             /* the last stage's copy of a tied embedding: not counted in norms and parameter counts */
  double init_mean, init_std; /* x_0 ~ N(init_mean, init_std^2), drawn by (seed, name) */
} pl_segment;

typedef struct pl_layout {
  pl_segment *segments;
  size_t count;
  size_t size;      /* elements of a parameter array, padding included (padding stays 0) */
  size_t grad_size; /* elements of a gradient array: size, or more when a tied head in the same stage has an accumulator
                       of its own behind it */
} pl_layout;

/* Adds a segment at the next aligned offset. Used by models while they build their layouts. */
PL_MUST_CHECK pl_status pl_layout_add(pl_layout *l, const pl_segment *segment, pl_err *e);
void pl_layout_free(pl_layout *l);

/* Parameters (without padding and tied copies). */
size_t pl_layout_parameters(const pl_layout *l);

/* Draws x_0 of every segment into host memory x[size]; a tied copy draws what its original draws (same name). */
void pl_layout_init(const pl_layout *l, uint64_t seed, pl_real *x);

#endif
