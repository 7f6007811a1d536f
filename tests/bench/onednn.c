#include "tests/bench/onednn.h"

#ifdef PL_HAVE_ONEDNN
#include <dnnl.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct low {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  dnnl_primitive_t primitive;
  dnnl_memory_t memory[3];
} low;

static void must(dnnl_status_t st, const char *what) {
  if (st == dnnl_success) return;
  fprintf(stderr, "oneDNN: %s failed with %d\n", what, (int)st);
  exit(1);
}

bool bench_onednn_is_there(void) { return true; }

void bench_onednn_sgemm(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, const pl_real *a, size_t lda,
                        const pl_real *b, size_t ldb, float beta, pl_real *c, size_t ldc) {
  must(dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', (dnnl_dim_t)m, (dnnl_dim_t)n, (dnnl_dim_t)k, 1, a,
                  (dnnl_dim_t)lda, b, (dnnl_dim_t)ldb, beta, c, (dnnl_dim_t)ldc),
       "dnnl_sgemm");
}

static dnnl_memory_desc_t matrix(size_t rows, size_t cols, dnnl_data_type_t type, bool transposed) {
  dnnl_memory_desc_t d;
  const dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)cols};
  must(dnnl_memory_desc_init_by_tag(&d, 2, dims, type, transposed ? dnnl_ba : dnnl_ab), "a matrix's description");
  return d;
}

void *bench_onednn_low(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k) {
  low *p = calloc(1, sizeof *p);
  if (!p) abort();
  const dnnl_memory_desc_t d[3] = {matrix(m, k, dnnl_bf16, transpose_a), matrix(k, n, dnnl_bf16, transpose_b),
                                   matrix(m, n, dnnl_f32, false)};
  dnnl_matmul_desc_t desc;
  dnnl_primitive_desc_t primitive;
  must(dnnl_engine_create(&p->engine, dnnl_cpu, 0), "the engine");
  must(dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags), "the stream");
  must(dnnl_matmul_desc_init(&desc, &d[0], &d[1], NULL, &d[2]), "a product's description");
  if (dnnl_primitive_desc_create(&primitive, &desc, NULL, p->engine, NULL) != dnnl_success) { /* no bf16 here */
    bench_onednn_free(p);
    return NULL;
  }
  must(dnnl_primitive_create(&p->primitive, primitive), "a product");
  must(dnnl_primitive_desc_destroy(primitive), "freeing");
  for (size_t i = 0; i < 3; i++)
    must(dnnl_memory_create(&p->memory[i], &d[i], p->engine, DNNL_MEMORY_ALLOCATE), "a matrix");
  return p;
}

void bench_onednn_run(void *product) {
  low *p = product;
  const dnnl_exec_arg_t args[3] = {
      {DNNL_ARG_SRC, p->memory[0]}, {DNNL_ARG_WEIGHTS, p->memory[1]}, {DNNL_ARG_DST, p->memory[2]}};
  must(dnnl_primitive_execute(p->primitive, p->stream, 3, args), "a product");
  must(dnnl_stream_wait(p->stream), "waiting");
}

void bench_onednn_free(void *product) {
  low *p = product;
  if (!p) return;
  for (size_t i = 0; i < 3; i++)
    if (p->memory[i]) (void)dnnl_memory_destroy(p->memory[i]);
  if (p->primitive) (void)dnnl_primitive_destroy(p->primitive);
  if (p->stream) (void)dnnl_stream_destroy(p->stream);
  if (p->engine) (void)dnnl_engine_destroy(p->engine);
  free(p);
}
#else
bool bench_onednn_is_there(void) { return false; }

void bench_onednn_sgemm(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, const pl_real *a, size_t lda,
                        const pl_real *b, size_t ldb, float beta, pl_real *c, size_t ldc) {
  (void)transpose_a, (void)transpose_b, (void)m, (void)n, (void)k, (void)a, (void)lda, (void)b, (void)ldb, (void)beta;
  (void)c, (void)ldc;
}

void *bench_onednn_low(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k) {
  (void)transpose_a, (void)transpose_b, (void)m, (void)n, (void)k;
  return NULL;
}

void bench_onednn_run(void *product) { (void)product; }
void bench_onednn_free(void *product) { (void)product; }
#endif
