/* Text of a stochastic language with known entropy, so that the lowest possible loss is known. */
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/train/dataset.h"
#include "models/data/parts/language.h"
#include "models/data/parts/windows.h"

typedef struct config {
  int64_t vocab, branch, order, language_seed;
} config;

static const pl_param params[] = {
    {.name = "vocab",
     .type = PL_INT,
     .offset = offsetof(config, vocab),
     .def = 64,
     .min = 2,
     .max = 65536,
     .help = "tokens of the language"},
    {.name = "branch",
     .type = PL_INT,
     .offset = offsetof(config, branch),
     .def = 4,
     .min = 1,
     .max = 256,
     .help = "tokens that can follow a state, the j-th with probability proportional to 1/j"},
    {.name = "order",
     .type = PL_INT,
     .offset = offsetof(config, order),
     .def = 2,
     .min = 1,
     .max = 2,
     .help = "tokens that the next one depends on: 2 needs attention to the token before"},
    {.name = "language_seed",
     .type = PL_INT,
     .offset = offsetof(config, language_seed),
     .def = 0,
     .min = 0,
     .max = 9007199254740992,
     .help = "draws the language's table and its validation text"},
    {.type = PL_END},
};

static pl_status check(const void *section, pl_err *e) {
  const config *c = section;
  if (c->branch <= c->vocab) return PL_OK;
  return pl_fail(e, PL_BAD, "branch is %lld, but may be at most vocab = %lld", (long long)c->branch,
                 (long long)c->vocab);
}

struct pl_dataset {
  pl_language language;
  uint64_t language_seed;
  size_t context, val_windows;
};

static void close_dataset(pl_dataset *d) {
  if (!d) return;
  pl_language_free(&d->language);
  pl_free(d);
}

static pl_status open_dataset(const void *section, const char *root, size_t context, int64_t val_tokens,
                              pl_dataset **out, pl_err *e) {
  (void)root;
  pl_status st = PL_OK;
  const config *c = section;
  pl_dataset *d = NULL;
  PL_TRY(pl_alloc(1, sizeof *d, "dataset", &d, e));
  d->language_seed = (uint64_t)c->language_seed;
  d->context = context;
  PL_TRY(pl_window_count(context, val_tokens, &d->val_windows, e));
  PL_TRY(pl_language_make((size_t)c->vocab, (size_t)c->branch, (size_t)c->order, d->language_seed, &d->language, e));
  *out = d;
  d = NULL;
out:
  close_dataset(d);
  return st;
}

static size_t vocab(const pl_dataset *d) { return d->language.vocab; }

static uint64_t fingerprint(const pl_dataset *d) {
  const pl_language *l = &d->language;
  size_t states = l->vocab * (l->order == 2 ? PL_LANGUAGE_CLASSES : 1);
  uint64_t table = pl_hash(l->successors, states * l->branch * sizeof *l->successors);
  return pl_hash_join(table, pl_hash_join(l->order, d->language_seed));
}

static double loss_floor(const pl_dataset *d) { return pl_language_entropy(&d->language); }

static void train_window(const pl_dataset *d, uint64_t data_seed, int64_t step, size_t index, int32_t *out) {
  pl_rng r = pl_window_rng(data_seed, step, index);
  pl_language_draw(&d->language, &r, d->context + 1, out);
}

static size_t val_windows(const pl_dataset *d) { return d->val_windows; }

static void val_window(const pl_dataset *d, size_t index, int32_t *out) {
  /* The table's rows have second counter word 0. */
  pl_rng r = pl_rng_at(d->language_seed, PL_STREAM_SYNTHETIC, index, 1);
  pl_language_draw(&d->language, &r, d->context + 1, out);
}

const pl_dataset_type pl_dataset_synthetic = {
    .base = {.name = "synthetic",
             .summary = "a random Markov language whose entropy, the lowest possible loss, is known",
             .source = "pipelag",
             .params = params,
             .config_size = sizeof(config),
             .check = check},
    .has_tokens = true,
    .open = open_dataset,
    .close = close_dataset,
    .vocab = vocab,
    .fingerprint = fingerprint,
    .loss_floor = loss_floor,
    .train_window = train_window,
    .val_windows = val_windows,
    .val_window = val_window,
};
