/* Which GPUs there are. */
#ifndef PL_DEVICE_CUDA_LIST_H
#define PL_DEVICE_CUDA_LIST_H

#include "core/device/cuda_module.h"

/* How many GPUs this process may use, at least 1; PL_BAD with the reason when there is none. */
PL_MUST_CHECK pl_status pl_cuda_count(int *count, pl_err *e);

/* What pl_cuda_gpus asks for. */
PL_MUST_CHECK pl_status pl_cuda_list(pl_gpu *out, size_t room, size_t *count, pl_err *e);

#endif
