/* What the parts of gpu_bench share. Each prints a line for people to standard error as it goes and returns what it
 * measured. */
#ifndef PL_TESTS_GPU_BENCH_H
#define PL_TESTS_GPU_BENCH_H

#include "core/base/json.h"
#include "core/device/device.h"
#include "tests/bench/bench.h"

/* Something that a GPU does; `run` returns before it is done, `wait` when it is. */
typedef struct gpu_work {
  void (*run)(void *self);
  void (*wait)(void *self);
  void *self;
} gpu_work;

/* Seconds of one call: the median of five rounds of so many calls that they fill `least` seconds, so that waiting and
 * what the first calls load do not count. */
double gpu_seconds(const gpu_work *w, double least);

/* Of the device's operations: waits for all that it was asked to do. */
void gpu_wait(pl_device *d);
/* Device memory with `n` numbers between -1 and 1; lives as long as the process. */
pl_real *gpu_numbers(pl_device *d, size_t n);
void *gpu_array(pl_device *d, size_t bytes);

/* small: sizes for the device's double. */
typedef struct gpu_sizes {
  bool small;
  double least; /* see gpu_seconds */
} gpu_sizes;

/* A copy on the GPU and square products, by NVIDIA's libraries alone: nothing here runs faster. */
pl_json *gpu_bench_ceilings(const gpu_sizes *s);
/* The operations of a model with GPT-2's width: seconds, bytes that have to move, or operations. */
pl_json *gpu_bench_kernels(const gpu_sizes *s);
/* A step of AdamW and of Muon over the hidden matrices of GPT-2 124M. */
pl_json *gpu_bench_muon(const gpu_sizes *s);

#endif
