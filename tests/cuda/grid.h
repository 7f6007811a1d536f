/* Runs a kernel's grid on the host: block after block, the threads of a block as fibers that change at barriers and
 * shuffles. Within a block warps run in the order of their numbers, each until all its threads wait for other warps,
 * and so do the fibers of a warp; where the environment has PL_GRID_ORDER=backward, in the opposite one: what depends
 * on the order is a race.
 *
 * A kernel that could not run so on a GPU aborts the process, naming itself and the reason: sizes over the limits of
 * CUDA, a barrier that some threads of the block never reach, an exchange that some lanes of its mask never reach. */
#ifndef PL_TESTS_CUDA_GRID_H
#define PL_TESTS_CUDA_GRID_H

#include <cstddef>
#include <functional>

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

struct pl_grid_place {
  dim3 thread, block, block_size, grid_size;
};

/* Of the running thread. */
extern thread_local pl_grid_place pl_grid_now;

void pl_grid_run(const char *kernel, dim3 grid, dim3 block, const std::function<void()> &body);

/* __syncthreads. */
void pl_grid_barrier();

/* Every lane of `mask` gives `bytes` bytes; returns what all 32 gave, lane after lane, valid until this lane's exchange
 * after the next; of lanes outside of the mask it is NaN. */
const void *pl_grid_exchange(unsigned mask, const void *mine, size_t bytes);

/* The running thread's lane in its warp. */
int pl_grid_lane();

/* The block's array of that site, of `bytes` bytes; full of NaN when it is new. */
void *pl_grid_shared(const void *site, size_t bytes);

/* Launches since the start of the process. */
size_t pl_grid_launches();

#endif
