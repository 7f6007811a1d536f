#include "models/data/parts/language.h"

#include <math.h>

#include "core/base/memory.h"

static size_t state(const pl_language *l, int32_t previous, int32_t current) {
  size_t class = l->order == 2 ? (size_t)previous % PL_LANGUAGE_CLASSES : 0;
  return class * l->vocab + (size_t)current;
}

static double share(const pl_language *l, size_t j) { return l->cumulative[j] - (j > 0 ? l->cumulative[j - 1] : 0); }

/* The first `branch` places of a shuffle of the vocabulary. */
static void draw_successors(const pl_language *l, uint64_t seed, size_t row, int32_t *shuffle, int32_t *out) {
  pl_rng r = pl_rng_at(seed, PL_STREAM_SYNTHETIC, row, 0);
  for (size_t i = 0; i < l->vocab; i++) shuffle[i] = (int32_t)i;
  for (size_t j = 0; j < l->branch; j++) {
    size_t other = j + pl_rng_below(&r, l->vocab - j);
    int32_t token = shuffle[other];
    shuffle[other] = shuffle[j];
    out[j] = token;
  }
}

static void fill_probabilities(pl_language *l) {
  double sum = 0, total = 0;
  for (size_t j = 0; j < l->branch; j++) total += 1 / (double)(j + 1);
  for (size_t j = 0; j < l->branch; j++) {
    sum += 1 / (double)(j + 1);
    l->cumulative[j] = sum / total;
  }
}

pl_status pl_language_make(size_t vocab, size_t branch, size_t order, uint64_t seed, pl_language *out, pl_err *e) {
  pl_status st = PL_OK;
  size_t states = order == 2 ? vocab * PL_LANGUAGE_CLASSES : vocab;
  int32_t *shuffle = NULL;
  *out = (pl_language){.vocab = vocab, .branch = branch, .order = order};
  PL_TRY(pl_alloc(states, branch * sizeof *out->successors, "table of the synthetic language", &out->successors, e));
  PL_TRY(pl_alloc(branch, sizeof *out->cumulative, "table of the synthetic language", &out->cumulative, e));
  PL_TRY(pl_alloc(vocab, sizeof *shuffle, "table of the synthetic language", &shuffle, e));
  for (size_t row = 0; row < states; row++) draw_successors(out, seed, row, shuffle, out->successors + row * branch);
  fill_probabilities(out);
out:
  pl_free(shuffle);
  if (st != PL_OK) pl_language_free(out);
  return st;
}

void pl_language_free(pl_language *l) {
  pl_free(l->successors);
  pl_free(l->cumulative);
  *l = (pl_language){0};
}

double pl_language_entropy(const pl_language *l) {
  double entropy = 0;
  for (size_t j = 0; j < l->branch; j++) entropy -= share(l, j) * log(share(l, j));
  return entropy;
}

double pl_language_probability(const pl_language *l, int32_t previous, int32_t current, int32_t next) {
  const int32_t *row = l->successors + state(l, previous, current) * l->branch;
  for (size_t j = 0; j < l->branch; j++)
    if (row[j] == next) return share(l, j);
  return 0;
}

void pl_language_draw(const pl_language *l, pl_rng *r, size_t count, int32_t *out) {
  int32_t previous = 0, current = (int32_t)pl_rng_below(r, l->vocab);
  for (size_t i = 0; i < count; i++) {
    out[i] = current;
    double u = pl_rng_uniform(r);
    size_t j = 0;
    while (j + 1 < l->branch && u >= l->cumulative[j]) j++;
    int32_t next = l->successors[state(l, previous, current) * l->branch + j];
    previous = current;
    current = next;
  }
}
