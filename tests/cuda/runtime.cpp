/* The CUDA runtime on the host. Arguments that the documentation does not allow abort the process with the reason. */
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

struct CUstream_st {
  int alive;
};

namespace {

struct fake {
  std::map<uintptr_t, size_t> device, pinned; /* allocations: address, bytes */
  size_t used = 0, total = size_t{1} << 34;
  int count = 1;
  std::string failing;
  cudaError_t failure = cudaSuccess, last = cudaSuccess;
};

} // namespace

static fake &self() {
  static fake f;
  return f;
}

[[noreturn]] static void refuse(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fputs("cuda: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
  std::abort();
}

static cudaError_t ends(const char *name, cudaError_t otherwise = cudaSuccess) {
  fake &f = self();
  if (f.failing == name) return f.last = f.failure;
  return otherwise == cudaSuccess ? cudaSuccess : f.last = otherwise;
}

void pl_fake_cuda_fail(const char *name, cudaError_t code) {
  self().failing = name ? name : "";
  self().failure = code;
}

void pl_fake_cuda_devices(int count, size_t bytes) {
  self().count = count;
  self().total = bytes;
}

cudaError_t cudaGetDeviceCount(int *count) {
  const cudaError_t code = ends(__func__);
  if (code != cudaSuccess) return code; /* like the real one, which leaves *count alone */
  *count = self().count;
  return *count > 0 ? cudaSuccess : ends(__func__, cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int device) {
  return ends(__func__, device < 0 || device >= self().count ? cudaErrorInvalidDevice : cudaSuccess);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device) {
  if (device < 0 || device >= self().count) return ends(__func__, cudaErrorInvalidDevice);
  *out = {};
  std::snprintf(out->name, sizeof out->name, "host double");
  out->major = 9;
  out->multiProcessorCount = 4;
  out->totalGlobalMem = self().total;
  return ends(__func__);
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
  *total = self().total;
  *available = self().total - self().used;
  return ends(__func__);
}

cudaError_t cudaDriverGetVersion(int *version) {
  *version = 13000;
  return ends(__func__);
}

cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = 13000;
  return ends(__func__);
}

/* Full of NaN, as memory may be. */
static cudaError_t take(std::map<uintptr_t, size_t> &where, void **out, size_t bytes) {
  if (posix_memalign(out, 256, bytes ? bytes : 1) != 0) return cudaErrorMemoryAllocation;
  std::memset(*out, 0xff, bytes);
  where[reinterpret_cast<uintptr_t>(*out)] = bytes;
  return cudaSuccess;
}

static size_t give(std::map<uintptr_t, size_t> &where, void *p, const char *name) {
  const auto found = where.find(reinterpret_cast<uintptr_t>(p));
  if (found == where.end()) refuse("%s of what it did not allocate", name);
  const size_t bytes = found->second;
  where.erase(found);
  std::free(p);
  return bytes;
}

cudaError_t cudaMalloc(void **out, size_t bytes) {
  const cudaError_t code = ends(__func__);
  if (code != cudaSuccess) return code;
  if (bytes > self().total - self().used) return ends(__func__, cudaErrorMemoryAllocation);
  const cudaError_t taken = take(self().device, out, bytes);
  if (taken == cudaSuccess) self().used += bytes;
  return ends(__func__, taken);
}

cudaError_t cudaFree(void *p) {
  if (p && pl_fake_nccl_under_way() > 0) refuse("cudaFree waits for the GPU, on which an exchange is under way");
  if (p) self().used -= give(self().device, p, __func__);
  return ends(__func__);
}

cudaError_t cudaMallocHost(void **out, size_t bytes) {
  const cudaError_t code = ends(__func__);
  return code == cudaSuccess ? ends(__func__, take(self().pinned, out, bytes)) : code;
}

cudaError_t cudaFreeHost(void *p) {
  if (p) give(self().pinned, p, __func__);
  return ends(__func__);
}

/* Whether the bytes are inside of one allocation on the device; half inside is a mistake. */
static bool on_device(const void *p, size_t bytes) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(p);
  auto next = self().device.upper_bound(at);
  if (next == self().device.begin()) return false;
  --next;
  if (at >= next->first + next->second) return false;
  if (at + bytes > next->first + next->second) refuse("%zu bytes reach beyond their allocation", bytes);
  return true;
}

static void check_stream(cudaStream_t stream) {
  if (!stream || !stream->alive) refuse("the default stream, or one that is gone");
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  check_stream(stream);
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (on_device(to, bytes) != to_device) refuse("kind %d of a copy to %s memory", kind, to_device ? "host" : "device");
  if (on_device(from, bytes) != from_device) refuse("kind %d of a copy from %s memory", kind, from_device ? "host" : "device");
  std::memmove(to, from, bytes);
  return ends(__func__);
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t stream) {
  check_stream(stream);
  if (!on_device(p, bytes)) refuse("cudaMemsetAsync of host memory");
  std::memset(p, value, bytes);
  return ends(__func__);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
  if (flags & ~1u) refuse("stream flags %u", flags);
  const cudaError_t code = ends(__func__);
  if (code == cudaSuccess) *out = new CUstream_st{1};
  return code;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  check_stream(stream);
  delete stream;
  return ends(__func__);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  check_stream(stream);
  return ends(__func__);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  check_stream(stream);
  return ends(__func__);
}

cudaError_t cudaGetLastError(void) {
  const cudaError_t code = self().last;
  self().last = cudaSuccess;
  return code;
}

const char *cudaGetErrorString(cudaError_t code) {
  switch (code) {
  case cudaSuccess: return "no error";
  case cudaErrorInvalidValue: return "invalid argument";
  case cudaErrorMemoryAllocation: return "out of memory";
  case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
  case cudaErrorNoDevice: return "no CUDA-capable device is detected";
  case cudaErrorInvalidDevice: return "invalid device ordinal";
  case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
  }
  return "unrecognized error code";
}
