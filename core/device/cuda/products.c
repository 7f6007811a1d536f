/* cuBLASLt stores by columns: what it calls A, B and C are the transposes of our b, a and c, so that c = a b is its C =
 * A B without moving anything. A product's plan, the algorithm with it, is made when the product is first asked for and
 * kept: the same one for the same shape, so that bits repeat. */
#include "core/device/cuda/products.h"

#include <cublasLt.h>
#include <string.h>

#include "core/base/memory.h"

enum { WORKSPACE = 32 << 20, PLANS = 512, ALIGNED = 256 };

typedef struct product {
  bool transpose_a, transpose_b, low;
  unsigned align_a, align_b, align_c; /* bytes */
  size_t m, n, k, lda, ldb, ldc;
} product;

typedef struct plan {
  product of;
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t a, b, c; /* cuBLASLt's */
  cublasLtMatmulAlgo_t algorithm;
} plan;

typedef struct pl_cublas {
  pl_device *device;
  cublasLtHandle_t handle;
  void *workspace;
  plan plans[PLANS]; /* the oldest goes when all are taken */
  size_t made;
} pl_cublas;

static pl_status made(cublasStatus_t code, const char *what, pl_err *e) {
  return code == CUBLAS_STATUS_SUCCESS ? PL_OK
                                       : pl_fail(e, PL_FAIL, "cublas: %s: %s", what, cublasLtGetStatusString(code));
}

pl_status pl_cublas_open(pl_device *d, struct pl_cublas **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_cublas *b = NULL;
  PL_TRY(pl_alloc(1, sizeof *b, "cuBLAS", &b, e));
  b->device = d;
  PL_TRY(made(cublasLtCreate(&b->handle), "starting", e));
  if (cudaMalloc(&b->workspace, WORKSPACE) != cudaSuccess)
    PL_TRY(pl_fail(e, PL_FAIL, "cuda: out of memory: cuBLAS needs %d MiB", WORKSPACE >> 20));
  *out = b;
  b = NULL;
out:
  pl_cublas_close(b);
  return st;
}

static void drop(plan *p) {
  if (p->a) (void)cublasLtMatrixLayoutDestroy(p->a);
  if (p->b) (void)cublasLtMatrixLayoutDestroy(p->b);
  if (p->c) (void)cublasLtMatrixLayoutDestroy(p->c);
  if (p->operation) (void)cublasLtMatmulDescDestroy(p->operation);
  memset(p, 0, sizeof *p);
}

void pl_cublas_close(struct pl_cublas *b) {
  if (!b) return;
  for (size_t i = 0; i < PLANS; i++) drop(&b->plans[i]);
  if (b->workspace) (void)cudaFree(b->workspace);
  if (b->handle) (void)cublasLtDestroy(b->handle);
  pl_free(b);
}

static pl_status transposes(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t which, bool transpose, pl_err *e) {
  const cublasOperation_t value = transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
  return made(cublasLtMatmulDescSetAttribute(d, which, &value, sizeof value), "a product", e);
}

/* A matrix that we store as rows x cols. */
static pl_status stored(cublasLtMatrixLayout_t *out, cudaDataType type, size_t rows, size_t cols, size_t ld,
                        pl_err *e) {
  return made(cublasLtMatrixLayoutCreate(out, type, cols, rows, (int64_t)ld), "a matrix", e);
}

static pl_status prefer(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t which, unsigned value,
                        pl_err *e) {
  return made(cublasLtMatmulPreferenceSetAttribute(p, which, &value, sizeof value), "a preference", e);
}

static pl_status choose(pl_cublas *b, plan *p, pl_err *e) {
  pl_status st = PL_OK;
  cublasLtMatmulPreference_t preference = NULL;
  cublasLtMatmulHeuristicResult_t found;
  const size_t workspace = WORKSPACE;
  int count = 0;
  PL_TRY(made(cublasLtMatmulPreferenceCreate(&preference), "a preference", e));
  PL_TRY(made(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                                   sizeof workspace),
              "a preference", e));
  PL_TRY(prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, p->of.align_b, e));
  PL_TRY(prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, p->of.align_a, e));
  PL_TRY(prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, p->of.align_c, e));
  PL_TRY(prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, p->of.align_c, e));
  PL_TRY(made(
      cublasLtMatmulAlgoGetHeuristic(b->handle, p->operation, p->a, p->b, p->c, p->c, preference, 1, &found, &count),
      "choosing an algorithm", e));
  if (count < 1) PL_TRY(pl_fail(e, PL_FAIL, "cublas: no algorithm for this product"));
  p->algorithm = found.algo;
out:
  if (preference) (void)cublasLtMatmulPreferenceDestroy(preference);
  return st;
}

