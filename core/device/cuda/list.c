#include "core/device/cuda/list.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

/* Without a driver the runtime leaves the number as it is. */
pl_status pl_cuda_count(int *count, pl_err *e) {
  *count = 0;
  const cudaError_t code = cudaGetDeviceCount(count);
  if (code == cudaErrorInsufficientDriver) return pl_fail(e, PL_BAD, "cuda: no device (driver not found)");
  if (code != cudaSuccess) return pl_fail(e, PL_BAD, "cuda: no device (%s)", cudaGetErrorString(code));
  return *count > 0 ? PL_OK : pl_fail(e, PL_BAD, "cuda: no device");
}

static pl_status describe(int ordinal, pl_gpu *out, pl_err *e) {
  struct cudaDeviceProp p;
  const cudaError_t code = cudaGetDeviceProperties(&p, ordinal);
  if (code != cudaSuccess) return pl_fail(e, PL_FAIL, "cuda: GPU %d: %s", ordinal, cudaGetErrorString(code));
  *out = (pl_gpu){.bytes = p.totalGlobalMem, .major = p.major, .minor = p.minor};
  snprintf(out->name, sizeof out->name, "%s", p.name);
  return PL_OK;
}

pl_status pl_cuda_list(pl_gpu *out, size_t room, size_t *count, pl_err *e) {
  int found = 0;
  *count = 0;
  pl_status st = pl_cuda_count(&found, e);
  for (size_t i = 0; st == PL_OK && i < room && i < (size_t)found; i++) st = describe((int)i, &out[i], e);
  if (st == PL_OK) *count = (size_t)found;
  return st;
}
