#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/bench.h"

enum { WORKSPACE = 32 << 20 };

static void must(int code, const char *what) {
  if (code == 0) return;
  fprintf(stderr, "gpu_bench: %s: error %d\n", what, code);
  exit(PL_FAIL);
}

static void *taken(size_t bytes) {
  void *p = NULL;
  must(cudaMalloc(&p, bytes), "memory");
  return p;
}

typedef struct raw {
  cudaStream_t stream;
  void *a, *b, *c, *workspace;
  size_t bytes; /* of a copy */
  size_t n;     /* of a product */
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t input, output;
  cublasLtMatmulAlgo_t algorithm;
} raw;

static void wait_raw(void *self) { must(cudaStreamSynchronize(((raw *)self)->stream), "waiting"); }

static void copy(void *self) {
  raw *r = self;
  must(cudaMemcpyAsync(r->b, r->a, r->bytes, cudaMemcpyDeviceToDevice, r->stream), "a copy");
}

static void multiply(void *self) {
  raw *r = self;
  const float one = 1, zero = 0;
  must(cublasLtMatmul(r->handle, r->operation, &one, r->a, r->input, r->b, r->input, &zero, r->c, r->output, r->c,
                      r->output, &r->algorithm, r->workspace, WORKSPACE, r->stream),
       "a product");
}

/* Random ones: on zeros a GPU draws less power and runs faster. */
static void fill(raw *r, void *to, bool low) {
  const size_t count = r->n * r->n;
  pl_real *x = bench_numbers(count);
  uint16_t *words = calloc(count, sizeof *words);
  if (!words) abort();
  for (size_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, &x[i], sizeof bits);
    words[i] = (uint16_t)(bits >> 16);
  }
  const void *from = low ? (const void *)words : x;
  must(cudaMemcpyAsync(to, from, count * (low ? sizeof *words : sizeof *x), cudaMemcpyHostToDevice, r->stream),
       "numbers");
  wait_raw(r);
  free(words);
  free(x);
}

static void choose(raw *r, bool low) {
  cublasLtMatmulPreference_t preference = NULL;
  cublasLtMatmulHeuristicResult_t found;
  const size_t workspace = WORKSPACE;
  int count = 0;
  const cudaDataType type = low ? CUDA_R_16BF : CUDA_R_32F;
  must(cublasLtMatmulDescCreate(&r->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a product");
  must(cublasLtMatrixLayoutCreate(&r->input, type, r->n, r->n, (int64_t)r->n), "a matrix");
  must(cublasLtMatrixLayoutCreate(&r->output, CUDA_R_32F, r->n, r->n, (int64_t)r->n), "a matrix");
  must(cublasLtMatmulPreferenceCreate(&preference), "a preference");
  must(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                            sizeof workspace),
       "a preference");
  must(cublasLtMatmulAlgoGetHeuristic(r->handle, r->operation, r->input, r->input, r->output, r->output, preference, 1,
                                      &found, &count),
       "an algorithm");
  must(count < 1, "an algorithm");
  r->algorithm = found.algo;
  must(cublasLtMatmulPreferenceDestroy(preference), "a preference");
}

static double product_rate(raw *r, bool low, double least) {
  fill(r, r->a, low);
  fill(r, r->b, low);
  choose(r, low);
  const gpu_work work = {multiply, wait_raw, r};
  const double n = (double)r->n, rate = 2 * n * n * n / gpu_seconds(&work, least);
  must(cublasLtMatrixLayoutDestroy(r->input), "a matrix");
  must(cublasLtMatrixLayoutDestroy(r->output), "a matrix");
  must(cublasLtMatmulDescDestroy(r->operation), "a product");
  fprintf(stderr, "product of %zu x %zu, %s: %.1f TFLOP/s\n", r->n, r->n, low ? "bf16" : "fp32", 1e-12 * rate);
  return rate;
}

pl_json *gpu_bench_ceilings(const gpu_sizes *s) {
  raw r = {.bytes = s->small ? 1 << 16 : (size_t)1 << 30, .n = s->small ? 32 : 8192};
  pl_json *found = pl_json_new_object();
  must(cudaSetDevice(0), "the GPU");
  must(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking), "a stream");
  must(cublasLtCreate(&r.handle), "cuBLASLt");
  r.a = taken(r.bytes);
  r.b = taken(r.bytes);
  r.c = taken(r.n * r.n * sizeof(float));
  r.workspace = taken(WORKSPACE);
  must(cudaMemsetAsync(r.a, 1, r.bytes, r.stream), "clearing");
  const gpu_work work = {copy, wait_raw, &r};
  const double bytes = 2 * (double)r.bytes / gpu_seconds(&work, s->least);
  fprintf(stderr, "copy: %.0f GB/s read and written\n", 1e-9 * bytes);
  bench_set(found, "copy_gb_per_second", 1e-9 * bytes);
  bench_set(found, "product_bf16_tflops", 1e-12 * product_rate(&r, true, s->least));
  bench_set(found, "product_fp32_tflops", 1e-12 * product_rate(&r, false, s->least));
  must(cublasLtDestroy(r.handle), "cuBLASLt");
  return found;
}
