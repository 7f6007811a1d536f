/* What the device tests share: arrays on a device, numbers to fill them, comparing, and walking all CPU devices. */
#ifndef PL_TESTS_CONFORM_DEVICE_BED_H
#define PL_TESTS_CONFORM_DEVICE_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/device/device.h"

#ifdef PL_F64
#define TOLERANCE 1e-12
#else
#define TOLERANCE 1e-5
#endif

/* A device and the arrays of one check. Checks return the largest deviation from the expected numbers. */
typedef struct bed {
  pl_device *d;
  void *arrays[64];
  size_t count;
  double worst;
} bed;

static inline void *array(bed *b, size_t bytes) {
  pl_err e = {0};
  void *p = NULL;
  assert_true(b->count < 64);
  assert_int_equal(b->d->ops->alloc(b->d, bytes, "a test array", &p, &e), PL_OK);
  return b->arrays[b->count++] = p;
}

static inline pl_real *put(bed *b, size_t n, const double *x) {
  pl_real *host = calloc(n + 1, sizeof *host), *p = array(b, n * sizeof *p);
  assert_non_null(host);
  for (size_t i = 0; i < n; i++) host[i] = (pl_real)x[i];
  b->d->ops->upload(b->d, p, host, n * sizeof *p);
  free(host);
  return p;
}

static inline int32_t *put_ids(bed *b, size_t n, const int32_t *ids) {
  int32_t *p = array(b, n * sizeof *p);
  b->d->ops->upload(b->d, p, ids, n * sizeof *p);
  return p;
}

static inline pl_real *room(bed *b, size_t n) { return array(b, n * sizeof(pl_real)); }

/* Host numbers that are exact in the working precision and differ in every element. */
static inline double *numbers(size_t n, double seed) {
  double *x = calloc(n + 1, sizeof *x);
  assert_non_null(x);
  for (size_t i = 0; i < n; i++) x[i] = (double)(pl_real)sin(0.7 * (double)(i + 1) + seed);
  return x;
}

static inline double *zeros(size_t n) {
  double *x = calloc(n + 1, sizeof *x);
  assert_non_null(x);
  return x;
}

static inline double deviation(double got, double want) {
  const double error = fabs(got - want) / fmax(1, fabs(want));
  return isnan(error) ? HUGE_VAL : error;
}

static inline void expect(bed *b, size_t n, const pl_real *p, const double *want) {
  pl_real *got = calloc(n + 1, sizeof *got);
  assert_non_null(got);
  b->d->ops->download(b->d, got, p, n * sizeof *got);
  for (size_t i = 0; i < n; i++) b->worst = fmax(b->worst, deviation((double)got[i], want[i]));
  free(got);
}

static inline double finish(bed *b) {
  while (b->count > 0) b->d->ops->free(b->d, b->arrays[--b->count]);
  return b->worst;
}

/* Opens a device with the kernels of one instruction set; NULL when this build or machine does not have them. */
static inline pl_device *open_threads(const char *name, const char *isa, size_t threads) {
  pl_device *d = NULL;
  pl_err e = {0};
  setenv("PIPELAG_ISA", isa, 1);
  const pl_status st = pl_device_open(name, PL_PRECISION_FP32, threads, &d, &e);
  unsetenv("PIPELAG_ISA");
  if (st != PL_OK) assert_int_equal(st, PL_BAD);
  return d;
}

static inline pl_device *open_device(const char *name, const char *isa) { return open_threads(name, isa, 1); }

/* With PL_TEST_CUDA, in programs that have the CUDA device on the host in them, that alone. */
#ifdef PL_TEST_CUDA
static const char *const device_names[] = {"cuda"};
static const char *const isa_names[] = {"base"};
#else
static const char *const device_names[] = {"cpu", "paranoid"};
static const char *const isa_names[] = {"base", "avx2", "avx512"};
#endif
enum { DEVICES = sizeof device_names / sizeof *device_names, ISAS = sizeof isa_names / sizeof *isa_names };

/* Runs `body` on every device with every instruction set; there is at least one of each device. */
static inline void on_each_device(void (*body)(pl_device *d)) {
  size_t opened = 0;
  for (size_t i = 0; i < DEVICES; i++)
    for (size_t j = 0; j < ISAS; j++) {
      pl_device *d = open_device(device_names[i], isa_names[j]);
      if (!d) continue;
      opened++;
      body(d);
      pl_device_close(d);
    }
  assert_true(opened >= DEVICES);
}

#endif
