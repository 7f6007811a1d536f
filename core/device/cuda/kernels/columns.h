/* Sums over the rows of a matrix that is computed on the way: out[j] += sum over r of term(r, j), r ascending within a
 * part and the parts in their order, so that the bits depend on the shape only. */
#ifndef PL_DEVICE_CUDA_KERNELS_COLUMNS_H
#define PL_DEVICE_CUDA_KERNELS_COLUMNS_H

#include "core/device/cuda/kernels/kernel.h"

enum { PL_COLUMN_LANES = PL_CUDA_BLOCK / PL_WARP, PL_COLUMN_ROWS = 32 * PL_COLUMN_LANES };

/* A block adds `part` rows of 32 columns, its warps take the rows in turn; into its row of `parts`, or straight to out
 * where there is one part only. */
template <typename Term>
PL_KERNEL pl_columns_part(size_t rows, size_t cols, size_t part, Term term, float *parts, float *out) {
  PL_SHARED(float, sums, PL_CUDA_BLOCK);
  const size_t lane = threadIdx.x % PL_WARP, warp = threadIdx.x / PL_WARP, j = (size_t)blockIdx.x * PL_WARP + lane;
  const size_t first = (size_t)blockIdx.y * part, end = first + part < rows ? first + part : rows;
  float sum = 0;
  if (j < cols)
    for (size_t r = first + warp; r < end; r += PL_COLUMN_LANES) sum += term(r, j);
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (warp > 0 || j >= cols) return;
  for (int w = 1; w < PL_COLUMN_LANES; w++) sum += sums[w * PL_WARP + lane];
  if (gridDim.y > 1)
    parts[(size_t)blockIdx.y * cols + j] = sum;
  else
    out[j] += sum;
}

PL_KERNEL pl_columns_add(size_t parts, size_t cols, const float *part, float *out) {
  for (size_t j = pl_first(); j < cols; j += pl_stride()) {
    float sum = part[j];
    for (size_t p = 1; p < parts; p++) sum += part[p * cols + j];
    out[j] += sum;
  }
}

/* Adds to out[cols]. */
template <typename Term> static void pl_columns(pl_device *d, size_t rows, size_t cols, Term term, float *out) {
  if (rows == 0 || cols == 0) return;
  const size_t most = PL_CUDA_COLUMNS / cols > 0 ? PL_CUDA_COLUMNS / cols : 1;
  size_t parts = (rows + PL_COLUMN_ROWS - 1) / PL_COLUMN_ROWS;
  if (parts > most) parts = most;
  const size_t part = (rows + parts - 1) / parts;
  parts = (rows + part - 1) / part;
  float *room = pl_cuda_of(d)->columns;
  const dim3 grid((unsigned)((cols + PL_WARP - 1) / PL_WARP), (unsigned)parts);
  PL_LAUNCH(d, pl_columns_part<Term>, grid, PL_CUDA_BLOCK, rows, cols, part, term, room, out);
  if (parts > 1) PL_LAUNCH(d, pl_columns_add, pl_cuda_blocks(cols), PL_CUDA_BLOCK, parts, cols, room, out);
}

#endif
