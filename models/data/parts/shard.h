/* Token files: llm.c / modded-nanogpt shards with their header, nanoGPT's raw uint16 files. */
#ifndef PL_MODELS_DATA_PARTS_SHARD_H
#define PL_MODELS_DATA_PARTS_SHARD_H

#include "models/data/parts/files.h"

/* llm.c: 256 little-endian int32 (1024 bytes): magic, version, token count, zeros; then the tokens. Magic 20240520,
 * version 1: uint16 tokens; magic 20240801, version 7: uint32 tokens. nanoGPT: uint16 tokens from the first byte. */
typedef enum pl_shard_format { PL_SHARD_AUTO, PL_SHARD_LLMC, PL_SHARD_NANOGPT } pl_shard_format;

enum { PL_SHARD_HEADER = 1024, PL_SHARD_MAGIC = 20240520, PL_SHARD_VERSION = 1 };

typedef struct pl_shard {
  pl_map map;
  const unsigned char *tokens; /* borrowed from map */
  size_t count;                /* tokens */
  size_t width;                /* bytes of a token: 2 or 4 */
  bool has_header;
} pl_shard;

/* Maps a file and checks every header field against the file's size. AUTO takes the known magics as llm.c, refuses
 * llm.c's evaluation and model files by name, and takes everything else as nanoGPT. PL_BAD names the file, the field,
 * the value seen and what is allowed. Released by pl_shard_close. */
PL_MUST_CHECK pl_status pl_shard_open(const char *path, pl_shard_format format, pl_shard *out, pl_err *e);
void pl_shard_close(pl_shard *s); /* {0} is allowed */

/* True when the file's first four bytes are the magic of any llm.c file. */
bool pl_shard_has_magic(const pl_map *m);

uint32_t pl_shard_token(const pl_shard *s, size_t index);

/* PL_BAD names the first token that is not below `vocab`, its position and `path`. Reads the whole shard. */
PL_MUST_CHECK pl_status pl_shard_check_tokens(const pl_shard *s, const char *path, size_t vocab, pl_err *e);

/* Fills the header of an llm.c shard of `count` uint16 tokens. */
void pl_shard_write_header(unsigned char header[PL_SHARD_HEADER], uint32_t count);

#endif
