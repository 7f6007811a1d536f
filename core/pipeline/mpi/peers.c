#include "core/pipeline/mpi/peers.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/device/profile.h"

enum { PARTING = 2 /* seconds */ };

/* What a rank says of itself. */
typedef struct place {
  char host[MPI_MAX_PROCESSOR_NAME];
  char gpu[PL_PEERS_PLACE];
  char why_not[160]; /* "": it could */
  int64_t version;
} place;

/* Of a program that has the device in it, as tests have. */
extern const pl_peers_type pl_cuda_peers __attribute__((weak));

/* Of the file that the device's functions are in. */
static const pl_peers_type *find(const pl_device *d) {
  const pl_device *meant = d->profile ? d->profile->inner : d;
  Dl_info info;
  void *function = NULL;
  if (&pl_cuda_peers) return &pl_cuda_peers;
  memcpy(&function, &meant->ops->alloc, sizeof function); /* ISO C has no cast from a function's address */
  if (!dladdr(function, &info)) return NULL;
  void *module = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  return module ? dlsym(module, "pl_cuda_peers") : NULL;
}

static pl_status read_setting(bool *off, pl_err *e) {
  const char *text = getenv("PIPELAG_NCCL");
  *off = text && strcmp(text, "off") == 0;
  if (!text || *off || strcmp(text, "on") == 0) return PL_OK;
  return pl_fail(e, PL_BAD, "the environment variable PIPELAG_NCCL is \"%s\"; allowed: on, off", text);
}

static void describe(pl_device *d, bool off, const pl_peers_type **type, place *out) {
  pl_err why = {0};
  int length = 0, version = 0;
  *type = find(d);
  *out = (place){0};
  MPI_Get_processor_name(out->host, &length);
  if (off)
    (void)pl_fail(&why, PL_BAD, "PIPELAG_NCCL is off");
  else if (!*type)
    (void)pl_fail(&why, PL_BAD, "this build has no NCCL");
  else if ((*type)->load(&version, &why) == PL_OK)
    (void)!(*type)->place(d, out->gpu, &why);
  out->version = version;
  snprintf(out->why_not, sizeof out->why_not, "%.*s", (int)sizeof out->why_not - 1, why.text);
}

/* The same on every rank; "": nothing speaks against it. */
static void find_obstacle(const place *all, size_t ranks, char *out, size_t size) {
  out[0] = '\0';
  for (size_t r = 0; r < ranks && !out[0]; r++)
    if (all[r].why_not[0]) snprintf(out, size, "rank %zu: %s", r, all[r].why_not);
  for (size_t r = 1; r < ranks && !out[0]; r++)
    if (all[r].version != all[0].version)
      snprintf(out, size, "ranks 0 and %zu have NCCL %lld and %lld", r, (long long)all[0].version,
               (long long)all[r].version);
  for (size_t r = 1; r < ranks; r++)
    for (size_t q = 0; q < r && !out[0]; q++)
      if (strcmp(all[q].host, all[r].host) == 0 && strcmp(all[q].gpu, all[r].gpu) == 0)
        snprintf(out, size, "ranks %zu and %zu share GPU %s of %.64s", q, r, all[r].gpu, all[r].host);
}

static void decide(pl_mpi *m, const pl_peers_type *type, const place *all) {
  char obstacle[256];
  const int version = (int)all[0].version;
  find_obstacle(all, m->base.size, obstacle, sizeof obstacle);
  m->peers = obstacle[0] ? NULL : type;
  if (m->peers)
    snprintf(m->base.note, sizeof m->base.note, "between GPUs: %s %d.%d.%d", type->name, version / 10000,
             version / 100 % 100, version % 100);
  else
    snprintf(m->base.note, sizeof m->base.note, "between GPUs: copies in the hosts' memory; %s", obstacle);
}

pl_status pl_mpi_choose_peers(pl_mpi *m, pl_device *d, pl_err *e) {
  pl_status st = PL_OK;
  const pl_peers_type *type = NULL;
  place *all = NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  bool off = false;
  if (m->chosen || d->ops->on_host || m->base.size == 1) return PL_OK;
  st = read_setting(&off, e);
  if (st == PL_OK) st = pl_alloc(m->base.size, sizeof *all, "the ranks' GPUs", &all, e);
  PL_TRY(pl_mpi_agree(m, m->control, st, e));
  describe(d, off, &type, &all[m->base.rank]);
  PL_TRY(pl_mpi_check(
      MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, (int)sizeof *all, MPI_BYTE, m->control, &request),
      "telling where the GPUs are", e));
  PL_TRY(pl_mpi_wait(m, &request, "telling where the GPUs are", e));
  decide(m, type, all);
  m->chosen = true;
out:
  if (request == MPI_REQUEST_NULL) pl_free(all); /* else MPI may still write there */
  return st;
}

pl_status pl_mpi_open_peers(pl_mpi *m, pl_device *d, MPI_Comm comm, size_t slots, pl_peers **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_peers_id *id = NULL;
  int me = 0, count = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  *out = NULL;
  PL_TRY(pl_mpi_check(MPI_Comm_rank(comm, &me), "asking for the rank", e));
  PL_TRY(pl_mpi_check(MPI_Comm_size(comm, &count), "asking for the size", e));
  st = pl_alloc(1, sizeof *id, "a group's name", &id, e);
  if (st == PL_OK && me == 0) st = m->peers->make_id(id, e);
  PL_TRY(pl_mpi_agree(m, comm, st, e));
  PL_TRY(pl_mpi_check(MPI_Ibcast(id, (int)sizeof *id, MPI_BYTE, 0, comm, &request), "naming a group", e));
  PL_TRY(pl_mpi_wait(m, &request, "naming a group", e));
  PL_TRY(m->peers->open(d, id, (size_t)me, (size_t)count, slots, out, e));
out:
  if (request == MPI_REQUEST_NULL) pl_free(id);
  return st;
}

void pl_mpi_part(pl_mpi *m, MPI_Comm comm) {
  const double end = pl_clock_seconds() + PARTING;
  MPI_Request request = MPI_REQUEST_NULL;
  int done = 0;
  if (m->deserted || m->failure.status != PL_OK || MPI_Ibarrier(comm, &request) != MPI_SUCCESS) return;
  while (!done && pl_clock_seconds() < end) {
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
    sched_yield();
  }
  m->deserted = !done;
}
