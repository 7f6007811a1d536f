/* What kernels are written with: CUDA C++. The tests compile the same sources for the host, where <cuda_runtime.h> is
 * one of their own that runs grids, blocks and warps for real; PL_LAUNCH and PL_SHARED, which C++ has no syntax for,
 * are then its as well. */
#ifndef PL_DEVICE_CUDA_KERNELS_KERNEL_H
#define PL_DEVICE_CUDA_KERNELS_KERNEL_H

#include <cuda_runtime.h>

extern "C" {
#include "core/device/cuda/cuda.h"
}

#ifndef PL_LAUNCH
/* Runs a kernel on the device's stream; grid and block are dim3 or numbers, the grid not empty. */
#define PL_LAUNCH(d, kernel, grid, block, ...)                                                                         \
  do {                                                                                                                 \
    kernel<<<(grid), (block), 0, pl_cuda_of(d)->stream>>>(__VA_ARGS__);                                                \
    pl_cuda_note((d), cudaGetLastError(), #kernel);                                                                    \
  } while (0)

/* An array that the threads of a block share; undefined at first. At most 48 KiB in a kernel. */
#define PL_SHARED(type, name, count) __shared__ type name[count]
#endif

#define PL_KERNEL static __global__ void
#define PL_INLINE static __device__ __forceinline__

enum { PL_WARP = 32, PL_WARPS = PL_CUDA_BLOCK / PL_WARP };

/* This thread's place in the grid, and how many there are: for (size_t i = pl_first(); i < n; i += pl_stride()). */
PL_INLINE size_t pl_first(void) { return (size_t)blockIdx.x * blockDim.x + threadIdx.x; }
PL_INLINE size_t pl_stride(void) { return (size_t)gridDim.x * blockDim.x; }

/* Sum over the warp, in a fixed tree; every lane gets it. All lanes must call. */
template <typename T> PL_INLINE T pl_warp_sum(T x) {
  for (int step = PL_WARP / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

PL_INLINE float pl_warp_max(float x) {
  for (int step = PL_WARP / 2; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}

/* Sum over a block of PL_CUDA_BLOCK threads, in a fixed order; every thread gets it. All threads must call. */
template <typename T> PL_INLINE T pl_block_sum(T x) {
  PL_SHARED(T, part, PL_WARPS);
  x = pl_warp_sum(x);
  __syncthreads(); /* an earlier sum has been read */
  if (threadIdx.x % PL_WARP == 0) part[threadIdx.x / PL_WARP] = x;
  __syncthreads();
  T sum = part[0];
  for (int w = 1; w < PL_WARPS; w++) sum += part[w];
  return sum;
}

PL_INLINE float pl_block_max(float x) {
  PL_SHARED(float, part, PL_WARPS);
  x = pl_warp_max(x);
  __syncthreads();
  if (threadIdx.x % PL_WARP == 0) part[threadIdx.x / PL_WARP] = x;
  __syncthreads();
  float top = part[0];
  for (int w = 1; w < PL_WARPS; w++) top = fmaxf(top, part[w]);
  return top;
}

#endif
