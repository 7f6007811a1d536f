#include "core/pipeline/nccl/peers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/device/cuda/cuda.h"
#include "core/device/profile.h"
#include "core/pipeline/nccl/library.h"

_Static_assert(sizeof(ncclUniqueId) == sizeof(pl_peers_id), "a group's name is NCCL's");

enum {
  PATIENCE = 60, /* seconds for the others to connect */
  CTAS = 4 /* blocks of an exchange's kernel, which takes that much of the GPU from what computes while it waits */
};

struct pl_peers {
  pl_peers *next;
  const pl_nccl *nccl;
  pl_cuda *gpu;
  ncclComm_t comm; /* NULL: cut off */
  cudaStream_t stream;
  size_t me, count, slots;
  cudaEvent_t *ready, *over; /* [slots] */
  void *greeting;            /* [2][count] numbers that connect */
  pthread_t closing;
  bool threaded;
};

static pl_peers *opened; /* all of them */

/* A device that measures passes everything on to the one that is meant. */
static pl_cuda *gpu_of(pl_device *d) { return pl_cuda_of(d->profile ? d->profile->inner : d); }

static pl_status cuda(cudaError_t code, const char *what, pl_err *e) {
  return code == cudaSuccess ? PL_OK : pl_fail(e, PL_FAIL, "cuda: %s: %s", what, cudaGetErrorString(code));
}

static pl_status check(const pl_nccl *l, ncclComm_t comm, ncclResult_t code, const char *what, pl_err *e) {
  if (code == ncclSuccess) return PL_OK;
  const char *more = l->GetLastError(comm);
  return pl_fail(e, PL_FAIL, "NCCL failed while %s: %s%s%s", what, l->GetErrorString(code), more && *more ? "; " : "",
                 more ? more : "");
}

static pl_status load(int *version, pl_err *e) {
  pl_status st = PL_OK;
  const pl_nccl *l = NULL;
  PL_TRY(pl_nccl_load(&l, e));
  PL_TRY(check(l, NULL, l->GetVersion(version), "telling its version", e));
out:
  return st;
}

static pl_status place(pl_device *d, char out[PL_PEERS_PLACE], pl_err *e) {
  return cuda(cudaDeviceGetPCIBusId(out, PL_PEERS_PLACE, gpu_of(d)->ordinal), "asking where the GPU is", e);
}

static pl_status make_id(pl_peers_id *out, pl_err *e) {
  pl_status st = PL_OK;
  const pl_nccl *l = NULL;
  ncclUniqueId id;
  PL_TRY(pl_nccl_load(&l, e));
  PL_TRY(check(l, NULL, l->GetUniqueId(&id), "naming a group", e));
  memcpy(out, &id, sizeof *out);
out:
  return st;
}

static pl_status mark(pl_peers *p, size_t slot, pl_err *e) {
  return cuda(cudaEventRecord(p->ready[slot], p->gpu->stream), "marking what is computed", e);
}

static pl_status add(pl_peers *p, const pl_peers_part *part, pl_err *e) {
  const int peer = (int)part->peer;
  if (part->sends)
    return check(p->nccl, p->comm, p->nccl->Send(part->data, part->count, ncclFloat32, peer, p->comm, p->stream),
                 "sending", e);
  return check(p->nccl, p->comm, p->nccl->Recv(part->data, part->count, ncclFloat32, peer, p->comm, p->stream),
               "receiving", e);
}

/* A group that was started ends, whatever happens in it. */
static pl_status add_all(pl_peers *p, const pl_peers_part *parts, size_t count, pl_err *e) {
  pl_status st = check(p->nccl, p->comm, p->nccl->GroupStart(), "starting an exchange", e);
  if (st != PL_OK) return st;
  for (size_t i = 0; st == PL_OK && i < count; i++) st = add(p, &parts[i], e);
  const pl_status end = check(p->nccl, p->comm, p->nccl->GroupEnd(), "starting an exchange", e);
  return st == PL_OK ? end : st;
}

static pl_status exchange(pl_peers *p, size_t slot, const pl_peers_part *parts, size_t count, pl_err *e) {
  pl_status st = PL_OK;
  if (!p->comm) return pl_fail(e, PL_FAIL, "an exchange between GPUs was begun after they were parted");
  PL_TRY(cuda(cudaStreamWaitEvent(p->stream, p->ready[slot], 0), "waiting for what is computed", e));
  PL_TRY(add_all(p, parts, count, e));
  PL_TRY(cuda(cudaEventRecord(p->over[slot], p->stream), "marking the end of an exchange", e));
out:
  return st;
}

/* The runtime keeps "not ready" as the latest error, where the next launch would find it. */
static cudaError_t query(cudaEvent_t event) {
  const cudaError_t code = cudaEventQuery(event);
  if (code != cudaSuccess) (void)cudaGetLastError();
  return code;
}

static pl_status over(pl_peers *p, size_t slot, bool *is_over, pl_err *e) {
  ncclResult_t state = ncclSuccess;
  *is_over = false;
  if (!p->comm) return pl_fail(e, PL_FAIL, "an exchange between GPUs was cut off"); /* its kernel has ended too */
  const cudaError_t code = query(p->over[slot]);
  *is_over = code == cudaSuccess;
  if (*is_over) return PL_OK;
  if (code != cudaErrorNotReady) return cuda(code, "exchanging arrays", e);
  const ncclResult_t asked = p->nccl->CommGetAsyncError(p->comm, &state);
  return check(p->nccl, p->comm, asked == ncclSuccess ? state : asked, "exchanging arrays with other ranks", e);
}

