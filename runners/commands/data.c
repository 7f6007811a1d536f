/* pipelag data FILE...: describes a corpus, and writes it as token shards. */
#include <inttypes.h>
#include <stdio.h>

#include "core/base/hash.h"
#include "models/data/parts/corpus.h"
#include "runners/command.h"

static pl_status describe(const pl_options *o, pl_err *e) {
  pl_corpus_facts f;
  pl_status st = pl_corpus_describe(o->args, o->arg_count, &f, e);
  if (st != PL_OK) return st;
  char fingerprint[PL_ID_SIZE];
  pl_hash_hex(f.fingerprint, fingerprint);
  if (o->json) {
    printf("{\"format\":\"%s\",\"files\":%zu,\"bytes\":%zu,\"tokens\":%zu,\"distinct\":%zu,\"largest\":%zu,"
           "\"unigram_entropy\":%.6f,\"fingerprint\":\"%s\"}\n",
           f.format, f.files, f.bytes, f.tokens, f.distinct, f.largest, f.unigram_entropy, fingerprint);
    return PL_OK;
  }
  printf("format           %s\nfiles            %zu\nbytes            %zu\ntokens           %zu\n", f.format, f.files,
         f.bytes, f.tokens);
  printf("distinct tokens  %zu (largest %zu)\nunigram entropy  %.4f nats/token\nfingerprint      %s\n", f.distinct,
         f.largest, f.unigram_entropy, fingerprint);
  return PL_OK;
}

static pl_status run(const pl_options *o, pl_err *e) {
  pl_status st = describe(o, e);
  if (st != PL_OK || o->prefix == NULL) return st;
  size_t written = 0;
  st = pl_corpus_write_shards(o->args, o->arg_count, o->prefix, (size_t)o->shard_tokens, &written, e);
  if (st == PL_OK) printf("%zu shards: %s_val_000000.bin, %s_train_000001.bin ...\n", written, o->prefix, o->prefix);
  return st;
}

const pl_command pl_command_data = {.name = "data",
                                    .arguments = "FILE...",
                                    .summary =
                                        "Describe a corpus (text, llm.c or nanoGPT shards); -w writes llm.c shards",
                                    .options = "Jwt",
                                    .min_args = 1,
                                    .max_args = PL_MAX_ARGS,
                                    .run = run};
