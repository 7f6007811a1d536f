/* How a model's layers are split over stages, and the layout of each stage's parameters. */
#ifndef PL_MODELS_PARTS_STAGES_H
#define PL_MODELS_PARTS_STAGES_H

#include "core/train/model.h"

typedef struct pl_stages {
  size_t count;
  size_t first[PL_MAX_STAGES + 1]; /* stage p owns layers first[p] .. first[p+1]-1 */
  pl_layout layouts[PL_MAX_STAGES];
} pl_stages;

/* Copies the split of `env`; the layouts are empty. PL_BAD for a number of stages outside 1 .. PL_MAX_STAGES. */
PL_MUST_CHECK pl_status pl_stages_start(const pl_model_env *env, pl_stages *out, pl_err *e);
void pl_stages_free(pl_stages *s);

static inline bool pl_stage_is_last(const pl_stages *s, size_t stage) { return stage + 1 == s->count; }

/* Adds a segment; weight decay follows the kind (not for norms and biases). *offset: where it was placed. */
PL_MUST_CHECK pl_status pl_segment_place(pl_layout *l, const pl_segment *segment, size_t *offset, pl_err *e);

/* A segment's name from up to three parts, "a" or "a.b" or "a.b.c" (NULL parts are left out), and its kind and size.
 */
pl_segment pl_segment_named(const char *a, const char *b, const char *c, pl_segment_kind kind, size_t rows,
                            size_t cols);

/* Frees device memory; NULL allowed. */
static inline void pl_device_release(pl_device *d, void *p) {
  if (p != NULL) d->ops->free(d, p);
}

/* The number of classes: `wanted`, or the dataset's when 0. PL_BAD when the dataset has more, or both are 0. */
PL_MUST_CHECK pl_status pl_model_vocab(int64_t wanted, const pl_model_env *env, size_t *out, pl_err *e);

#endif
