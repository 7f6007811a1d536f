#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/device/cuda/cuda.h"
#include "core/device/cuda/list.h"
#include "core/device/cuda/products.h"

bool pl_cuda_note(pl_device *d, cudaError_t code, const char *what) {
  if (code == cudaSuccess) return true;
  (void)pl_fail(&pl_cuda_of(d)->failure, PL_FAIL, "cuda: %s: %s", what, cudaGetErrorString(code));
  return false;
}

unsigned pl_cuda_blocks(size_t n) {
  const size_t most = 1024, blocks = (n + PL_CUDA_BLOCK - 1) / PL_CUDA_BLOCK;
  if (blocks < 1) return 1;
  return (unsigned)(blocks < most ? blocks : most);
}

static pl_status check(pl_device *d, pl_err *e) {
  const pl_cuda *c = pl_cuda_of(d);
  return c->failure.status == PL_OK ? PL_OK : pl_fail(e, c->failure.status, "%s", c->failure.text);
}

/* Of one allocation: what it needs and what there is. */
static pl_status out_of_memory(size_t bytes, const char *what, pl_err *e) {
  size_t available = 0, total = 0;
  (void)cudaMemGetInfo(&available, &total);
  return pl_fail(
      e, PL_FAIL,
      "cuda: out of memory: %s needs %zu MiB, %zu of the GPU's %zu MiB are free; lower train.batch_tokens by "
      "pipeline.microbatches, the model's size, or the number of stages on one GPU",
      what, bytes >> 20, available >> 20, total >> 20);
}

static void note_use(pl_cuda *c, const char *what, size_t bytes) {
  size_t i = 0;
  while (i < c->use_count && strncmp(c->uses[i].what, what, sizeof c->uses[i].what - 1) != 0) i++;
  if (i == c->use_count && c->use_count < PL_CUDA_USES)
    snprintf(c->uses[c->use_count++].what, sizeof c->uses[0].what, "%s", i + 1 < PL_CUDA_USES ? what : "other");
  c->uses[i < PL_CUDA_USES ? i : PL_CUDA_USES - 1].bytes += bytes;
}

static void memory(pl_device *d, char *line, size_t size) {
  const pl_cuda *c = pl_cuda_of(d);
  size_t available = 0, total = 0, sum = 0, used = 0;
  (void)cudaMemGetInfo(&available, &total);
  for (size_t i = 0; i < c->use_count; i++) sum += c->uses[i].bytes;
  used = (size_t)snprintf(line, size, "GPU memory: %.1f MiB", (double)sum / 1048576);
  for (size_t i = 0; i < c->use_count && used < size; i++)
    used += (size_t)snprintf(line + used, size - used, "%s %s %.1f", i > 0 ? "," : " for", c->uses[i].what,
                             (double)c->uses[i].bytes / 1048576);
  if (used < size) snprintf(line + used, size - used, "; %zu of %zu MiB are free", available >> 20, total >> 20);
}

static pl_status device_alloc(pl_device *d, size_t bytes, const char *what, void **out, pl_err *e) {
  *out = NULL;
  const cudaError_t code = cudaMalloc(out, bytes ? bytes : 1);
  if (code == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError(); /* it would be found again by the next launch */
    return out_of_memory(bytes, what, e);
  }
  if (code != cudaSuccess) return pl_fail(e, PL_FAIL, "cuda: %s: %s", what, cudaGetErrorString(code));
  note_use(pl_cuda_of(d), what, bytes);
  d->ops->zero(d, *out, bytes);
  return check(d, e);
}

static void device_free(pl_device *d, void *p) {
  if (p) (void)pl_cuda_note(d, cudaFree(p), "freeing memory");
}

static void move(pl_device *d, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, const char *what) {
  if (bytes) (void)pl_cuda_note(d, cudaMemcpyAsync(to, from, bytes, kind, pl_cuda_of(d)->stream), what);
}

static void wait_for(pl_device *d) {
  (void)pl_cuda_note(d, cudaStreamSynchronize(pl_cuda_of(d)->stream), "waiting for the GPU");
}

/* The caller may change from_host at once: memory that is not pinned is read before the call returns. */
static void upload(pl_device *d, void *to_device, const void *from_host, size_t bytes) {
  move(d, to_device, from_host, bytes, cudaMemcpyHostToDevice, "copying to the GPU");
}

static void download(pl_device *d, void *to_host, const void *from_device, size_t bytes) {
  move(d, to_host, from_device, bytes, cudaMemcpyDeviceToHost, "copying from the GPU");
  wait_for(d);
}

static void copy(pl_device *d, void *to, const void *from, size_t bytes) {
  move(d, to, from, bytes, cudaMemcpyDeviceToDevice, "copying on the GPU");
}

static void zero(pl_device *d, void *p, size_t bytes) {
  if (bytes) (void)pl_cuda_note(d, cudaMemsetAsync(p, 0, bytes, pl_cuda_of(d)->stream), "clearing memory");
}