static pl_status make(pl_cublas *b, const product *q, plan *p, pl_err *e) {
  pl_status st = PL_OK;
  const cudaDataType inputs = q->low ? CUDA_R_16BF : CUDA_R_32F;
  p->of = *q;
  PL_TRY(made(cublasLtMatmulDescCreate(&p->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a product", e));
  PL_TRY(transposes(p->operation, CUBLASLT_MATMUL_DESC_TRANSA, q->transpose_b, e));
  PL_TRY(transposes(p->operation, CUBLASLT_MATMUL_DESC_TRANSB, q->transpose_a, e));
  PL_TRY(stored(&p->a, inputs, q->transpose_b ? q->n : q->k, q->transpose_b ? q->k : q->n, q->ldb, e));
  PL_TRY(stored(&p->b, inputs, q->transpose_a ? q->k : q->m, q->transpose_a ? q->m : q->k, q->lda, e));
  PL_TRY(stored(&p->c, CUDA_R_32F, q->m, q->n, q->ldc, e));
  PL_TRY(choose(b, p, e));
out:
  return st;
}

static bool same(const product *x, const product *y) {
  return x->transpose_a == y->transpose_a && x->transpose_b == y->transpose_b && x->low == y->low &&
         x->align_a == y->align_a && x->align_b == y->align_b && x->align_c == y->align_c && x->m == y->m &&
         x->n == y->n && x->k == y->k && x->lda == y->lda && x->ldb == y->ldb && x->ldc == y->ldc;
}

/* NULL: the failure is noted. */
static plan *plan_of(pl_cublas *b, const product *q) {
  const size_t kept = b->made < PLANS ? b->made : PLANS;
  for (size_t i = 0; i < kept; i++)
    if (same(&b->plans[i].of, q)) return &b->plans[i];
  plan *p = &b->plans[b->made % PLANS];
  drop(p);
  if (make(b, q, p, &pl_cuda_of(b->device)->failure) != PL_OK) {
    drop(p);
    return NULL;
  }
  b->made++;
  return p;
}

/* The largest power of two up to ALIGNED bytes that divides the address. */
static unsigned alignment(const void *p) {
  unsigned align = ALIGNED;
  while ((uintptr_t)p % align != 0) align /= 2;
  return align;
}

/* a and b are float, or bfloat16 when q->low. */
static void multiply(pl_device *d, product *q, float alpha, const void *a, const void *b, float beta, float *c) {
  pl_cuda *state = pl_cuda_of(d);
  q->align_a = alignment(a);
  q->align_b = alignment(b);
  q->align_c = alignment(c);
  const plan *p = plan_of(state->blas, q);
  if (!p) return;
  (void)made(cublasLtMatmul(state->blas->handle, p->operation, &alpha, b, p->a, a, p->b, &beta, c, p->c, c, p->c,
                            &p->algorithm, state->blas->workspace, WORKSPACE, state->stream),
             "a product", &state->failure);
}

/* Products of nothing; true when this was one. */
static bool trivial(pl_device *d, size_t m, size_t n, size_t k, float beta, float *c, size_t ldc) {
  if (m == 0 || n == 0) return true;
  if (k > 0) return false;
  pl_cuda_scale_rows(d, m, n, beta, c, ldc);
  return true;
}

void pl_cuda_gemm(pl_device *d, bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, float alpha,
                  const float *a, size_t lda, const float *b, size_t ldb, float beta, float *c, size_t ldc) {
  if (trivial(d, m, n, k, beta, c, ldc)) return;
  product q = {.transpose_a = transpose_a,
               .transpose_b = transpose_b,
               .m = m,
               .n = n,
               .k = k,
               .lda = lda,
               .ldb = ldb,
               .ldc = ldc};
  multiply(d, &q, alpha, a, b, beta, c);
}

static size_t aligned(size_t elements) {
  const size_t line = ALIGNED / sizeof(uint16_t);
  return (elements + line - 1) / line * line;
}

/* Room for so many rounded elements. It grows in the first steps, and then no more. */
static uint16_t *low_room(pl_device *d, size_t elements) {
  pl_cuda *c = pl_cuda_of(d);
  if (elements <= c->low_size) return c->low;
  void *room = NULL;
  if (!pl_cuda_note(d, cudaStreamSynchronize(c->stream), "waiting for the GPU")) return NULL;
  (void)cudaFree(c->low);
  c->low = NULL;
  c->low_size = 0;
  if (!pl_cuda_note(d, cudaMalloc(&room, elements * sizeof *c->low), "room for inputs in bfloat16")) return NULL;
  c->low = room;
  c->low_size = elements;
  return c->low;
}

void pl_cuda_gemm_low(pl_device *d, bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, float alpha,
                      const float *a, size_t lda, const float *b, size_t ldb, float beta, float *c, size_t ldc) {
  if (d->precision == PL_PRECISION_FP32) {
    pl_cuda_gemm(d, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    return;
  }
  if (trivial(d, m, n, k, beta, c, ldc)) return;
  const size_t rows_a = transpose_a ? k : m, cols_a = transpose_a ? m : k;
  const size_t rows_b = transpose_b ? n : k, cols_b = transpose_b ? k : n;
  uint16_t *low_a = low_room(d, aligned(m * k) + aligned(k * n)), *low_b = low_a;
  if (!low_a) return;
  low_b += aligned(m * k);
  pl_cuda_round(d, rows_a, cols_a, a, lda, low_a);
  pl_cuda_round(d, rows_b, cols_b, b, ldb, low_b);
  product q = {.transpose_a = transpose_a,
               .transpose_b = transpose_b,
               .low = true,
               .m = m,
               .n = n,
               .k = k,
               .lda = cols_a,
               .ldb = cols_b,
               .ldc = ldc};
  multiply(d, &q, alpha, low_a, low_b, beta, c);
}

/* The whole product, since cuBLASLt has no symmetric one; mirrored, since its two halves may differ in the last bit. */
void pl_cuda_syrk(pl_device *d, bool transpose, size_t n, size_t k, float alpha, const float *a, size_t lda, float beta,
                  float *c, size_t ldc) {
  pl_cuda_gemm(d, transpose, !transpose, n, n, k, alpha, a, lda, a, lda, beta, c, ldc);
  pl_cuda_mirror(d, n, c, ldc);
}
