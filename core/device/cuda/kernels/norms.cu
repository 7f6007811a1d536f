/* RMSNorm and LayerNorm: a warp for each row; the gradients of weight and bias are sums over columns. */
#include "core/device/cuda/kernels/columns.h"

static unsigned row_blocks(size_t rows) { return (unsigned)((rows + PL_WARPS - 1) / PL_WARPS); }

PL_INLINE size_t own_row(void) { return (size_t)blockIdx.x * PL_WARPS + threadIdx.x / PL_WARP; }
PL_INLINE size_t own_lane(void) { return threadIdx.x % PL_WARP; }

PL_INLINE float inverse_root(float squares, size_t width, double eps) { return (float)(1.0 / sqrt((double)squares / (double)width + eps)); }

PL_KERNEL rmsnorm(size_t rows, size_t width, const float *x, const float *weight, double eps, float *out, float *rstd) {
  const size_t r = own_row(), lane = own_lane();
  if (r >= rows) return;
  float sum = 0;
  for (size_t j = lane; j < width; j += PL_WARP) sum += x[r * width + j] * x[r * width + j];
  const float root = inverse_root(pl_warp_sum(sum), width, eps);
  if (lane == 0) rstd[r] = root;
  for (size_t j = lane; j < width; j += PL_WARP) out[r * width + j] = x[r * width + j] * root * weight[j];
}

/* With g = dout * weight: dx += rstd (g - x rstd^2 mean(g x)). */
PL_KERNEL rmsnorm_gradient(size_t rows, size_t width, const float *x, const float *weight, const float *rstd, const float *dout, float *dx) {
  const size_t r = own_row(), lane = own_lane();
  if (r >= rows) return;
  const float *row = x + r * width, *drow = dout + r * width;
  float sum = 0;
  for (size_t j = lane; j < width; j += PL_WARP) sum += drow[j] * weight[j] * row[j];
  const float root = rstd[r], along = root * root * (pl_warp_sum(sum) / (float)width);
  for (size_t j = lane; j < width; j += PL_WARP) dx[r * width + j] += root * (drow[j] * weight[j] - row[j] * along);
}

PL_KERNEL layernorm(size_t rows, size_t width, const float *x, const float *weight, const float *bias, double eps, float *out, float *mean, float *rstd) {
  const size_t r = own_row(), lane = own_lane();
  if (r >= rows) return;
  const float *row = x + r * width;
  float sum = 0, squares = 0;
  for (size_t j = lane; j < width; j += PL_WARP) sum += row[j];
  const float centre = pl_warp_sum(sum) / (float)width;
  for (size_t j = lane; j < width; j += PL_WARP) squares += (row[j] - centre) * (row[j] - centre);
  const float root = inverse_root(pl_warp_sum(squares), width, eps);
  if (lane == 0) mean[r] = centre;
  if (lane == 0) rstd[r] = root;
  for (size_t j = lane; j < width; j += PL_WARP) out[r * width + j] = (row[j] - centre) * root * weight[j] + bias[j];
}

/* With g = dout * weight and h = (x - mean) rstd: dx += rstd (g - mean(g) - h mean(g h)). */
PL_KERNEL layernorm_gradient(size_t rows, size_t width, const float *x, const float *weight, const float *mean, const float *rstd, const float *dout, float *dx) {
  const size_t r = own_row(), lane = own_lane();
  if (r >= rows) return;
  const float *row = x + r * width, *drow = dout + r * width;
  const float centre = mean[r], root = rstd[r];
  float level = 0, along = 0;
  for (size_t j = lane; j < width; j += PL_WARP) {
    const float g = drow[j] * weight[j];
    level += g;
    along += g * (row[j] - centre);
  }
  level = pl_warp_sum(level) / (float)width;
  along = pl_warp_sum(along) * root / (float)width;
  for (size_t j = lane; j < width; j += PL_WARP) dx[r * width + j] += root * (drow[j] * weight[j] - level - (row[j] - centre) * root * along);
}

/* Of dweight: dout times the normalised x. */
struct rms_term {
  const float *x, *dout, *rstd;
  size_t width;
  __device__ float operator()(size_t r, size_t j) const { return dout[r * width + j] * (x[r * width + j] * rstd[r]); }
};
struct layer_term {
  const float *x, *dout, *mean, *rstd;
  size_t width;
  __device__ float operator()(size_t r, size_t j) const { return dout[r * width + j] * ((x[r * width + j] - mean[r]) * rstd[r]); }
};
struct bias_term {
  const float *dout;
  size_t width;
  __device__ float operator()(size_t r, size_t j) const { return dout[r * width + j]; }
};

void pl_cuda_rmsnorm_forward(pl_device *d, size_t rows, size_t width, const float *x, const float *weight, double eps, float *out, float *rstd) {
  if (rows > 0) PL_LAUNCH(d, rmsnorm, row_blocks(rows), PL_CUDA_BLOCK, rows, width, x, weight, eps, out, rstd);
}

void pl_cuda_rmsnorm_backward(pl_device *d, size_t rows, size_t width, const float *x, const float *weight, const float *rstd, const float *dout, float *dx, float *dweight) {
  if (rows == 0) return;
  PL_LAUNCH(d, rmsnorm_gradient, row_blocks(rows), PL_CUDA_BLOCK, rows, width, x, weight, rstd, dout, dx);
  pl_columns(d, rows, width, rms_term{x, dout, rstd, width}, dweight);
}

void pl_cuda_layernorm_forward(pl_device *d, size_t rows, size_t width, const float *x, const float *weight, const float *bias, double eps, float *out, float *mean, float *rstd) {
  if (rows > 0) PL_LAUNCH(d, layernorm, row_blocks(rows), PL_CUDA_BLOCK, rows, width, x, weight, bias, eps, out, mean, rstd);
}

void pl_cuda_layernorm_backward(pl_device *d, size_t rows, size_t width, const float *x, const float *weight, const float *mean, const float *rstd, const float *dout, float *dx,
                                float *dweight, float *dbias) {
  if (rows == 0) return;
  PL_LAUNCH(d, layernorm_gradient, row_blocks(rows), PL_CUDA_BLOCK, rows, width, x, weight, mean, rstd, dout, dx);
  pl_columns(d, rows, width, layer_term{x, dout, mean, rstd, width}, dweight);
  pl_columns(d, rows, width, bias_term{dout, width}, dbias);
}
