#include "models/data/parts/shard.h"

#include <string.h>

typedef struct known_magic {
  uint32_t magic, version;
  size_t width;      /* bytes of a token; 0: no token shard */
  const char *words; /* what such a file is */
} known_magic;

static const known_magic known[] = {
    {PL_SHARD_MAGIC, PL_SHARD_VERSION, 2, "an llm.c shard of uint16 tokens"},
    {20240801, 7, 4, "an llm.c shard of uint32 tokens"},
    {20240522, 0, 0, "an llm.c evaluation file"},
    {20240326, 0, 0, "an llm.c model checkpoint"},
};

static uint32_t read_u32(const unsigned char *p) {
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void write_u32(unsigned char *p, uint32_t value) {
  for (int i = 0; i < 4; i++) p[i] = (unsigned char)(value >> (8 * i));
}

static const known_magic *find_magic(const pl_map *m) {
  for (size_t i = 0; m->size >= 4 && i < sizeof known / sizeof *known; i++)
    if (read_u32(m->bytes) == known[i].magic) return &known[i];
  return NULL;
}

bool pl_shard_has_magic(const pl_map *m) { return find_magic(m) != NULL; }

static pl_status open_llmc(const char *path, const known_magic *kind, pl_shard *s, pl_err *e) {
  if (s->map.size < PL_SHARD_HEADER)
    return pl_fail(e, PL_BAD, "\"%s\" has %zu bytes, less than the %d bytes of an llm.c header", path, s->map.size,
                   PL_SHARD_HEADER);
  if (!kind)
    return pl_fail(e, PL_BAD, "\"%s\" starts with magic %u; llm.c shards start with %d (uint16) or 20240801 (uint32)",
                   path, (unsigned)read_u32(s->map.bytes), PL_SHARD_MAGIC);
  if (kind->width == 0)
    return pl_fail(e, PL_BAD, "\"%s\" is %s (magic %u), not a shard of tokens", path, kind->words,
                   (unsigned)kind->magic);
  uint32_t version = read_u32(s->map.bytes + 4), count = read_u32(s->map.bytes + 8);
  if (version != kind->version)
    return pl_fail(e, PL_BAD, "\"%s\" is %s of version %u; version %u is allowed", path, kind->words, (unsigned)version,
                   (unsigned)kind->version);
  if (count > INT32_MAX)
    return pl_fail(e, PL_BAD, "the header of \"%s\" says %d tokens; 0 to 2147483647 are allowed", path, (int)count);
  size_t size = PL_SHARD_HEADER + kind->width * count;
  if (s->map.size != size)
    return pl_fail(e, PL_BAD, "the header of \"%s\" says %u tokens, which is a file of %zu bytes, but it has %zu", path,
                   (unsigned)count, size, s->map.size);
  s->width = kind->width;
  s->count = count;
  s->tokens = s->map.bytes + PL_SHARD_HEADER;
  s->has_header = true;
  return PL_OK;
}

static pl_status open_nanogpt(const char *path, pl_shard *s, pl_err *e) {
  if (s->map.size % 2 != 0)
    return pl_fail(e, PL_BAD, "\"%s\" has %zu bytes; a nanoGPT file of uint16 tokens has an even number", path,
                   s->map.size);
  s->width = 2;
  s->count = s->map.size / 2;
  s->tokens = s->map.bytes;
  return PL_OK;
}

pl_status pl_shard_open(const char *path, pl_shard_format format, pl_shard *out, pl_err *e) {
  pl_status st = PL_OK;
  *out = (pl_shard){0};
  PL_TRY(pl_map_file(path, &out->map, e));
  const known_magic *kind = find_magic(&out->map);
  if (format == PL_SHARD_LLMC || (format == PL_SHARD_AUTO && kind))
    PL_TRY(open_llmc(path, kind, out, e));
  else
    PL_TRY(open_nanogpt(path, out, e));
out:
  if (st != PL_OK) pl_shard_close(out);
  return st;
}

void pl_shard_close(pl_shard *s) {
  pl_unmap(&s->map);
  *s = (pl_shard){0};
}

uint32_t pl_shard_token(const pl_shard *s, size_t index) {
  const unsigned char *p = s->tokens + s->width * index;
  return s->width == 4 ? read_u32(p) : (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

pl_status pl_shard_check_tokens(const pl_shard *s, const char *path, size_t vocab, pl_err *e) {
  for (size_t i = 0; i < s->count; i++) {
    uint32_t token = pl_shard_token(s, i);
    if (token >= vocab)
      return pl_fail(e, PL_BAD, "\"%s\": token %zu is %u; with data.vocab %zu tokens are 0 to %zu", path, i,
                     (unsigned)token, vocab, vocab - 1);
  }
  return PL_OK;
}

void pl_shard_write_header(unsigned char header[PL_SHARD_HEADER], uint32_t count) {
  memset(header, 0, PL_SHARD_HEADER);
  write_u32(header, PL_SHARD_MAGIC);
  write_u32(header + 4, PL_SHARD_VERSION);
  write_u32(header + 8, count);
}
