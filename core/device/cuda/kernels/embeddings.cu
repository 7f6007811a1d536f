/* Rows that are looked up or repeated: token, position and rotary embeddings, biases. */
#include "core/device/cuda/kernels/columns.h"

PL_KERNEL embed(size_t n, size_t width, const int32_t *ids, const float *table, float *out) {
  for (size_t i = pl_first(); i < n; i += pl_stride()) out[i] = table[(size_t)ids[i / width] * width + i % width];
}

/* One block for each row. The first row of an id adds all rows of that id to the table, in ascending order; the blocks
 * of the others have nothing to do. */
PL_KERNEL embed_gradient(size_t rows, size_t width, const int32_t *ids, const float *dout, float *dtable) {
  PL_SHARED(unsigned, found, PL_WARPS); /* bits: which rows of the chunk have the id */
  const size_t own = blockIdx.x, warp = threadIdx.x / PL_WARP, lane = threadIdx.x % PL_WARP;
  const int32_t id = ids[own];
  int earlier = 0;
  for (size_t r = threadIdx.x; r < own; r += blockDim.x) earlier |= ids[r] == id;
  const unsigned any = __ballot_sync(0xffffffffu, earlier);
  if (lane == 0) found[warp] = any;
  __syncthreads();
  for (int w = 0; w < PL_WARPS; w++) earlier |= found[w] != 0;
  if (earlier) return; /* all threads of the block */
  float *to = dtable + (size_t)id * width;
  for (size_t chunk = own; chunk < rows; chunk += blockDim.x) {
    const size_t r = chunk + threadIdx.x;
    const unsigned bits = __ballot_sync(0xffffffffu, r < rows && ids[r] == id);
    __syncthreads();
    if (lane == 0) found[warp] = bits;
    __syncthreads();
    for (size_t w = 0; w < PL_WARPS; w++)
      for (unsigned left = found[w]; left != 0; left &= left - 1) {
        const float *from = dout + (chunk + w * PL_WARP + (size_t)__ffs((int)left) - 1) * width;
        for (size_t j = threadIdx.x; j < width; j += blockDim.x) to[j] += from[j];
      }
  }
}

PL_KERNEL add_rows(size_t n, size_t width, size_t period, const float *table, float *x) {
  for (size_t i = pl_first(); i < n; i += pl_stride()) x[i] += table[i / width % period * width + i % width];
}

/* `period` rows side by side are one row; the last one may not be whole. */
struct repeated_term {
  const float *dx;
  size_t cols, n;
  __device__ float operator()(size_t r, size_t j) const { return r * cols + j < n ? dx[r * cols + j] : 0; }
};

PL_KERNEL rotate(size_t pairs, size_t time, size_t heads, size_t half, float sign, const float *table, float *x) {
  for (size_t i = pl_first(); i < pairs; i += pl_stride()) {
    const size_t within = i % half, head = i / half, row = head / heads;
    const float *angles = table + row % time * 2 * half;
    float *low = x + head * 2 * half + within, *high = low + half;
    const float a = *low, b = *high, c = angles[within], s = sign * angles[half + within];
    *low = a * c - b * s;
    *high = b * c + a * s;
  }
}

void pl_cuda_embedding_forward(pl_device *d, size_t rows, size_t width, const int32_t *ids, const float *table, float *out) {
  const size_t n = rows * width;
  if (n > 0) PL_LAUNCH(d, embed, pl_cuda_blocks(n), PL_CUDA_BLOCK, n, width, ids, table, out);
}

void pl_cuda_embedding_backward(pl_device *d, size_t rows, size_t width, const int32_t *ids, const float *dout, float *dtable) {
  if (rows > 0) PL_LAUNCH(d, embed_gradient, (unsigned)rows, PL_CUDA_BLOCK, rows, width, ids, dout, dtable);
}

void pl_cuda_add_rows_forward(pl_device *d, size_t rows, size_t width, size_t period, const float *table, float *x) {
  const size_t n = rows * width;
  if (n > 0) PL_LAUNCH(d, add_rows, pl_cuda_blocks(n), PL_CUDA_BLOCK, n, width, period, table, x);
}

void pl_cuda_add_rows_backward(pl_device *d, size_t rows, size_t width, size_t period, const float *dx, float *dtable) {
  const size_t cols = period * width;
  const size_t all = (rows + period - 1) / period;
  pl_columns(d, all, cols, repeated_term{dx, cols, rows * width}, dtable);
}

void pl_cuda_rope(pl_device *d, size_t rows, size_t time, size_t heads, size_t head_dim, const float *table, bool inverse, float *x) {
  const size_t pairs = rows * heads * (head_dim / 2);
  const float sign = inverse ? -1.0f : 1.0f;
  if (pairs > 0) PL_LAUNCH(d, rotate, pl_cuda_blocks(pairs), PL_CUDA_BLOCK, pairs, time, heads, head_dim / 2, sign, table, x);
}
