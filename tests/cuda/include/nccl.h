/* The part of NCCL's interface that pipelag uses, for the host, between processes of one machine; and of the CUDA
 * runtime's interface what goes with it: events, and where a GPU is. Every argument is checked against the documented
 * rules and pipelag's own (core/pipeline/nccl/peers.h). Names and numbers are NVIDIA's (NCCL 2.28, CUDA 13.0). */
#ifndef PL_TESTS_CUDA_NCCL_H
#define PL_TESTS_CUDA_NCCL_H

#include "cuda_runtime_api.h"

#define NCCL_VERSION_CODE 22809
#define NCCL_UNIQUE_ID_BYTES 128
#define PL_FAKE_UNDEFINED (-2147483647 - 1)
#define NCCL_CONFIG_INITIALIZER                                                                                        \
  { sizeof(ncclConfig_t), 0xcafebeef, NCCL_VERSION_CODE, PL_FAKE_UNDEFINED, PL_FAKE_UNDEFINED }
#define cudaErrorNotReady ((cudaError_t)600)

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ncclComm *ncclComm_t;
typedef struct ncclUniqueId {
  char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;
typedef enum ncclResult_t {
  ncclSuccess = 0,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclRemoteError = 6,
  ncclInProgress = 7
} ncclResult_t;
typedef enum ncclDataType_t { ncclFloat32 = 7 } ncclDataType_t;
/* Of the real one the first members, and one of the later. */
typedef struct ncclConfig_t {
  size_t size;
  unsigned magic, version;
  int blocking, maxCTAs;
} ncclConfig_t;

ncclResult_t ncclGetVersion(int *version);
ncclResult_t ncclGetUniqueId(ncclUniqueId *out);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int count, ncclUniqueId id, int rank, ncclConfig_t *config);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t ncclRecv(void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream);
const char *ncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t comm);

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaDeviceGetPCIBusId(char *out, int size, int device);

/* For tests: the library's version from now on. */
void pl_fake_nccl_version(int version);
/* For tests: communicators that were not aborted, exchanges that are not over, arrays that have arrived here. */
size_t pl_fake_nccl_open(void);
size_t pl_fake_nccl_under_way(void);
size_t pl_fake_nccl_arrived(void);

#ifdef __cplusplus
}
#endif

#endif
