/* A stochastic language of known entropy: a Markov chain with a fixed random table.
 *
 * The next token is one of `branch` distinct successors of the state, the j-th (from 0) with probability proportional
 * to 1/(j+1). The state is the current token (order 1), or the current token and the predecessor's class, its token mod
 * PL_LANGUAGE_CLASSES (order 2; the first token of a text has token 0 as predecessor). Every state has the same
 * probabilities, so the entropy of each token given its past is exactly that of the probabilities. */
#ifndef PL_MODELS_DATA_PARTS_LANGUAGE_H
#define PL_MODELS_DATA_PARTS_LANGUAGE_H

#include "core/base/rng.h"
#include "core/base/status.h"

enum { PL_LANGUAGE_CLASSES = 4 };

typedef struct pl_language {
  size_t vocab, branch, order;
  int32_t *successors; /* [states][branch] */
  double *cumulative;  /* [branch], last one 1 */
} pl_language;

/* Draws the table by (seed, state); 1 <= branch <= vocab, order 1 or 2. Released by pl_language_free. */
PL_MUST_CHECK pl_status pl_language_make(size_t vocab, size_t branch, size_t order, uint64_t seed, pl_language *out,
                                         pl_err *e);
void pl_language_free(pl_language *l);

/* Nats per token. */
double pl_language_entropy(const pl_language *l);

/* Probability of `next` after `current` with `previous` before it. */
double pl_language_probability(const pl_language *l, int32_t previous, int32_t current, int32_t next);

/* Writes a text of `count` tokens; its first token is uniform over the vocabulary. */
void pl_language_draw(const pl_language *l, pl_rng *r, size_t count, int32_t *out);

#endif