static const pl_ops ops = {
    .name = "cuda",
    .stretch = 0,
    .on_host = false,
    .alloc = device_alloc,
    .free = device_free,
    .memory = memory,
    .upload = upload,
    .download = download,
    .copy = copy,
    .zero = zero,
    .check = check,
    .gemm = pl_cuda_gemm,
    .gemm_low = pl_cuda_gemm_low,
    .syrk = pl_cuda_syrk,
    .embedding_forward = pl_cuda_embedding_forward,
    .embedding_backward = pl_cuda_embedding_backward,
    .add_rows_forward = pl_cuda_add_rows_forward,
    .add_rows_backward = pl_cuda_add_rows_backward,
    .rmsnorm_forward = pl_cuda_rmsnorm_forward,
    .rmsnorm_backward = pl_cuda_rmsnorm_backward,
    .layernorm_forward = pl_cuda_layernorm_forward,
    .layernorm_backward = pl_cuda_layernorm_backward,
    .rope = pl_cuda_rope,
    .attention_saved_size = pl_cuda_attention_saved_size,
    .attention_scratch_size = pl_cuda_attention_scratch_size,
    .attention_forward = pl_cuda_attention_forward,
    .attention_backward = pl_cuda_attention_backward,
    .swiglu_forward = pl_cuda_swiglu_forward,
    .swiglu_backward = pl_cuda_swiglu_backward,
    .gelu_forward = pl_cuda_gelu_forward,
    .gelu_backward = pl_cuda_gelu_backward,
    .cross_entropy = pl_cuda_cross_entropy,
    .axpby = pl_cuda_axpby,
    .shrink_subtract = pl_cuda_shrink_subtract,
    .sum_squares = pl_cuda_sum_squares,
    .dot = pl_cuda_dot,
    .sum_double = pl_cuda_sum_double,
    .sum_squares_parts = pl_cuda_sum_squares_parts,
    .adamw = pl_cuda_adamw,
    .momentum = pl_cuda_momentum,
};

/* Processes of one node take its GPUs in turn. */
static int local_rank(void) {
  static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *text = getenv(names[i]);
    if (text && *text) return atoi(text);
  }
  return 0;
}

static pl_status find(int *ordinal, pl_err *e) {
  int count = 0;
  const pl_status st = pl_cuda_count(&count, e);
  if (st != PL_OK) return st;
  const int rank = local_rank();
  *ordinal = rank > 0 ? rank % count : 0;
  return PL_OK;
}

static void describe(pl_device *d) {
  struct cudaDeviceProp p;
  int runtime = 0;
  if (cudaGetDeviceProperties(&p, pl_cuda_of(d)->ordinal) != cudaSuccess) return;
  (void)cudaRuntimeGetVersion(&runtime);
  snprintf(d->kernel, sizeof d->kernel, "%.40s (%d.%d), CUDA %d.%d", p.name, p.major, p.minor, runtime / 1000,
           runtime % 1000 / 10);
}

static pl_status made(cudaError_t code, const char *what, pl_err *e) {
  return code == cudaSuccess ? PL_OK : pl_fail(e, PL_FAIL, "cuda: %s: %s", what, cudaGetErrorString(code));
}

pl_status pl_cuda_open(pl_device *d, pl_err *e) {
  pl_status st = PL_OK;
  pl_cuda *c = NULL;
  void *partial = NULL, *answer = NULL, *columns = NULL;
  int ordinal = 0;
  if (d->threads != 1) return pl_fail(e, PL_BAD, "threads is %zu; with device cuda allowed: 1", d->threads);
  PL_TRY(find(&ordinal, e));
  PL_TRY(pl_alloc(1, sizeof *c, "the device", &c, e));
  c->ordinal = ordinal;
  d->ops = &ops;
  d->state = c;
  PL_TRY(made(cudaSetDevice(ordinal), "choosing the GPU", e));
  PL_TRY(made(cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking), "making a stream", e));
  PL_TRY(made(cudaMalloc(&partial, PL_CUDA_PARTIAL * sizeof *c->partial), "room for sums", e));
  c->partial = partial;
  PL_TRY(made(cudaMalloc(&columns, PL_CUDA_COLUMNS * sizeof *c->columns), "room for sums", e));
  c->columns = columns;
  PL_TRY(made(cudaMallocHost(&answer, PL_CUDA_PARTIAL * sizeof *c->answer), "room for sums", e));
  c->answer = answer;
  PL_TRY(pl_cublas_open(d, &c->blas, e));
  describe(d);
  c = NULL;
out:
  if (c) pl_cuda_close(d);
  return st;
}

void pl_cuda_close(pl_device *d) {
  pl_cuda *c = pl_cuda_of(d);
  if (!c) return;
  pl_cublas_close(c->blas);
  (void)cudaFreeHost(c->answer);
  (void)cudaFree(c->low);
  (void)cudaFree(c->columns);
  (void)cudaFree(c->partial);
  if (c->stream) (void)cudaStreamDestroy(c->stream);
  pl_free(c);
  d->state = NULL;
}
