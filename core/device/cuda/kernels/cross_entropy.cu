#include "core/device/cuda/kernels/kernel.h"

/* A block for each row. With gradient, logits become scale (softmax - onehot). */
PL_KERNEL cross_entropy(size_t classes, const int32_t *targets, bool gradient, double scale, float *logits, double *loss) {
  const size_t r = blockIdx.x;
  float *row = logits + r * classes;
  float top = -INFINITY, sum = 0;
  for (size_t j = threadIdx.x; j < classes; j += blockDim.x) top = fmaxf(top, row[j]);
  top = pl_block_max(top);
  for (size_t j = threadIdx.x; j < classes; j += blockDim.x) sum += expf(row[j] - top);
  const double all = pl_block_sum((double)sum), target = (double)row[targets[r]];
  if (threadIdx.x == 0) loss[r] = log(all) + ((double)top - target);
  if (!gradient) return;
  const float factor = (float)(scale / all);
  __syncthreads(); /* everyone has read the target's logit */
  for (size_t j = threadIdx.x; j < classes; j += blockDim.x) row[j] = factor * expf(row[j] - top) - ((size_t)targets[r] == j ? (float)scale : 0.0f);
}

void pl_cuda_cross_entropy(pl_device *d, size_t rows, size_t classes, const int32_t *targets, bool gradient, double scale, float *logits, double *loss) {
  if (rows > 0) PL_LAUNCH(d, cross_entropy, (unsigned)rows, PL_CUDA_BLOCK, classes, targets, gradient, scale, logits, loss);
}
