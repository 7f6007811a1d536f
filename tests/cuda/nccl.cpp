/* NCCL on the host, between processes of one machine, over sockets. What a GPU does beside its host is done by a thread:
 * exchanges go on whatever the program does meanwhile. Like the real one a send is over only when the other side has
 * posted its receive, exchanges of one communicator and of one stream follow each other, and the first one of two ranks
 * blocks its caller until the other rank has come to it. What the documentation or pipelag's own rules do not allow
 * aborts the process with the reason. */
#include "tests/cuda/nccl_double.h"

#include <unistd.h>

#include <chrono>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/cuda/grid.h"

/* Never destroyed: the thread may outlive main. */
fake_nccl &pl_fake_nccl() {
  static fake_nccl *w = new fake_nccl;
  return *w;
}

void pl_fake_nccl_refuse(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fputs("nccl: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
  std::abort();
}

#define refuse pl_fake_nccl_refuse
#define self pl_fake_nccl

static bool is_open(ncclComm_t comm) {
  for (ncclComm_t c : self().comms)
    if (c == comm) return true;
  return false;
}

ncclResult_t ncclGetVersion(int *version) {
  *version = self().version;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *out) {
  static int count;
  *out = {};
  std::snprintf(out->internal, sizeof out->internal, "%ld.%d", static_cast<long>(getpid()), count++);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int count, ncclUniqueId id, int rank, ncclConfig_t *config) {
  if (config->size != sizeof *config || config->magic != 0xcafebeef || config->version != NCCL_VERSION_CODE)
    refuse("a configuration that was not initialised");
  if (config->blocking != 1 || config->maxCTAs < 1 || config->maxCTAs > 32)
    refuse("blocking is %d, maxCTAs %d", config->blocking, config->maxCTAs);
  if (rank < 0 || rank >= count) refuse("rank %d of %d", rank, count);
  if (self().depth > 0) refuse("ncclCommInitRank in a group");
  ncclComm_t comm = new ncclComm{rank, count, id.internal, std::vector<other_rank>(static_cast<size_t>(count)), {}};
  pl_fake_nccl_meet(comm);
  std::lock_guard<std::mutex> guard(self().lock);
  self().comms.push_back(comm);
  if (!self().threaded) pl_fake_nccl_start_thread();
  self().threaded = true;
  *out = comm;
  return ncclSuccess;
}

static size_t count_under_way() {
  size_t count = 0;
  for (ncclComm_t c : self().comms) count += c->queue.size();
  return count;
}

/* Like the real one, which frees memory. */
static void wait_for_the_gpu() {
  for (int left = 50000;; left--) {
    {
      std::lock_guard<std::mutex> guard(self().lock);
      pl_fake_nccl_move();
      if (count_under_way() == 0) return;
      if (left == 0) refuse("ncclCommAbort waits for the GPU, on which an exchange of another communicator is under way");
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

static void drop_launches(ncclComm_t comm) {
  for (const std::shared_ptr<launch> &l : comm->queue) {
    std::deque<std::shared_ptr<launch>> &stream = self().streams[l->stream];
    for (size_t i = 0; i < stream.size(); i++)
      if (stream[i] == l) stream.erase(stream.begin() + static_cast<std::ptrdiff_t>(i));
    l->over = true;
  }
  comm->queue.clear();
  for (other_rank &o : comm->others) {
    if (o.socket >= 0) close(o.socket);
    o = other_rank();
    o.gone = true;
  }
}

/* Its kernels end, without having done anything. */
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  {
    std::lock_guard<std::mutex> guard(self().lock);
    if (!is_open(comm)) refuse("ncclCommAbort of what is not open");
    if (self().depth > 0) refuse("ncclCommAbort in a group");
    drop_launches(comm);
  }
  wait_for_the_gpu();
  std::lock_guard<std::mutex> guard(self().lock);
  std::vector<ncclComm_t> &comms = self().comms;
  for (size_t i = 0; i < comms.size(); i++)
    if (comms[i] == comm) comms.erase(comms.begin() + static_cast<std::ptrdiff_t>(i));
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state) {
  std::lock_guard<std::mutex> guard(self().lock);
  if (!is_open(comm)) refuse("ncclCommGetAsyncError of what is not open");
  pl_fake_nccl_move();
  *state = ncclSuccess;
  for (const other_rank &o : comm->others)
    if (o.gone) *state = ncclRemoteError;
  return ncclSuccess;
}

static void check_wait(const launch &l) {
  const auto w = self().waits.find(l.stream);
  if (w == self().waits.end() || !w->second.fresh)
    refuse("an exchange that waits for no event: it may begin before what it sends is computed");
  if (l.operations.size() == 1 && l.operations[0].sends && w->second.launches != pl_grid_launches())
    refuse("a send that does not wait for the kernels that were launched last");
  if (l.operations.size() == 1 && !l.operations[0].sends && w->second.again)
    refuse("a receive that waits for no new event: what reads its memory may not have ended");
  w->second.fresh = false;
}

static void start(ncclComm_t comm, cudaStream_t stream, const std::vector<operation> &operations) {
  auto l = std::make_shared<launch>();
  l->comm = comm;
  l->stream = stream;
  l->operations = operations;
  check_wait(*l);
  pl_fake_nccl_connect(operations, comm);
  for (operation &x : l->operations) {
    other_rank &o = comm->others[static_cast<size_t>(x.peer)];
    x.number = x.sends ? o.sends++ : o.receives++;
  }
  comm->queue.push_back(l);
  self().streams[stream].push_back(l);
  pl_fake_nccl_move();
}

ncclResult_t ncclGroupStart(void) {
  std::lock_guard<std::mutex> guard(self().lock);
  self().depth++;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
  std::lock_guard<std::mutex> guard(self().lock);
  fake_nccl &w = self();
  if (w.depth == 0) refuse("ncclGroupEnd without a start");
  if (--w.depth > 0 || w.group.empty()) return ncclSuccess;
  std::vector<operation> operations;
  const ncclComm_t comm = w.group[0].first;
  const cudaStream_t stream = w.group[0].second.first;
  for (const auto &entry : w.group) {
    if (entry.first != comm || entry.second.first != stream) refuse("a group with two communicators or streams");
    operations.push_back(entry.second.second);
  }
  w.group.clear();
  start(comm, stream, operations);
  return ncclSuccess;
}

static ncclResult_t add(bool sends, void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                        cudaStream_t stream) {
  const char *name = sends ? "ncclSend" : "ncclRecv";
  std::lock_guard<std::mutex> guard(self().lock);
  if (!is_open(comm)) refuse("%s in what is not open", name);
  if (count == 0 || type != ncclFloat32) refuse("%s of %zu numbers of type %d", name, count, static_cast<int>(type));
  if (peer < 0 || peer >= comm->count || peer == comm->rank) refuse("%s: rank %d and rank %d", name, comm->rank, peer);
  const operation x = {sends, false, static_cast<char *>(data), count, peer, 0, 0};
  self().group.push_back({comm, {stream, x}});
  if (self().depth > 0) return ncclSuccess;
  refuse("%s outside of a group", name);
}

ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  void *p = const_cast<void *>(data);
  (void)cudaMemcpyAsync(p, p, count * sizeof(float), cudaMemcpyDeviceToDevice, stream); /* checks memory and stream */
  return add(true, p, count, type, peer, comm, stream);
}

/* Until it arrives the memory is full of NaN. */
ncclResult_t ncclRecv(void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  (void)cudaMemsetAsync(data, 0xff, count * sizeof(float), stream); /* checks memory and stream */
  return add(false, data, count, type, peer, comm, stream);
}

const char *ncclGetErrorString(ncclResult_t result) {
  switch (result) {
  case ncclSuccess: return "no error";
  case ncclInternalError: return "internal error";
  case ncclInvalidArgument: return "invalid argument";
  case ncclRemoteError: return "remote process exited or there was a network error";
  case ncclInProgress: return "NCCL operation in progress";
  }
  return "unknown result code";
}

const char *ncclGetLastError(ncclComm_t comm) {
  (void)comm;
  return "";
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
  if (flags != cudaEventDisableTiming) refuse("event flags %u", flags);
  *out = new CUevent_st{false, false, 0, nullptr};
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  (void)cudaStreamQuery(stream); /* checks it */
  std::lock_guard<std::mutex> guard(self().lock);
  const std::deque<std::shared_ptr<launch>> &queue = self().streams[stream];
  *event = {true, false, pl_grid_launches(), queue.empty() ? nullptr : queue.back()};
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  std::lock_guard<std::mutex> guard(self().lock);
  pl_fake_nccl_move();
  return !event->last || event->last->over ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  (void)cudaStreamQuery(stream); /* checks it */
  std::lock_guard<std::mutex> guard(self().lock);
  if (flags != 0) refuse("flags %u of a wait", flags);
  if (!event->recorded) refuse("a wait for an event that was never recorded");
  if (event->last && !event->last->over) refuse("the GPU waits for an exchange: only the host may");
  self().waits[stream] = {true, event->waited, event->launches};
  event->waited = true;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *out, int size, int device) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || device < 0 || device >= count) return cudaErrorInvalidDevice;
  std::snprintf(out, static_cast<size_t>(size), "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}

void pl_fake_nccl_version(int version) { self().version = version; }

size_t pl_fake_nccl_open(void) {
  std::lock_guard<std::mutex> guard(self().lock);
  return self().comms.size();
}

size_t pl_fake_nccl_under_way(void) {
  std::lock_guard<std::mutex> guard(self().lock);
  return count_under_way();
}

size_t pl_fake_nccl_arrived(void) {
  std::lock_guard<std::mutex> guard(self().lock);
  return self().arrived;
}
