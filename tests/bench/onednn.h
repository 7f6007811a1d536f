/* oneDNN as a cross-check of products, where the build has it (PL_HAVE_ONEDNN). Set OMP_NUM_THREADS=1. */
#ifndef PL_TESTS_BENCH_ONEDNN_H
#define PL_TESTS_BENCH_ONEDNN_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/real.h"

bool bench_onednn_is_there(void);
void bench_onednn_sgemm(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, const pl_real *a, size_t lda,
                        const pl_real *b, size_t ldb, float beta, pl_real *c, size_t ldc);

/* A product with bf16 inputs, as they are then (no conversion is timed), and an fp32 result; with arrays of its own.
 * NULL: not there. */
void *bench_onednn_low(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k);
void bench_onednn_run(void *product);
void bench_onednn_free(void *product); /* NULL allowed */

#endif
