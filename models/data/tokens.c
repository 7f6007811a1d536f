/* Shards of tokens made by other tools. No window crosses the border between two shards. */
#include <math.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/train/dataset.h"
#include "models/data/parts/shard.h"
#include "models/data/parts/windows.h"

typedef struct config {
  pl_text_list train, val;
  int64_t vocab;
  int format; /* pl_shard_format */
} config;

static const char *const formats[] = {"auto", "llmc", "nanogpt", NULL};

static const pl_param params[] = {
    {.name = "train",
     .type = PL_TEXT_LIST,
     .offset = offsetof(config, train),
     .required = true,
     .help = "shards or glob patterns"},
    {.name = "val",
     .type = PL_TEXT_LIST,
     .offset = offsetof(config, val),
     .required = true,
     .help = "shards or glob patterns for validation"},
    {.name = "vocab",
     .type = PL_INT,
     .offset = offsetof(config, vocab),
     .def = 50304,
     .min = 2,
     .max = 1 << 24,
     .help = "vocabulary; every token must be below (50304: GPT-2's 50257, padded)"},
    {.name = "format",
     .type = PL_CHOICE,
     .offset = offsetof(config, format),
     .choices = formats,
     .help = "auto (by magic), llmc (with header) or nanogpt (raw uint16)"},
    {.type = PL_END},
};

/* The shards of one split. */
typedef struct split {
  pl_shard *shards;
  size_t count;
  size_t *first; /* [count + 1]: window positions in the shards before this one */
} split;

struct pl_dataset {
  split train, val;
  size_t vocab, context, val_windows;
  uint64_t fingerprint;
};

static size_t positions(const split *s) { return s->first[s->count]; }

static void close_split(split *s) {
  for (size_t i = 0; i < s->count; i++) pl_shard_close(&s->shards[i]);
  pl_free(s->shards);
  pl_free(s->first);
}

static void close_dataset(pl_dataset *d) {
  if (!d) return;
  close_split(&d->train);
  close_split(&d->val);
  pl_free(d);
}

static pl_status open_shard(const config *c, const char *path, size_t context, pl_shard *s, pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(pl_shard_open(path, (pl_shard_format)c->format, s, e));
  PL_TRY(pl_shard_check_tokens(s, path, (size_t)c->vocab, e));
  if (pl_window_positions(s->count, context) == 0)
    st = pl_fail(e, PL_BAD, "\"%s\" has %zu tokens, less than one window of context + 1 = %zu", path, s->count,
                 context + 1);
out:
  return st;
}

static pl_status open_split(const config *c, const pl_files *files, pl_dataset *d, split *s, pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(pl_alloc(files->count, sizeof *s->shards, "list of shards", &s->shards, e));
  s->count = files->count;
  PL_TRY(pl_alloc(files->count + 1, sizeof *s->first, "list of shards", &s->first, e));
  for (size_t i = 0; i < s->count; i++) {
    pl_shard *shard = &s->shards[i];
    PL_TRY(open_shard(c, files->paths[i], d->context, shard, e));
    s->first[i + 1] = s->first[i] + pl_window_positions(shard->count, d->context);
    d->fingerprint = pl_hash_join(d->fingerprint, pl_hash(shard->tokens, shard->count * shard->width));
  }
out:
  return st;
}

static pl_status open_dataset(const void *section, const char *root, size_t context, int64_t val_tokens,
                              pl_dataset **out, pl_err *e) {
  pl_status st = PL_OK;
  const config *c = section;
  pl_files train = {0}, val = {0};
  pl_dataset *d = NULL;
  PL_TRY(pl_files_add(&c->train, root, "data.train", &train, e));
  PL_TRY(pl_files_add(&c->val, root, "data.val", &val, e));
  PL_TRY(pl_files_check_distinct(&train, &val, e));
  PL_TRY(pl_alloc(1, sizeof *d, "dataset", &d, e));
  d->vocab = (size_t)c->vocab;
  d->context = context;
  PL_TRY(pl_window_count(context, val_tokens, &d->val_windows, e));
  PL_TRY(open_split(c, &train, d, &d->train, e));
  PL_TRY(open_split(c, &val, d, &d->val, e));
  PL_TRY(pl_window_check(positions(&d->val), context, d->val_windows, e));
  *out = d;
  d = NULL;
out:
  close_dataset(d);
  pl_files_free(&train);
  pl_files_free(&val);
  return st;
}

static size_t vocab(const pl_dataset *d) { return d->vocab; }

static uint64_t fingerprint(const pl_dataset *d) { return d->fingerprint; }

static double loss_floor(const pl_dataset *d) {
  (void)d;
  return (double)NAN;
}

/* The window at a position counted over all shards. */
static void copy_window(const pl_dataset *d, const split *s, size_t position, int32_t *out) {
  size_t low = 0, high = s->count;
  while (high - low > 1) {
    size_t middle = low + (high - low) / 2;
    if (s->first[middle] <= position)
      low = middle;
    else
      high = middle;
  }
  size_t start = position - s->first[low];
  for (size_t i = 0; i <= d->context; i++) out[i] = (int32_t)pl_shard_token(&s->shards[low], start + i);
}

/* Every position of every shard is equally likely, so a shard is drawn by the number of its windows. */
static void train_window(const pl_dataset *d, uint64_t data_seed, int64_t step, size_t index, int32_t *out) {
  pl_rng r = pl_window_rng(data_seed, step, index);
  copy_window(d, &d->train, pl_rng_below(&r, positions(&d->train)), out);
}

static size_t val_windows(const pl_dataset *d) { return d->val_windows; }

static void val_window(const pl_dataset *d, size_t index, int32_t *out) {
  copy_window(d, &d->val, pl_window_spaced(positions(&d->val), d->val_windows, index), out);
}

const pl_dataset_type pl_dataset_tokens = {
    .base = {.name = "tokens",
             .summary = "token shards of llm.c and modded-nanogpt, raw uint16 files of nanoGPT",
             .source = "karpathy/llm.c dev/data/data_common.py; karpathy/nanoGPT data/",
             .params = params,
             .config_size = sizeof(config)},
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
