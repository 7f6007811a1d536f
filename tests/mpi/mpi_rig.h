/* What the tests of several processes share. Every process runs the same tests; rank 0 prints. One that fails ends all
 * at once, for the others would wait for it. Includes cmocka. */
#ifndef PL_TESTS_MPI_MPI_RIG_H
#define PL_TESTS_MPI_MPI_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/pipeline/world.h"

static pl_world *world;

static inline void must(pl_status st, const pl_err *e) {
  if (st != PL_OK) fail_msg("rank %zu: %s", world ? world->rank : 0, e->text);
}

static inline void *take(size_t count, size_t size) {
  pl_err e = {0};
  void *memory = NULL;
  must(pl_alloc(count, size, "a test", &memory, &e), &e);
  return memory;
}

static inline pl_device *open_device(const char *name) {
  pl_err e = {0};
  pl_device *device = NULL;
  must(pl_device_open(name, PL_PRECISION_FP32, 1, &device, &e), &e);
  return device;
}

/* Everybody is here. */
static inline void meet(void) {
  pl_err e = {0};
  must(world->type->agree(world, PL_OK, &e), &e);
}

#define RIG_RUN(tests) rig_run(tests, sizeof(tests) / sizeof *(tests))

static inline int rig_run(const struct CMUnitTest *tests, size_t count) {
  pl_err e = {0};
  setenv("CMOCKA_TEST_ABORT", "1", 1);
  must(pl_world_open(&world, &e), &e);
  if (strcmp(world->type->name, "mpi") != 0) return 1;
  if (world->rank > 0 && !freopen("/dev/null", "w", stdout)) return 1;
  int failed = _cmocka_run_group_tests("mpi", tests, count, NULL, NULL);
  world->type->close(world);
  return failed;
}

#endif
