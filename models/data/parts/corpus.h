/* Looking at a corpus and writing it as token shards: `pipelag data FILE...`. */
#ifndef PL_MODELS_DATA_PARTS_CORPUS_H
#define PL_MODELS_DATA_PARTS_CORPUS_H

#include <stdint.h>

#include "core/base/status.h"

typedef struct pl_corpus_facts {
  const char *format;     /* "text", "llm.c uint16", "llm.c uint32", "nanoGPT uint16"; static */
  size_t files, bytes;    /* bytes: of the files, headers included */
  size_t tokens;          /* bytes of text count as one token each */
  size_t distinct;        /* different tokens seen */
  size_t largest;         /* highest token seen; a vocabulary must be above it */
  double unigram_entropy; /* nats per token: the loss of knowing the frequencies alone */
  uint64_t fingerprint;   /* hash of the tokens, file by file in this order; not the datasets' fingerprint, which also
                             covers the split */
} pl_corpus_facts;

/* Reads `count` files of one format. The format is llm.c by its magic, else nanoGPT when the name ends in ".bin", else
 * text. PL_BAD for a missing file, a bad header, files of different formats, and when there is not one token. */
PL_MUST_CHECK pl_status pl_corpus_describe(const char *const *paths, size_t count, pl_corpus_facts *out, pl_err *e);

/* Writes text files, one behind the other, as llm.c shards of byte tokens (magic 20240520, version 1): first
 * PREFIX_val_000000.bin, then PREFIX_train_000001.bin, ... of shard_tokens tokens each (1 to 2^30). A rest shorter than
 * half a shard goes into the last one. The shards are replaced atomically, one by one; *written counts them. PL_BAD for
 * files that are no text by the rule above and when the text is not longer than the validation shard. */
PL_MUST_CHECK pl_status pl_corpus_write_shards(const char *const *paths, size_t count, const char *prefix,
                                               size_t shard_tokens, size_t *written, pl_err *e);

#endif
