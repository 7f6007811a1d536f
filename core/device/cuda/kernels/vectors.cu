/* Vectors, and the sums that the host reads: each block leaves a partial sum, one block adds those in their order. */
#include "core/device/cuda/kernels/kernel.h"

PL_KERNEL scale(size_t n, float a, const float *x, float *y) {
  for (size_t i = pl_first(); i < n; i += pl_stride()) y[i] = a * x[i];
}

PL_KERNEL axpby(size_t n, float a, const float *x, float b, float *y) {
  for (size_t i = pl_first(); i < n; i += pl_stride()) y[i] = a * x[i] + b * y[i];
}

/* out may be x. */
PL_KERNEL shrink_subtract(size_t n, float s, const float *x, const float *v, float *out) {
  for (size_t i = pl_first(); i < n; i += pl_stride()) out[i] = s * x[i] - v[i];
}

PL_KERNEL dot(size_t n, const float *x, const float *y, double *partial) {
  double sum = 0;
  for (size_t i = pl_first(); i < n; i += pl_stride()) sum += (double)x[i] * (double)y[i];
  sum = pl_block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

PL_KERNEL sum(size_t n, const double *x, double *partial) {
  double s = 0;
  for (size_t i = pl_first(); i < n; i += pl_stride()) s += x[i];
  s = pl_block_sum(s);
  if (threadIdx.x == 0) partial[blockIdx.x] = s;
}

enum { PART_BLOCKS = 32, PARTS = 64 }; /* blocks of a part; parts of a launch */

struct parts {
  size_t offset[PARTS], size[PARTS];
};

PL_KERNEL squares_of_parts(parts p, const float *x, double *partial) {
  const float *from = x + p.offset[blockIdx.y];
  double sum = 0;
  for (size_t i = pl_first(); i < p.size[blockIdx.y]; i += pl_stride()) sum += (double)from[i] * (double)from[i];
  sum = pl_block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.y * PART_BLOCKS + blockIdx.x] = sum;
}

/* Of each part one number, at the beginning of its partial sums. */
PL_KERNEL sum_of_parts(double *partial) {
  const double sum = pl_warp_sum(partial[blockIdx.x * PART_BLOCKS + threadIdx.x]);
  if (threadIdx.x == 0) partial[blockIdx.x * PART_BLOCKS] = sum;
}

void pl_cuda_axpby(pl_device *d, size_t n, double a, const float *x, double b, float *y) {
  if (n == 0) return;
  if (b == 0)
    PL_LAUNCH(d, scale, pl_cuda_blocks(n), PL_CUDA_BLOCK, n, (float)a, x, y);
  else
    PL_LAUNCH(d, axpby, pl_cuda_blocks(n), PL_CUDA_BLOCK, n, (float)a, x, (float)b, y);
}

void pl_cuda_shrink_subtract(pl_device *d, size_t n, double s, const float *x, const float *v, float *out) {
  if (n > 0) PL_LAUNCH(d, shrink_subtract, pl_cuda_blocks(n), PL_CUDA_BLOCK, n, (float)s, x, v, out);
}

/* The sum of `blocks` partial sums; the last of them is overwritten by it. */
static double answer(pl_device *d, unsigned blocks) {
  pl_cuda *c = pl_cuda_of(d);
  double *result = c->partial + PL_CUDA_PARTIAL - 1;
  PL_LAUNCH(d, sum, 1, PL_CUDA_BLOCK, (size_t)blocks, c->partial, result);
  d->ops->download(d, c->answer, result, sizeof *result);
  return c->failure.status == PL_OK ? c->answer[0] : (double)NAN;
}

double pl_cuda_dot(pl_device *d, size_t n, const float *x, const float *y) {
  if (n == 0) return 0;
  const unsigned blocks = pl_cuda_blocks(n);
  PL_LAUNCH(d, dot, blocks, PL_CUDA_BLOCK, n, x, y, pl_cuda_of(d)->partial);
  return answer(d, blocks);
}

double pl_cuda_sum_squares(pl_device *d, size_t n, const float *x) { return pl_cuda_dot(d, n, x, x); }

double pl_cuda_sum_double(pl_device *d, size_t n, const double *x) {
  if (n == 0) return 0;
  const unsigned blocks = pl_cuda_blocks(n);
  PL_LAUNCH(d, sum, blocks, PL_CUDA_BLOCK, n, x, pl_cuda_of(d)->partial);
  return answer(d, blocks);
}

/* Many parts by launches of PARTS each, and one wait for PL_CUDA_PARTIAL / PART_BLOCKS of them. */
void pl_cuda_sum_squares_parts(pl_device *d, size_t count, const size_t *offset, const size_t *size, const float *x, double *out) {
  pl_cuda *c = pl_cuda_of(d);
  const size_t most = PL_CUDA_PARTIAL / PART_BLOCKS;
  for (size_t first = 0; first < count; first += most) {
    const size_t here = count - first < most ? count - first : most;
    for (size_t at = 0; at < here; at += PARTS) {
      parts p = {};
      const size_t n = here - at < PARTS ? here - at : (size_t)PARTS;
      for (size_t i = 0; i < n; i++) p.offset[i] = offset[first + at + i], p.size[i] = size[first + at + i];
      PL_LAUNCH(d, squares_of_parts, dim3(PART_BLOCKS, (unsigned)n), PL_CUDA_BLOCK, p, x, c->partial + at * PART_BLOCKS);
    }
    PL_LAUNCH(d, sum_of_parts, (unsigned)here, PART_BLOCKS, c->partial);
    d->ops->download(d, c->answer, c->partial, here * PART_BLOCKS * sizeof *c->answer);
    for (size_t i = 0; i < here; i++) out[first + i] = c->failure.status == PL_OK ? c->answer[i * PART_BLOCKS] : (double)NAN;
  }
}
