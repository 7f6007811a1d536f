#include "core/base/hash.h"

#include <string.h>
#include <xxhash.h>

uint64_t pl_hash(const void *bytes, size_t count) { return XXH3_64bits(bytes, count); }

uint64_t pl_hash_text(const char *text) { return pl_hash(text, strlen(text)); }

uint64_t pl_hash_join(uint64_t a, uint64_t b) {
  const uint64_t pair[2] = {a, b};
  return pl_hash(pair, sizeof pair);
}

void pl_hash_hex(uint64_t hash, char out[PL_ID_SIZE]) {
  for (int i = PL_ID_LENGTH - 1; i >= 0; i--, hash >>= 4) out[i] = "0123456789abcdef"[hash & 15];
  out[PL_ID_LENGTH] = '\0';
}
