#include "core/base/memory.h"
#include "core/device/profile.h"
#include "core/pipeline/mpi/peers.h"

/* As over the hosts: rank i of the list owns slice i, gets everybody's part of it, adds them in the order of the list
 * and gives the sum to everybody. That is as much traffic as a ring's all-reduce has, and, other than with NCCL's own,
 * whose order follows from how the GPUs are connected, the bits are those of one process. Block after block of all
 * slices, since the parts need room. */
enum { BLOCK = 1 << 21 /* elements */ };

typedef enum phase {
  IDLE,
  MEETING, /* not all ranks have begun */
  PARTS,   /* on their way to the owners */
  SUMS     /* on their way back */
} phase;

struct pl_peer_sum {
  pl_mpi *m;
  pl_device *device;
  MPI_Comm comm; /* of the ranks in the list, in its order */
  pl_peers *peers;
  size_t me, count, size;
  size_t room, blocks; /* elements of a block; blocks of the longest slice */
  pl_real *array;
  pl_real *arrived;     /* [count][room]: the others' parts of this rank's block */
  pl_peers_part *parts; /* [2 * count] of an exchange */
  MPI_Request meeting;
  phase phase;
  size_t block;
};

/* The current block of a slice in the array; empty behind the slice's end. */
static pl_real *block_of(const pl_peer_sum *s, size_t owner, size_t *n) {
  const size_t end = s->size * (owner + 1) / s->count;
  size_t at = s->size * owner / s->count + s->block * s->room;
  if (at > end) at = end;
  *n = end - at < s->room ? end - at : s->room;
  return s->array + at;
}

static void add_part(pl_peer_sum *s, size_t *count, size_t peer, bool sends, pl_real *data, size_t n) {
  if (n > 0) s->parts[(*count)++] = (pl_peers_part){.peer = peer, .sends = sends, .data = data, .count = n};
}

static pl_status begin_exchange(pl_peer_sum *s, phase next, pl_err *e) {
  size_t count = 0, own = 0, n = 0;
  pl_real *mine = block_of(s, s->me, &own);
  for (size_t peer = 0; peer < s->count; peer++) {
    if (peer == s->me) continue;
    pl_real *theirs = block_of(s, peer, &n);
    add_part(s, &count, peer, next == PARTS, theirs, n);
    add_part(s, &count, peer, next == SUMS, next == PARTS ? s->arrived + peer * s->room : mine, own);
  }
  s->phase = next;
  return count > 0 ? s->m->peers->exchange(s->peers, 0, s->parts, count, e) : PL_OK;
}

/* Until this rank's turn the sum grows in the first rank's part, then in the array. x + y has the bits of y + x. */
static void add(const pl_peer_sum *s) {
  const pl_ops *ops = s->device->ops;
  size_t n = 0;
  pl_real *own = block_of(s, s->me, &n), *first = s->arrived;
  for (size_t peer = 1; peer < s->me; peer++) ops->axpby(s->device, n, 1, s->arrived + peer * s->room, 1, first);
  if (s->me > 0) ops->axpby(s->device, n, 1, first, 1, own);
  for (size_t peer = s->me + 1; peer < s->count; peer++)
    ops->axpby(s->device, n, 1, s->arrived + peer * s->room, 1, own);
}

static pl_status come_together(pl_peer_sum *s, bool *moved, pl_err *e) {
  int all = 0;
  pl_status st = pl_mpi_check(MPI_Test(&s->meeting, &all, MPI_STATUS_IGNORE), "summing", e);
  *moved = st == PL_OK && all;
  return *moved ? begin_exchange(s, PARTS, e) : st;
}

static pl_status give_sums(pl_peer_sum *s, pl_err *e) {
  add(s);
  pl_status st = s->m->peers->mark(s->peers, 0, e);
  return st == PL_OK ? begin_exchange(s, SUMS, e) : st;
}

static pl_status next_block(pl_peer_sum *s, pl_err *e) {
  s->phase = IDLE;
  return ++s->block < s->blocks ? begin_exchange(s, PARTS, e) : PL_OK;
}

static pl_status advance(pl_peer_sum *s, bool *moved, pl_err *e) {
  *moved = false;
  if (s->phase == IDLE) return PL_OK;
  if (s->phase == MEETING) return come_together(s, moved, e);
  pl_status st = s->m->peers->over(s->peers, 0, moved, e);
  if (st != PL_OK || !*moved) return st;
  return s->phase == PARTS ? give_sums(s, e) : next_block(s, e);
}

pl_status pl_mpi_peer_sum_open(pl_mpi *m, pl_device *device, MPI_Comm comm, size_t size, pl_peer_sum **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_peer_sum *s = NULL;
  void *arrived = NULL;
  int me = 0, count = 0;
  *out = NULL;
  PL_TRY(pl_mpi_check(MPI_Comm_rank(comm, &me), "asking for the rank", e));
  PL_TRY(pl_mpi_check(MPI_Comm_size(comm, &count), "asking for the size", e));
  st = pl_alloc(1, sizeof *s, "a sum", &s, e);
  if (st == PL_OK) {
    *s = (pl_peer_sum){.m = m, .device = device, .comm = comm, .size = size, .meeting = MPI_REQUEST_NULL};
    s->me = (size_t)me;
    s->count = (size_t)count;
    const size_t longest = size / s->count + 1;
    s->room = longest < BLOCK ? longest : BLOCK;
    s->blocks = (longest + s->room - 1) / s->room;
    st = pl_alloc(2 * s->count, sizeof *s->parts, "a sum", &s->parts, e);
  }
  if (st == PL_OK)
    st = device->ops->alloc(device, s->count * s->room * sizeof(pl_real), "a sum over processes", &arrived, e);
  if (s) s->arrived = arrived;
  PL_TRY(pl_mpi_agree(m, comm, st, e));
  PL_TRY(pl_mpi_open_peers(m, device, comm, 1, &s->peers, e));
  *out = s;
out:
  if (st != PL_OK) pl_mpi_peer_sum_close(s);
  return st;
}

pl_status pl_mpi_peer_sum_begin(pl_peer_sum *s, pl_real *array, pl_err *e) {
  pl_status st = PL_OK;
  if (s->phase != IDLE) return pl_fail(e, PL_FAIL, "a sum was begun before the last one was ready");
  s->array = array;
  s->block = 0;
  PL_TRY(s->m->peers->mark(s->peers, 0, e));
  PL_TRY(pl_mpi_check(MPI_Ibarrier(s->comm, &s->meeting), "summing", e));
  s->phase = MEETING;
out:
  return st;
}

pl_status pl_mpi_peer_sum_ready(pl_peer_sum *s, bool *ready, pl_err *e) {
  pl_status st = PL_OK;
  const pl_profile_part before = pl_profile_enter(s->device, PL_PROFILE_waiting);
  for (bool moved = true; moved;) PL_TRY(advance(s, &moved, e));
out:
  pl_profile_leave(s->device, before);
  *ready = st == PL_OK && s->phase == IDLE;
  return st;
}

void pl_mpi_peer_sum_close(pl_peer_sum *s) {
  if (!s) return;
  if (s->peers) pl_mpi_part(s->m, s->comm);
  if (s->peers) s->m->peers->close(s->peers);
  pl_mpi_drop(&s->meeting);
  if (s->arrived) s->device->ops->free(s->device, s->arrived);
  pl_free(s->parts);
  pl_free(s);
}
