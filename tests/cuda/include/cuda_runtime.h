/* CUDA C++ for the host: kernels are ordinary functions, run once for every thread of every block (tests/cuda/grid.h).
 * Shared memory is allocated for each block, full of NaN, and goes with it, so that AddressSanitizer sees its ends. */
#ifndef PL_TESTS_CUDA_RUNTIME_H
#define PL_TESTS_CUDA_RUNTIME_H

#include <cmath>
#include <cstdint>
#include <cstring>

#include "cuda_runtime_api.h"

#include "fragments_host.h"

#include "tests/cuda/grid.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

#define threadIdx (pl_grid_now.thread)
#define blockIdx (pl_grid_now.block)
#define blockDim (pl_grid_now.block_size)
#define gridDim (pl_grid_now.grid_size)

#define PL_LAUNCH(d, kernel, grid, block, ...)                                                                         \
  do {                                                                                                                 \
    pl_grid_run(#kernel, (grid), (block), [&] { kernel(__VA_ARGS__); });                                               \
    pl_cuda_note((d), cudaGetLastError(), #kernel);                                                                    \
  } while (0)
#define PL_SHARED(type, name, count)                                                                                   \
  static const char name##_here = 0;                                                                                   \
  type *const name = static_cast<type *>(pl_grid_shared(&name##_here, sizeof(type) * (count)))

struct alignas(8) float2 {
  float x, y;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

static inline void __syncthreads(void) { pl_grid_barrier(); }
static inline void __syncwarp(unsigned mask = 0xffffffffu) {
  char nothing = 0;
  pl_grid_exchange(mask, &nothing, 1);
}

/* Every lane of the mask gives x; all[lane * sizeof(T)] is what each gave. */
template <typename T> static inline T pl_lane_of(const void *all, int lane) {
  T x;
  std::memcpy(&x, static_cast<const char *>(all) + static_cast<size_t>(lane) * sizeof(T), sizeof x);
  return x;
}
template <typename T> static inline T __shfl_sync(unsigned mask, T x, int lane) {
  return pl_lane_of<T>(pl_grid_exchange(mask, &x, sizeof x), lane & 31);
}
template <typename T> static inline T __shfl_xor_sync(unsigned mask, T x, int bits) {
  return pl_lane_of<T>(pl_grid_exchange(mask, &x, sizeof x), pl_grid_lane() ^ bits);
}
template <typename T> static inline T __shfl_down_sync(unsigned mask, T x, unsigned by) {
  const int lane = pl_grid_lane() + static_cast<int>(by);
  return pl_lane_of<T>(pl_grid_exchange(mask, &x, sizeof x), lane < 32 ? lane : pl_grid_lane());
}
template <typename T> static inline T __shfl_up_sync(unsigned mask, T x, unsigned by) {
  const int lane = pl_grid_lane() - static_cast<int>(by);
  return pl_lane_of<T>(pl_grid_exchange(mask, &x, sizeof x), lane >= 0 ? lane : pl_grid_lane());
}
static inline unsigned __ballot_sync(unsigned mask, int predicate) {
  const char yes = predicate != 0;
  const char *all = static_cast<const char *>(pl_grid_exchange(mask, &yes, 1));
  unsigned out = 0;
  for (int lane = 0; lane < 32; lane++)
    if (mask >> lane & 1 && all[lane]) out |= 1u << lane;
  return out;
}
static inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
static inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }

template <typename T> static inline T atomicAdd(T *p, T x) {
  const T old = *p;
  *p = old + x;
  return old;
}

using std::isfinite;
using std::isinf;
using std::isnan;

static inline float __int_as_float(int bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
static inline int __float_as_int(float x) {
  int bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline float rsqrtf(float x) { return 1 / sqrtf(x); }

#endif
