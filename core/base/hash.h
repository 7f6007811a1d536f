/* 64-bit hashes (XXH3) and their 16 hex digits. */
#ifndef PL_BASE_HASH_H
#define PL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { PL_ID_LENGTH = 16, PL_ID_SIZE = PL_ID_LENGTH + 1 };

uint64_t pl_hash(const void *bytes, size_t count);
uint64_t pl_hash_text(const char *text);
uint64_t pl_hash_join(uint64_t a, uint64_t b);         /* of the pair, order matters */
void pl_hash_hex(uint64_t hash, char out[PL_ID_SIZE]); /* 16 lower-case digits and NUL */

#endif
