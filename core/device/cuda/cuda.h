/* Inside the CUDA device: what its files share. One device is one GPU and one stream, on which everything happens in
 * the order of the calls; a call returns before its work is done unless said. float only.
 *
 * Errors of the GPU come late and stay; the first one is kept, and pl_ops.check tells it. */
#ifndef PL_DEVICE_CUDA_CUDA_H
#define PL_DEVICE_CUDA_CUDA_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#include "core/device/device.h"

struct pl_cublas;

enum {
  PL_CUDA_PARTIAL = 4096,
  PL_CUDA_COLUMNS = 1 << 21,
  PL_CUDA_USES = 16,
  PL_CUDA_BLOCK = 256 /* threads of a block, unless a kernel says otherwise */
};

/* Of all allocations with one name. */
typedef struct pl_cuda_use {
  char what[40];
  size_t bytes;
} pl_cuda_use;

typedef struct pl_cuda {
  int ordinal; /* of the GPU */
  cudaStream_t stream;
  struct pl_cublas *blas;
  uint16_t *low;                  /* [low_size] inputs of a product rounded to bfloat16; NULL in fp32 */
  size_t low_size;                /* elements */
  float *columns;                 /* [PL_CUDA_COLUMNS] parts of sums over columns */
  double *partial;                /* [PL_CUDA_PARTIAL] of sums, on the GPU */
  double *answer;                 /* [PL_CUDA_PARTIAL] what the host reads of them, pinned */
  pl_cuda_use uses[PL_CUDA_USES]; /* the last one is of all that came later */
  size_t use_count;
  pl_err failure; /* the first; status PL_OK before it */
} pl_cuda;

static inline pl_cuda *pl_cuda_of(pl_device *d) { return (pl_cuda *)d->state; }

/* Keeps the first failure: `what` says what was tried. True when `code` is success. */
bool pl_cuda_note(pl_device *d, cudaError_t code, const char *what);

/* How many blocks of PL_CUDA_BLOCK threads go over n elements in a loop with the grid's stride: enough to fill the
 * largest GPU, and the same on every GPU, so that sums keep their order. At least 1. */
unsigned pl_cuda_blocks(size_t n);

/* Fill a zeroed device whose precision and threads are set; on failure nothing is held. */
PL_MUST_CHECK pl_status pl_cuda_open(pl_device *d, pl_err *e);
void pl_cuda_close(pl_device *d);

/* Members of pl_ops, with its signatures. */
#define PL_CUDA_DECLARE(name) __typeof__(*((const pl_ops *)0)->name) pl_cuda_##name
PL_CUDA_DECLARE(gemm);
PL_CUDA_DECLARE(gemm_low);
PL_CUDA_DECLARE(syrk);
PL_CUDA_DECLARE(embedding_forward);
PL_CUDA_DECLARE(embedding_backward);
PL_CUDA_DECLARE(add_rows_forward);
PL_CUDA_DECLARE(add_rows_backward);
PL_CUDA_DECLARE(rmsnorm_forward);
PL_CUDA_DECLARE(rmsnorm_backward);
PL_CUDA_DECLARE(layernorm_forward);
PL_CUDA_DECLARE(layernorm_backward);
PL_CUDA_DECLARE(rope);
PL_CUDA_DECLARE(attention_saved_size);
PL_CUDA_DECLARE(attention_scratch_size);
PL_CUDA_DECLARE(attention_forward);
PL_CUDA_DECLARE(attention_backward);
PL_CUDA_DECLARE(swiglu_forward);
PL_CUDA_DECLARE(swiglu_backward);
PL_CUDA_DECLARE(gelu_forward);
PL_CUDA_DECLARE(gelu_backward);
PL_CUDA_DECLARE(cross_entropy);
PL_CUDA_DECLARE(axpby);
PL_CUDA_DECLARE(shrink_subtract);
PL_CUDA_DECLARE(sum_squares);
PL_CUDA_DECLARE(dot);
PL_CUDA_DECLARE(sum_double);
PL_CUDA_DECLARE(sum_squares_parts);
PL_CUDA_DECLARE(adamw);
PL_CUDA_DECLARE(momentum);
#undef PL_CUDA_DECLARE

/* Inputs of products, for products.c: `rows` rows of `cols` elements with the stride ld, each rounded to bfloat16 (to
 * nearest, ties to even; subnormal numbers become 0), packed without gaps. */
void pl_cuda_round(pl_device *d, size_t rows, size_t cols, const float *from, size_t ld, uint16_t *to);

#endif
