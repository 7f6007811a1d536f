/* Any text files as bytes: vocabulary 256. Without validation files of its own, the training text is cut into blocks
 * and every so many blocks one is kept for validation. */
#include <math.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/train/dataset.h"
#include "models/data/parts/files.h"
#include "models/data/parts/windows.h"

typedef struct config {
  pl_text_list train, val;
  int64_t val_block;
  double val_fraction;
  int64_t val_index;
} config;

static const pl_param params[] = {
    {.name = "train",
     .type = PL_TEXT_LIST,
     .offset = offsetof(config, train),
     .required = true,
     .help = "text files or glob patterns, read as one text in this order"},
    {.name = "val",
     .type = PL_TEXT_LIST,
     .offset = offsetof(config, val),
     .help = "text files or glob patterns for validation; empty: blocks of the training text"},
    {.name = "val_block",
     .type = PL_INT,
     .offset = offsetof(config, val_block),
     .def = 16384,
     .min = 1,
     .max = 1 << 30,
     .help = "bytes of a block of the split"},
    {.name = "val_fraction",
     .type = PL_REAL,
     .offset = offsetof(config, val_fraction),
     .def = 0.02,
     .min = 0,
     .max = 0.5,
     .above_min = true,
     .help = "share of the blocks that is validation: one in round(1/val_fraction)"},
    {.name = "val_index",
     .type = PL_INT,
     .offset = offsetof(config, val_index),
     .def = 7,
     .min = 0,
     .max = 1 << 30,
     .help = "block i is validation when i mod round(1/val_fraction) equals this"},
    {.type = PL_END},
};

/* One block in this many is validation. */
static int64_t split_period(const config *c) { return llround(1 / c->val_fraction); }

static pl_status check(const void *section, pl_err *e) {
  const config *c = section;
  if (c->val_index < split_period(c)) return PL_OK;
  return pl_fail(e, PL_BAD, "val_index is %lld, but with val_fraction %g it must be below %lld",
                 (long long)c->val_index, c->val_fraction, (long long)split_period(c));
}

struct pl_dataset {
  unsigned char *train, *val;
  size_t train_size, val_size, context, val_windows;
  uint64_t fingerprint;
};

static void close_dataset(pl_dataset *d) {
  if (!d) return;
  pl_free(d->train);
  pl_free(d->val);
  pl_free(d);
}

/* Bytes of all files together. */
static pl_status measure(const pl_files *files, size_t *total, pl_err *e) {
  pl_map map;
  *total = 0;
  for (size_t i = 0; i < files->count; i++) {
    pl_status st = pl_map_file(files->paths[i], &map, e);
    if (st != PL_OK) return st;
    *total += map.size;
    pl_unmap(&map);
  }
  return PL_OK;
}

/* Reads the files one behind the other; *text is released by pl_free. */
static pl_status read_text(const pl_files *files, unsigned char **text, size_t *size, pl_err *e) {
  pl_status st = PL_OK;
  pl_map map = {0};
  size_t total;
  PL_TRY(measure(files, &total, e));
  PL_TRY(pl_alloc(total, 1, "text", text, e));
  for (size_t i = 0; i < files->count; i++) {
    PL_TRY(pl_map_file(files->paths[i], &map, e));
    if (map.size > total - *size) {
      st = pl_fail(e, PL_FAIL, "\"%s\" grew while it was being read", files->paths[i]);
      goto out;
    }
    if (map.size > 0) memcpy(*text + *size, map.bytes, map.size);
    *size += map.size;
    pl_unmap(&map);
  }
out:
  pl_unmap(&map);
  return st;
}

/* Moves the validation blocks out of d->train. */
static pl_status split_blocks(const config *c, pl_dataset *d, pl_err *e) {
  pl_status st = PL_OK;
  size_t block = (size_t)c->val_block, period = (size_t)split_period(c), chosen = (size_t)c->val_index;
  size_t blocks = (d->train_size + block - 1) / block, kept = 0;
  PL_TRY(pl_alloc(blocks / period + 1, block, "validation text", &d->val, e));
  for (size_t i = 0; i < blocks; i++) {
    size_t from = i * block, length = i + 1 < blocks ? block : d->train_size - from;
    if (i % period == chosen) {
      memcpy(d->val + d->val_size, d->train + from, length);
      d->val_size += length;
    } else {
      memmove(d->train + kept, d->train + from, length);
      kept += length;
    }
  }
  d->train_size = kept;
out:
  return st;
}

static pl_status check_size(const char *split, const pl_files *files, size_t size, size_t context, pl_err *e) {
  if (pl_window_positions(size, context) > 0) return PL_OK;
  return pl_fail(e, PL_BAD, "the %s text of \"%s\"%s has %zu bytes, less than one window of context + 1 = %zu", split,
                 files->paths[0], files->count > 1 ? " and further files" : "", size, context + 1);
}

static pl_status check_sizes(const config *c, const pl_files *train, const pl_files *val, const pl_dataset *d,
                             pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(check_size("training", train, d->train_size, d->context, e));
  if (c->val.count == 0 && d->val_size == 0) {
    st = pl_fail(e, PL_BAD,
                 "the text of \"%s\" has %zu bytes, too few for a validation block (block i of %lld bytes with i mod "
                 "%lld = %lld); "
                 "give data.val or a smaller data.val_block",
                 train->paths[0], d->train_size, (long long)c->val_block, (long long)split_period(c),
                 (long long)c->val_index);
    goto out;
  }
  PL_TRY(check_size("validation", val->count > 0 ? val : train, d->val_size, d->context, e));
  PL_TRY(pl_window_check(pl_window_positions(d->val_size, d->context), d->context, d->val_windows, e));
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
  d->context = context;
  PL_TRY(pl_window_count(context, val_tokens, &d->val_windows, e));
  PL_TRY(read_text(&train, &d->train, &d->train_size, e));
  if (c->val.count > 0)
    PL_TRY(read_text(&val, &d->val, &d->val_size, e));
  else
    PL_TRY(split_blocks(c, d, e));
  PL_TRY(check_sizes(c, &train, &val, d, e));
  d->fingerprint = pl_hash_join(pl_hash(d->train, d->train_size), pl_hash(d->val, d->val_size));
  *out = d;
  d = NULL;
out:
  close_dataset(d);
  pl_files_free(&train);
  pl_files_free(&val);
  return st;
}

static size_t vocab(const pl_dataset *d) {
  (void)d;
  return 256;
}

static uint64_t fingerprint(const pl_dataset *d) { return d->fingerprint; }

static double loss_floor(const pl_dataset *d) {
  (void)d;
  return (double)NAN;
}

static void copy_window(const pl_dataset *d, const unsigned char *from, int32_t *out) {
  for (size_t i = 0; i <= d->context; i++) out[i] = from[i];
}

static void train_window(const pl_dataset *d, uint64_t data_seed, int64_t step, size_t index, int32_t *out) {
  pl_rng r = pl_window_rng(data_seed, step, index);
  copy_window(d, d->train + pl_rng_below(&r, pl_window_positions(d->train_size, d->context)), out);
}

static size_t val_windows(const pl_dataset *d) { return d->val_windows; }

static void val_window(const pl_dataset *d, size_t index, int32_t *out) {
  copy_window(d, d->val + pl_window_spaced(pl_window_positions(d->val_size, d->context), d->val_windows, index), out);
}

const pl_dataset_type pl_dataset_bytes = {
    .base = {.name = "bytes",
             .summary = "any text files, one token per byte",
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
