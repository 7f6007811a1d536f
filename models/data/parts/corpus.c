#include "models/data/parts/corpus.h"

#include <math.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "models/data/parts/shard.h"

#define MAX_VOCAB ((size_t)1 << 24) /* bounds the table of counts */

/* One file of either kind; text is a shard whose tokens are one byte wide. */
static pl_status open_file(const char *path, pl_shard *out, const char **format, pl_err *e) {
  pl_status st = PL_OK;
  size_t length = strlen(path);
  bool bin = length >= 4 && strcmp(path + length - 4, ".bin") == 0;
  *out = (pl_shard){0};
  PL_TRY(pl_map_file(path, &out->map, e));
  if (bin || pl_shard_has_magic(&out->map)) {
    pl_shard_close(out);
    PL_TRY(pl_shard_open(path, PL_SHARD_AUTO, out, e));
    *format = !out->has_header ? "nanoGPT uint16" : out->width == 4 ? "llm.c uint32" : "llm.c uint16";
  } else {
    out->tokens = out->map.bytes;
    out->count = out->map.size;
    out->width = 1;
    *format = "text";
  }
out:
  return st;
}

static size_t token_at(const pl_shard *s, size_t i) { return s->width == 1 ? s->tokens[i] : pl_shard_token(s, i); }

/* How often each token occurs; grows with the largest one. */
typedef struct histogram {
  size_t *counts, size;
} histogram;

static pl_status count_tokens(const pl_shard *s, const char *path, histogram *h, pl_err *e) {
  pl_status st = PL_OK;
  for (size_t i = 0; i < s->count; i++) {
    size_t token = token_at(s, i);
    if (token >= h->size) {
      if (token >= MAX_VOCAB)
        return pl_fail(e, PL_BAD, "\"%s\": token %zu is %zu; tokens below %zu can be counted", path, i, token,
                       MAX_VOCAB);
      size_t larger = token + 1 > 2 * h->size ? token + 1 : 2 * h->size;
      PL_TRY(pl_grow(h->size, larger, sizeof *h->counts, "table of token counts", &h->counts, e));
      h->size = larger;
    }
    h->counts[token]++;
  }
out:
  return st;
}

static void summarise(const histogram *h, pl_corpus_facts *f) {
  for (size_t token = 0; token < h->size; token++) {
    if (h->counts[token] == 0) continue;
    double share = (double)h->counts[token] / (double)f->tokens;
    f->distinct++;
    f->largest = token;
    f->unigram_entropy -= share * log(share);
  }
}

pl_status pl_corpus_describe(const char *const *paths, size_t count, pl_corpus_facts *out, pl_err *e) {
  pl_status st = PL_OK;
  histogram h = {0};
  pl_shard s = {0};
  *out = (pl_corpus_facts){.files = count};
  for (size_t i = 0; i < count; i++) {
    const char *format;
    PL_TRY(open_file(paths[i], &s, &format, e));
    if (out->format && strcmp(out->format, format) != 0) {
      st = pl_fail(e, PL_BAD, "\"%s\" is %s, but the files before it are %s; describe them apart", paths[i], format,
                   out->format);
      goto out;
    }
    PL_TRY(count_tokens(&s, paths[i], &h, e));
    out->format = format;
    out->bytes += s.map.size;
    out->tokens += s.count;
    out->fingerprint = pl_hash_join(out->fingerprint, pl_hash(s.tokens, s.count * s.width));
    pl_shard_close(&s);
  }
  if (out->tokens == 0) {
    st = pl_fail(e, PL_BAD, "there is not one token in %zu file%s", count, count == 1 ? "" : "s");
    goto out;
  }
  summarise(&h, out);
out:
  pl_shard_close(&s);
  pl_free(h.counts);
  return st;
}
