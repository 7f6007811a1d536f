/* cuBLASLt on the host. A call that the library's documentation does not allow aborts the process with the reason: the
 * library itself would answer with a status, or compute something else. */
#include <cublasLt.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

struct cublasLtContext {
  int alive;
};
struct pl_fake_desc {
  cublasComputeType_t compute;
  cublasOperation_t a, b;
};
struct pl_fake_layout {
  cudaDataType type;
  uint64_t rows, cols;
  int64_t ld;
};
struct pl_fake_preference {
  uint64_t workspace;
  uint32_t align[4];
};

[[noreturn]] static void refuse(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fputs("cublasLt: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
  std::abort();
}

const char *cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
  case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
  case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
  case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "unknown";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out) {
  *out = new cublasLtContext{1};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute, cudaDataType scale) {
  if (scale != CUDA_R_32F) refuse("scale type %d; with compute type 32F allowed: CUDA_R_32F", scale);
  *out = new pl_fake_desc{compute, CUBLAS_OP_N, CUBLAS_OP_N};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t which, const void *value, size_t bytes) {
  if (bytes != sizeof(int32_t)) refuse("an attribute of %zu bytes; allowed for a transpose: 4", bytes);
  cublasOperation_t *to = which == CUBLASLT_MATMUL_DESC_TRANSA ? &desc->a : &desc->b;
  std::memcpy(to, value, sizeof *to);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld) {
  if (rows < 1 || cols < 1) refuse("a matrix of %zu by %zu", static_cast<size_t>(rows), static_cast<size_t>(cols));
  if (ld < 0 || static_cast<uint64_t>(ld) < rows) refuse("leading dimension %lld of a matrix with %zu rows", static_cast<long long>(ld), static_cast<size_t>(rows));
  *out = new pl_fake_layout{type, rows, cols, ld};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out) {
  *out = new pl_fake_preference{0, {256, 256, 256, 256}};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t which, const void *value, size_t bytes) {
  const size_t size = which == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? sizeof p->workspace : sizeof p->align[0];
  if (bytes != size) refuse("preference %d of %zu bytes; allowed: %zu", which, bytes, size);
  if (which == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    std::memcpy(&p->workspace, value, bytes);
  else
    std::memcpy(&p->align[which - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
  delete p;
  return CUBLAS_STATUS_SUCCESS;
}

static size_t size_of(cudaDataType type) { return type == CUDA_R_16BF ? 2 : 4; }

static void check_shapes(const pl_fake_desc *desc, const pl_fake_layout *a, const pl_fake_layout *b, const pl_fake_layout *c, const pl_fake_layout *d) {
  const uint64_t m = desc->a == CUBLAS_OP_N ? a->rows : a->cols, k = desc->a == CUBLAS_OP_N ? a->cols : a->rows;
  const uint64_t kb = desc->b == CUBLAS_OP_N ? b->rows : b->cols, n = desc->b == CUBLAS_OP_N ? b->cols : b->rows;
  if (k != kb) refuse("depths %zu and %zu", static_cast<size_t>(k), static_cast<size_t>(kb));
  if (c->rows != m || c->cols != n || d->rows != m || d->cols != n) refuse("C is not %zu by %zu", static_cast<size_t>(m), static_cast<size_t>(n));
  if (a->type != b->type) refuse("A and B have types %d and %d", a->type, b->type);
  if (c->type != CUDA_R_32F || d->type != CUDA_R_32F) refuse("C has type %d; here allowed: CUDA_R_32F", c->type);
  if (desc->compute == CUBLAS_COMPUTE_32F_FAST_TF32 && a->type != CUDA_R_32F) refuse("TF32 with inputs of type %d", a->type);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                              cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t p, int wanted, cublasLtMatmulHeuristicResult_t *results, int *count) {
  if (wanted < 1) refuse("%d algorithms wanted", wanted);
  check_shapes(desc, a, b, c, d);
  std::memset(results, 0, sizeof *results);
  for (int i = 0; i < 4; i++) results->algo.data[i] = p->align[i]; /* what the caller promises of its addresses */
  results->algo.data[4] = p->workspace;
  results->state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

static float value(const void *p, const pl_fake_layout *l, uint64_t row, uint64_t col) {
  const uint64_t at = row + col * static_cast<uint64_t>(l->ld);
  if (l->type == CUDA_R_32F) return static_cast<const float *>(p)[at];
  const uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t *>(p)[at]) << 16;
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

static void check_address(const char *name, const void *p, const pl_fake_layout *l, uint64_t promised) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(p);
  if (!p) refuse("%s is NULL", name);
  if (at % promised != 0) refuse("%s is not aligned to the %zu bytes that its plan promised", name, static_cast<size_t>(promised));
  if (at % size_of(l->type) != 0) refuse("%s is not aligned to its elements", name);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a, cublasLtMatrixLayout_t al, const void *b,
                              cublasLtMatrixLayout_t bl, const void *beta, const void *c, cublasLtMatrixLayout_t cl, void *d, cublasLtMatrixLayout_t dl,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t workspace_bytes, cudaStream_t stream) {
  if (!handle || !handle->alive) refuse("no handle");
  if (!stream) refuse("the default stream");
  if (!algorithm) refuse("no algorithm");
  if (workspace_bytes < algorithm->data[4]) refuse("%zu bytes of workspace, %zu promised", workspace_bytes, static_cast<size_t>(algorithm->data[4]));
  if (!workspace || reinterpret_cast<uintptr_t>(workspace) % 256 != 0) refuse("the workspace is not aligned to 256 bytes");
  check_shapes(desc, al, bl, cl, dl);
  check_address("A", a, al, algorithm->data[0]);
  check_address("B", b, bl, algorithm->data[1]);
  check_address("C", c, cl, algorithm->data[2]);
  check_address("D", d, dl, algorithm->data[3]);
  float scale, keep;
  std::memcpy(&scale, alpha, sizeof scale);
  std::memcpy(&keep, beta, sizeof keep);
  const uint64_t k = desc->a == CUBLAS_OP_N ? al->cols : al->rows;
  for (uint64_t j = 0; j < dl->cols; j++)
    for (uint64_t i = 0; i < dl->rows; i++) {
      double sum = 0;
      for (uint64_t l = 0; l < k; l++)
        sum += static_cast<double>(desc->a == CUBLAS_OP_N ? value(a, al, i, l) : value(a, al, l, i)) *
               static_cast<double>(desc->b == CUBLAS_OP_N ? value(b, bl, l, j) : value(b, bl, j, l));
      const double before = keep == 0 ? 0 : static_cast<double>(keep) * static_cast<double>(value(c, cl, i, j));
      static_cast<float *>(d)[i + j * static_cast<uint64_t>(dl->ld)] = static_cast<float>(static_cast<double>(scale) * sum + before);
    }
  return CUBLAS_STATUS_SUCCESS;
}
