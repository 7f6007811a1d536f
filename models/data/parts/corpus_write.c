#include <string.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "models/data/parts/corpus.h"
#include "models/data/parts/shard.h"

#define MAX_SHARD ((size_t)1 << 30)

/* The shard that is being filled. */
typedef struct writer {
  const char *prefix;
  unsigned char *buffer; /* header and tokens */
  size_t shard_tokens, filled, number, shards, total;
} writer;

/* Tokens of shard `number`: the last one takes the rest. */
static size_t shard_size(const writer *w) {
  return w->number + 1 < w->shards ? w->shard_tokens : w->total - w->shard_tokens * (w->shards - 1);
}

static pl_status flush_shard(writer *w, pl_err *e) {
  pl_str path = {0};
  pl_shard_write_header(w->buffer, (uint32_t)w->filled);
  pl_str_printf(&path, "%s_%s_%06zu.bin", w->prefix, w->number == 0 ? "val" : "train", w->number);
  pl_status st = pl_str_check(&path, e);
  if (st == PL_OK) st = pl_file_replace(pl_str_text(&path), w->buffer, PL_SHARD_HEADER + 2 * w->filled, e);
  pl_str_free(&path);
  w->number++;
  w->filled = 0;
  return st;
}

static pl_status write_text(writer *w, const pl_map *text, pl_err *e) {
  for (size_t i = 0; i < text->size; i++) {
    unsigned char *token = w->buffer + PL_SHARD_HEADER + 2 * w->filled;
    token[0] = text->bytes[i];
    token[1] = 0;
    w->filled++;
    if (w->filled < shard_size(w)) continue;
    pl_status st = flush_shard(w, e);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

/* Checks that a file is text and adds its size. */
static pl_status measure(const char *path, size_t *total, pl_err *e) {
  pl_corpus_facts facts;
  pl_status st = pl_corpus_describe(&path, 1, &facts, e);
  if (st != PL_OK) return st;
  if (strcmp(facts.format, "text") != 0)
    return pl_fail(e, PL_BAD, "\"%s\" is already %s; shards are written from text", path, facts.format);
  *total += facts.tokens;
  return PL_OK;
}

static pl_status plan(writer *w, const char *const *paths, size_t count, pl_err *e) {
  pl_status st = PL_OK;
  if (w->shard_tokens < 1 || w->shard_tokens > MAX_SHARD)
    return pl_fail(e, PL_BAD, "a shard of %zu tokens was asked for; 1 to %zu are allowed", w->shard_tokens, MAX_SHARD);
  for (size_t i = 0; i < count; i++) PL_TRY(measure(paths[i], &w->total, e));
  if (w->total <= w->shard_tokens)
    return pl_fail(
        e, PL_BAD,
        "the text has %zu bytes; the first shard of %zu is for validation and nothing would be left to train "
        "on, so give a smaller shard size",
        w->total, w->shard_tokens);
  size_t train = (w->total - w->shard_tokens + w->shard_tokens / 2) / w->shard_tokens;
  w->shards = 1 + (train > 0 ? train : 1);
  size_t largest = w->shard_tokens + w->shard_tokens / 2 + 1;
  PL_TRY(pl_alloc(PL_SHARD_HEADER + 2 * largest, 1, "shard", &w->buffer, e));
out:
  return st;
}

pl_status pl_corpus_write_shards(const char *const *paths, size_t count, const char *prefix, size_t shard_tokens,
                                 size_t *written, pl_err *e) {
  pl_status st = PL_OK;
  writer w = {.prefix = prefix, .shard_tokens = shard_tokens};
  pl_map text = {0};
  *written = 0;
  PL_TRY(plan(&w, paths, count, e));
  size_t left = w.total;
  for (size_t i = 0; i < count; i++) {
    PL_TRY(pl_map_file(paths[i], &text, e));
    if (text.size > left || (i + 1 == count && text.size < left)) {
      st = pl_fail(e, PL_FAIL, "\"%s\" or a file before it changed while it was being read", paths[i]);
      goto out;
    }
    left -= text.size;
    PL_TRY(write_text(&w, &text, e));
    pl_unmap(&text);
  }
out:
  *written = w.number;
  pl_unmap(&text);
  pl_free(w.buffer);
  return st;
}
