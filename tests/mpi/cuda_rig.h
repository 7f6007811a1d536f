/* What the tests of several processes on GPUs share: the CUDA device on the host, with the doubles of tests/cuda. The
 * program's first argument says how arrays travel:
 *   direct  every process has a GPU to itself, so NCCL is what carries them
 *   staged  all share one, so they are copied in the hosts' memory
 *   fenced  the same on a device whose memory the host cannot touch */
#ifndef PL_TESTS_MPI_CUDA_RIG_H
#define PL_TESTS_MPI_CUDA_RIG_H

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "tests/mpi/cuda_fence.h"
#include "tests/mpi/mpi_rig.h"

typedef enum rig_way { DIRECT, STAGED, FENCED, WAYS } rig_way;
static rig_way way;

static inline bool rig_choose(int count, char **argument) {
  static const char *const names[WAYS] = {"direct", "staged", "fenced"};
  for (way = DIRECT; count == 2 && way < WAYS; way++)
    if (strcmp(argument[1], names[way]) == 0) break;
  pl_fake_cuda_devices(way == DIRECT ? 8 : 1, (size_t)1 << 34);
  if (way == FENCED) setenv("PIPELAG_NCCL", "off", 1);
  return count == 2 && way < WAYS;
}

static inline pl_device *open_gpu(void) { return way == FENCED ? fence_device() : open_device("cuda"); }

static inline void close_gpu(pl_device *d) {
  if (way == FENCED)
    fence_close();
  else
    pl_device_close(d);
}

/* The way was taken; nothing of NCCL is left. */
static inline void expect_way(void) {
  static const char *const notes[WAYS] = {"between GPUs: NCCL 2.28.9", "ranks 0 and 1 share GPU 0000:01:00.0",
                                          "copies in the hosts' memory; rank 0: PIPELAG_NCCL is off"};
  if (!strstr(world->note, notes[way])) fail_msg("\"%s\" instead of \"%s\"", world->note, notes[way]);
  assert_true((pl_fake_nccl_arrived() > 0) == (way == DIRECT));
  assert_int_equal(pl_fake_nccl_open(), 0);
}

static inline pl_real *take_on(pl_device *d, size_t n) {
  pl_err e = {0};
  void *memory = NULL;
  must(d->ops->alloc(d, n * sizeof(pl_real), "a test", &memory, &e), &e);
  return memory;
}

static inline void write_on(pl_device *d, pl_real *to, const pl_real *from, size_t n) {
  d->ops->upload(d, to, from, n * sizeof *to);
}

static inline void read_from(pl_device *d, pl_real *to, const pl_real *from, size_t n) {
  pl_err e = {0};
  d->ops->download(d, to, from, n * sizeof *to);
  must(d->ops->check(d, &e), &e);
}

#endif
