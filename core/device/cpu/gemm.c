#include <cblas.h>
#include <stdio.h>

#include "core/device/cpu/cpu.h"
#ifdef PL_HAVE_BF16
#include "core/device/cpu/bf16/bf16.h"
#endif

#ifdef PL_F64
#define GEMM cblas_dgemm
#define SYRK cblas_dsyrk
#else
#define GEMM cblas_sgemm
#define SYRK cblas_ssyrk
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

void pl_cpu_gemm_low(pl_device *d, bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, pl_real alpha,
                     const pl_real *a, size_t lda, const pl_real *b, size_t ldb, pl_real beta, pl_real *c, size_t ldc) {
#ifdef PL_HAVE_BF16
  if (d->precision == PL_PRECISION_BF16 && k > 0) {
    const pl_bf16_product p = {.transpose_a = transpose_a,
                               .transpose_b = transpose_b,
                               .m = m,
                               .n = n,
                               .k = k,
                               .alpha = alpha,
                               .beta = beta,
                               .a = a,
                               .b = b,
                               .lda = lda,
                               .ldb = ldb,
                               .c = c,
                               .ldc = ldc};
    const pl_bf16_room *room = ((const pl_cpu_state *)d->state)->bf16;
    room->multiply(room, &p);
    return;
  }
#endif
  pl_cpu_gemm(d, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/* By tiles that stay in the cache. */
void pl_cpu_mirror(size_t first, size_t end, pl_real *c, size_t ldc) {
  enum { TILE = 32 };
  for (size_t i0 = first; i0 < end; i0 += TILE)
    for (size_t j0 = 0; j0 < i0 + TILE; j0 += TILE)
      for (size_t i = i0; i < end && i < i0 + TILE; i++)
        for (size_t j = j0; j < i && j < j0 + TILE; j++) c[i * ldc + j] = c[j * ldc + i];
}

void pl_cpu_syrk(pl_device *d, bool transpose, size_t n, size_t k, pl_real alpha, const pl_real *a, size_t lda,
                 pl_real beta, pl_real *c, size_t ldc) {
  (void)d;
  if (n == 0) return;
  if (k == 0) {
    scale_rows(n, n, beta, c, ldc);
    return;
  }
  SYRK(CblasRowMajor, CblasUpper, transpose ? CblasTrans : CblasNoTrans, (int)n, (int)k, alpha, a, (int)lda, beta, c,
       (int)ldc);
  pl_cpu_mirror(0, n, c, ldc);
}

void pl_blas_start(char *description, size_t size) {
  char name[32] = "BLAS", version[32] = "";
  openblas_set_num_threads(1);
  if (sscanf(openblas_get_config(), "%31s %31s", name, version) != 2) version[0] = '\0';
  snprintf(description, size, "%s %s %s", name, version, openblas_get_corename());
}
