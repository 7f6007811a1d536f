#include <cblas.h>
#include <stdio.h>

#include "core/device/cpu/cpu.h"

#ifdef PL_F64
#define GEMM cblas_dgemm
#else
#define GEMM cblas_sgemm
#endif

/* An empty sum still scales c; the BLAS would refuse the leading dimensions that come with it. */
static void scale_rows(size_t m, size_t n, pl_real beta, pl_real *c, size_t ldc) {
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < n; j++) c[i * ldc + j] = beta != 0 ? beta * c[i * ldc + j] : 0; /* 0 must not read c */
}

void pl_cpu_gemm(pl_device *d, bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, pl_real alpha,
                 const pl_real *a, size_t lda, const pl_real *b, size_t ldb, pl_real beta, pl_real *c, size_t ldc) {
  (void)d;
  if (m == 0 || n == 0) return;
  if (k == 0) {
    scale_rows(m, n, beta, c, ldc);
    return;
  }
  GEMM(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans, transpose_b ? CblasTrans : CblasNoTrans, (int)m, (int)n,
       (int)k, alpha, a, (int)lda, b, (int)ldb, beta, c, (int)ldc);
}

void pl_blas_start(char *description, size_t size) {
  char name[32] = "BLAS", version[32] = "";
  openblas_set_num_threads(1);
  if (sscanf(openblas_get_config(), "%31s %31s", name, version) != 2) version[0] = '\0';
  snprintf(description, size, "%s %s %s", name, version, openblas_get_corename());
}
