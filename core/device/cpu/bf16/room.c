#include "core/base/memory.h"
#include "core/device/cpu/bf16/bf16.h"

pl_status pl_bf16_room_new(bool tiles, pl_bf16_room **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_bf16_room *r = NULL;
  *out = NULL;
  if (!__builtin_cpu_supports("avx512bf16")) return pl_fail(e, PL_BAD, "this machine has no bf16 instructions");
  PL_TRY(pl_alloc(1, sizeof *r, "the blocks of bf16 products", &r, e));
  PL_TRY(pl_alloc(PL_BF16_A_WORDS, sizeof *r->a, "the blocks of bf16 products", &r->a, e));
  PL_TRY(pl_alloc(PL_BF16_B_WORDS, sizeof *r->b, "the blocks of bf16 products", &r->b, e));
  tiles = tiles && pl_bf16_tiles_allowed();
  r->multiply = tiles ? pl_bf16_by_tiles : pl_bf16_by_vectors;
  r->name = tiles ? "amx" : "avx512-bf16";
  *out = r;
  r = NULL;
out:
  pl_bf16_room_free(r);
  return st;
}

void pl_bf16_room_free(pl_bf16_room *r) {
  if (!r) return;
  pl_free(r->a);
  pl_free(r->b);
  pl_free(r);
}
