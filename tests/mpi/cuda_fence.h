/* A device behind a fence: its memory is not the host's, and whoever touches it other than by the device's operations,
 * MPI included, dies of it; so does a thread that uses the device beside the one that opened it. It computes by the CPU
 * device, as much as messages and sums need. */
#ifndef PL_TESTS_MPI_CUDA_FENCE_H
#define PL_TESTS_MPI_CUDA_FENCE_H

#include <pthread.h>
#include <sys/mman.h>

#include "tests/mpi/mpi_rig.h"

enum { FENCE_BLOCKS = 256 };

static struct {
  pl_device device, *inner;
  pl_ops ops;
  size_t users;
  pthread_t owner;
  void *at[FENCE_BLOCKS]; /* NULL: none */
  size_t bytes[FENCE_BLOCKS];
} fence;

static inline void fence_set(int protection) {
  assert_true(pthread_equal(fence.owner, pthread_self()));
  for (size_t i = 0; i < FENCE_BLOCKS; i++)
    if (fence.at[i]) assert_int_equal(mprotect(fence.at[i], fence.bytes[i], protection), 0);
}

static inline void fence_open(void) { fence_set(PROT_READ | PROT_WRITE); }
static inline void fence_shut(void) { fence_set(PROT_NONE); }

static inline pl_status fence_alloc(pl_device *d, size_t bytes, const char *what, void **out, pl_err *e) {
  (void)d, (void)what, (void)e;
  size_t i = 0;
  while (fence.at[i]) i++;
  assert_true(i < FENCE_BLOCKS);
  *out = mmap(NULL, bytes + 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(*out, MAP_FAILED);
  fence.at[i] = *out;
  fence.bytes[i] = bytes + 1;
  return PL_OK;
}

static inline void fence_free(pl_device *d, void *p) {
  (void)d;
  size_t i = 0;
  while (i < FENCE_BLOCKS && fence.at[i] != p) i++;
  assert_true(i < FENCE_BLOCKS);
  munmap(p, fence.bytes[i]);
  fence.at[i] = NULL;
}

static inline void fence_copy(pl_device *d, void *to, const void *from, size_t bytes) {
  (void)d;
  fence_open();
  memcpy(to, from, bytes);
  fence_shut();
}

static inline void fence_axpby(pl_device *d, size_t n, double a, const pl_real *x, double b, pl_real *y) {
  (void)d;
  fence_open();
  fence.inner->ops->axpby(fence.inner, n, a, x, b, y);
  fence_shut();
}

static inline pl_status fence_check(pl_device *d, pl_err *e) {
  (void)d, (void)e;
  return PL_OK;
}

static inline pl_device *fence_device(void) {
  if (fence.users++ > 0) return &fence.device;
  fence.owner = pthread_self();
  fence.inner = open_device("cpu");
  fence.ops = (pl_ops){.name = "fenced",
                       .alloc = fence_alloc,
                       .free = fence_free,
                       .upload = fence_copy,
                       .download = fence_copy,
                       .copy = fence_copy,
                       .check = fence_check,
                       .axpby = fence_axpby};
  fence.device = (pl_device){.ops = &fence.ops, .threads = 1};
  return &fence.device;
}

static inline void fence_close(void) {
  if (--fence.users > 0) return;
  for (size_t i = 0; i < FENCE_BLOCKS; i++) assert_null(fence.at[i]);
  pl_device_close(fence.inner);
}

#endif
