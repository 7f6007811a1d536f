/* The CUDA device, which is in a file of its own: its libraries take longer to load than a short run takes. */
#ifndef PL_DEVICE_CUDA_MODULE_H
#define PL_DEVICE_CUDA_MODULE_H

#include "core/device/device.h"

/* The file's name; it is looked for beside the program. */
#define PL_CUDA_MODULE "pipelag-cuda.so"

/* PL_BAD where the module is not there, or no GPU is. The module stays loaded. */
PL_MUST_CHECK pl_status pl_cuda_load(pl_device *d, pl_err *e);
void pl_cuda_unload(pl_device *d);

/* A GPU that this process may use. */
typedef struct pl_gpu {
  char name[256];
  size_t bytes;     /* of memory */
  int major, minor; /* compute capability */
} pl_gpu;

/* Asks the driver, without taking a GPU: the first `room` of them are written, *count is how many there are. PL_BAD
 * with the reason where the module, the driver or a GPU is missing. Children that this process forks afterwards cannot
 * use a GPU: the driver does not survive it. */
PL_MUST_CHECK pl_status pl_cuda_gpus(pl_gpu *out, size_t room, size_t *count, pl_err *e);

#endif
