/* NCCL on the host: what its two files share. */
#ifndef PL_TESTS_CUDA_NCCL_DOUBLE_H
#define PL_TESTS_CUDA_NCCL_DOUBLE_H

#include <nccl.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

enum frame_kind { HELLO, POSTED, DATA };

struct frame { /* goes before an array, or alone */
  uint64_t kind, number, count;
};

struct operation {
  bool sends, over;
  char *data;
  size_t count;
  int peer;
  uint64_t number; /* among those of its direction between the two ranks */
  double since;    /* seconds: when both sides had begun */
};

/* What one call, or a group of calls, has put into a stream. */
struct launch {
  ncclComm_t comm;
  cudaStream_t stream;
  std::vector<operation> operations;
  bool begun = false, over = false;
};

struct other_rank {
  int socket = -1;
  bool hello_sent = false, connected = false, gone = false;
  uint64_t sends = 0, receives = 0;           /* that were asked for */
  std::deque<frame> posted;                   /* receives there, without their send here */
  std::deque<operation *> sending, receiving; /* that were begun */
  std::string in, out;
};

struct waited {
  bool fresh;      /* since the stream's last exchange */
  bool again;      /* the event was waited for before, and not recorded since */
  size_t launches; /* kernels before the event that it waits for */
};

struct fake_nccl {
  std::mutex lock;
  std::vector<ncclComm_t> comms;
  std::map<cudaStream_t, std::deque<std::shared_ptr<launch>>> streams; /* exchanges that are not over */
  std::map<cudaStream_t, waited> waits;
  std::vector<std::pair<ncclComm_t, std::pair<cudaStream_t, operation>>> group;
  int depth = 0, version = NCCL_VERSION_CODE;
  size_t arrived = 0;
  bool threaded = false;
};

struct ncclComm {
  int rank, count;
  std::string name;
  std::vector<other_rank> others;
  std::deque<std::shared_ptr<launch>> queue; /* not over */
};

struct CUevent_st {
  bool recorded, waited;
  size_t launches;
  std::shared_ptr<launch> last;
};

/* All that there is; the lock is held where anything of it is used. */
fake_nccl &pl_fake_nccl();

[[noreturn]] void pl_fake_nccl_refuse(const char *format, ...);

/* nccl_sockets.cpp. Meets the other ranks of a new communicator, which say so within a minute, or the process ends. */
void pl_fake_nccl_meet(ncclComm_t comm);

/* Blocks until those ranks have come to their first exchange with this one. */
void pl_fake_nccl_connect(const std::vector<operation> &operations, ncclComm_t comm);

/* Whatever can go on goes on; the thread does it for ever. */
void pl_fake_nccl_move();
void pl_fake_nccl_start_thread();

#endif
