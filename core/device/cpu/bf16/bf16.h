/* Products of matrices rounded to bfloat16, by the instructions that the processor has for them. */
#ifndef PL_DEVICE_CPU_BF16_BF16_H
#define PL_DEVICE_CPU_BF16_BF16_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

/* c[m,n] = alpha * op(a) op(b) + beta * c, as pl_ops gemm. */
typedef struct pl_bf16_product {
  bool transpose_a, transpose_b;
  size_t m, n, k; /* k is not 0 */
  float alpha, beta;
  const float *a, *b;
  size_t lda, ldb;
  float *c;
  size_t ldc;
} pl_bf16_product;

/* Room for packed blocks. */
typedef struct pl_bf16_room {
  uint32_t *a, *b;
  void (*multiply)(const struct pl_bf16_room *r, const pl_bf16_product *p);
  const char *name; /* of the instructions */
} pl_bf16_room;

/* With the best instructions that the processor has, or without tiles. PL_BAD when it has none. */
PL_MUST_CHECK pl_status pl_bf16_room_new(bool tiles, pl_bf16_room **out, pl_err *e);
void pl_bf16_room_free(pl_bf16_room *r); /* NULL allowed */

enum { PL_BF16_A_WORDS = 1 << 16, PL_BF16_B_WORDS = 1 << 18 };

/* AVX512-BF16 (vdpbf16ps), and AMX (tdpbf16ps), which needs pl_bf16_tiles_allowed once in a process. */
void pl_bf16_by_vectors(const pl_bf16_room *r, const pl_bf16_product *p);
void pl_bf16_by_tiles(const pl_bf16_room *r, const pl_bf16_product *p);
bool pl_bf16_tiles_allowed(void); /* asks the system; false without AMX */

#endif