/* The first exchange of two ranks connects them, and its calls block until both have come: here, where all come in the
 * same order. */
static pl_status greet(pl_peers *p, pl_err *e) {
  pl_status st = PL_OK;
  const struct timespec pause = {.tv_nsec = 1000000};
  const double end = pl_clock_seconds() + PATIENCE;
  pl_peers_part *parts = NULL;
  size_t n = 0;
  pl_real *numbers = p->greeting;
  bool done = false;
  PL_TRY(pl_alloc(2 * p->count, sizeof *parts, "GPUs that exchange arrays", &parts, e));
  for (size_t i = 0; i < p->count; i++) {
    if (i == p->me) continue;
    parts[n++] = (pl_peers_part){.peer = i, .sends = true, .data = numbers + i, .count = 1};
    parts[n++] = (pl_peers_part){.peer = i, .data = numbers + p->count + i, .count = 1};
  }
  PL_TRY(mark(p, 0, e));
  PL_TRY(exchange(p, 0, parts, n, e));
  for (;;) {
    PL_TRY(over(p, 0, &done, e));
    if (done) break;
    if (pl_clock_seconds() > end) PL_TRY(pl_fail(e, PL_FAIL, "NCCL: the other ranks do not answer for %d s", PATIENCE));
    nanosleep(&pause, NULL);
  }
out:
  pl_free(parts);
  return st;
}

static pl_status connect(pl_peers *p, const pl_peers_id *id, pl_err *e) {
  pl_status st = PL_OK;
  ncclUniqueId name;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  config.maxCTAs = CTAS;
  memcpy(&name, id, sizeof name);
  PL_TRY(check(p->nccl, NULL, p->nccl->CommInitRankConfig(&p->comm, (int)p->count, name, (int)p->me, &config),
               "meeting the other ranks", e));
  PL_TRY(greet(p, e));
out:
  return st;
}

static pl_status make_events(pl_peers *p, pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(pl_alloc(p->slots, sizeof(cudaEvent_t), "GPUs that exchange arrays", &p->ready, e));
  PL_TRY(pl_alloc(p->slots, sizeof(cudaEvent_t), "GPUs that exchange arrays", &p->over, e));
  for (size_t i = 0; i < p->slots; i++) {
    PL_TRY(cuda(cudaEventCreateWithFlags(&p->ready[i], cudaEventDisableTiming), "making an event", e));
    PL_TRY(cuda(cudaEventCreateWithFlags(&p->over[i], cudaEventDisableTiming), "making an event", e));
  }
out:
  return st;
}

static void *cut_off(void *self) {
  pl_peers *p = self;
  (void)p->nccl->CommAbort(p->comm);
  return NULL;
}

static bool is_busy(const pl_peers *p) {
  for (size_t i = 0; p->over && i < p->slots; i++)
    if (p->over[i] && query(p->over[i]) != cudaSuccess) return true;
  return false;
}

/* Each in a thread of its own: all have to be told before any of them waits for the GPU. */
static void cut_off_all(pl_peers *p) {
  for (pl_peers *i = opened; i; i = i->next) {
    i->threaded = i->comm && (i == p || is_busy(i)) && pthread_create(&i->closing, NULL, cut_off, i) == 0;
    if (i->threaded || !i->comm || i != p) continue;
    (void)cut_off(i);
    i->comm = NULL;
  }
  for (pl_peers *i = opened; i; i = i->next) {
    if (!i->threaded) continue;
    pthread_join(i->closing, NULL);
    i->threaded = false;
    i->comm = NULL;
  }
}

static void leave(pl_peers *p) {
  pl_peers **link = &opened;
  while (*link && *link != p) link = &(*link)->next;
  if (*link) *link = p->next;
}

static void close(pl_peers *p) {
  if (!p) return;
  cut_off_all(p);
  leave(p);
  for (size_t i = 0; i < p->slots; i++) {
    if (p->ready && p->ready[i]) (void)cudaEventDestroy(p->ready[i]);
    if (p->over && p->over[i]) (void)cudaEventDestroy(p->over[i]);
  }
  if (p->stream) (void)cudaStreamDestroy(p->stream);
  if (p->greeting) (void)cudaFree(p->greeting);
  pl_free(p->ready);
  pl_free(p->over);
  pl_free(p);
}

static pl_status open(pl_device *d, const pl_peers_id *id, size_t me, size_t count, size_t slots, pl_peers **out,
                      pl_err *e) {
  pl_status st = PL_OK;
  pl_peers *p = NULL;
  const size_t bytes = 2 * count * sizeof(pl_real);
  *out = NULL;
  PL_TRY(pl_alloc(1, sizeof *p, "GPUs that exchange arrays", &p, e));
  *p = (pl_peers){.next = opened, .gpu = gpu_of(d), .me = me, .count = count, .slots = slots};
  opened = p;
  PL_TRY(pl_nccl_load(&p->nccl, e));
  PL_TRY(make_events(p, e));
  PL_TRY(cuda(cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking), "making a stream", e));
  PL_TRY(cuda(cudaMalloc(&p->greeting, bytes), "room for a greeting", e));
  PL_TRY(cuda(cudaMemsetAsync(p->greeting, 0, bytes, p->stream), "clearing memory", e));
  PL_TRY(connect(p, id, e));
  *out = p;
out:
  if (st != PL_OK) close(p);
  return st;
}

const pl_peers_type pl_cuda_peers = {.name = "NCCL",
                                     .load = load,
                                     .place = place,
                                     .make_id = make_id,
                                     .open = open,
                                     .mark = mark,
                                     .exchange = exchange,
                                     .over = over,
                                     .close = close};
