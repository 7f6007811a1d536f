#include "core/base/memory.h"
#include "core/device/profile.h"
#include "core/pipeline/mpi/peers.h"

/* The array is cut into as many slices as there are ranks; rank i of the list owns slice i. Every rank sends its part
 * of a slice to the owner, who adds them in the order of the list and sends the sum back. It all goes in blocks, and
 * several lanes of blocks are on their way at a time: lane l has the blocks l, l + LANES, ... of every slice. */
enum {
  LANES = 4,
  BLOCK = 1 << 17,    /* elements */
  BUDGET = 4 * BLOCK, /* elements added in one call, so that it is over in about a millisecond */
  TO_OWNER = 0,
  FROM_OWNER = 1
};

/* A block of this rank's slice. */
typedef struct adding {
  size_t block, added; /* ranks whose part is in the sum */
  bool back;           /* the sum is on its way to the others */
  pl_real *arrived;    /* [count][room]: the parts of the others */
} adding;

/* A block of another's slice. */
typedef struct lending {
  size_t block;
  bool back; /* waits for the sum */
} lending;

struct pl_sum {
  pl_mpi *m;
  pl_peer_sum *peers; /* adds instead of what follows; NULL: none */
  pl_sum *next;
  pl_device *device;
  MPI_Comm comm; /* of the ranks in the list, in its order */
  size_t me, count, size;
  size_t room;     /* elements of a block */
  pl_real *array;  /* that MPI sends from and receives into */
  pl_real *copy;   /* where MPI does not reach the device's memory: [size] the array in the host's; else NULL */
  pl_real *target; /* the device's array, which does not have the sum yet; NULL: none */
  size_t left;     /* blocks that are not finished; 0: ready */
  adding adding[LANES];
  lending *lending;      /* [LANES][count] */
  MPI_Request *requests; /* [2][LANES][count]: of what is added here, of what is lent */
  int *finished;         /* for MPI_Testsome */
};

static size_t slice_start(const pl_sum *s, size_t owner) { return s->size * owner / s->count; }

static size_t slice_blocks(const pl_sum *s, size_t owner) {
  return (slice_start(s, owner + 1) - slice_start(s, owner) + s->room - 1) / s->room;
}

/* Where a block is in the array; false when the slice has no such block. */
static bool find_block(const pl_sum *s, size_t owner, size_t block, size_t *at, size_t *n) {
  if (block >= slice_blocks(s, owner)) return false;
  *at = slice_start(s, owner) + block * s->room;
  size_t rest = slice_start(s, owner + 1) - *at;
  *n = rest < s->room ? rest : s->room;
  return true;
}

static MPI_Request *request_of(const pl_sum *s, bool lent, size_t lane, size_t peer) {
  return &s->requests[((size_t)lent * LANES + lane) * s->count + peer];
}

static pl_status send(pl_sum *s, size_t lane, size_t peer, int way, const pl_real *from, size_t n, pl_err *e) {
  return pl_mpi_check(MPI_Isend(from, (int)(n * sizeof *from), MPI_BYTE, (int)peer, (int)lane * 2 + way, s->comm,
                                request_of(s, way == TO_OWNER, lane, peer)),
                      "sending a part of a sum", e);
}

static pl_status receive(pl_sum *s, size_t lane, size_t peer, int way, pl_real *to, size_t n, pl_err *e) {
  return pl_mpi_check(MPI_Irecv(to, (int)(n * sizeof *to), MPI_BYTE, (int)peer, (int)lane * 2 + way, s->comm,
                                request_of(s, way == FROM_OWNER, lane, peer)),
                      "receiving a part of a sum", e);
}

static pl_status start_adding(pl_sum *s, size_t lane, size_t block, pl_err *e) {
  pl_status st = PL_OK;
  size_t at = 0, n = 0;
  adding *a = &s->adding[lane];
  a->block = block;
  a->added = 0;
  a->back = false;
  if (!find_block(s, s->me, block, &at, &n)) return PL_OK;
  for (size_t peer = 0; peer < s->count; peer++)
    if (peer != s->me) PL_TRY(receive(s, lane, peer, TO_OWNER, a->arrived + peer * s->room, n, e));
out:
  return st;
}

static pl_status start_lending(pl_sum *s, size_t lane, size_t owner, size_t block, pl_err *e) {
  size_t at = 0, n = 0;
  s->lending[lane * s->count + owner] = (lending){.block = block};
  if (owner == s->me || !find_block(s, owner, block, &at, &n)) return PL_OK;
  return send(s, lane, owner, TO_OWNER, s->array + at, n, e);
}

/* y += x. On a copy by the host, since the thread may not touch the device: a sum of two has the same bits anywhere. */
static void add(const pl_sum *s, size_t n, const pl_real *x, pl_real *y) {
  if (!s->copy)
    s->device->ops->axpby(s->device, n, 1, x, 1, y);
  else
    for (size_t i = 0; i < n; i++) y[i] += x[i];
}

/* Until this rank's turn the sum grows in the first rank's part, then in the array. x + y has the bits of y + x. */
static void add_part(pl_sum *s, const adding *a, size_t peer, pl_real *own, size_t n) {
  pl_real *first = a->arrived, *part = a->arrived + peer * s->room;
  if (peer > s->me) add(s, n, part, own);
  if (peer < s->me && peer > 0) add(s, n, part, first);
  if (peer == s->me && peer > 0) add(s, n, first, own);
}

static pl_status move_adding(pl_sum *s, size_t lane, size_t *budget, pl_err *e) {
  pl_status st = PL_OK;
  size_t at = 0, n = 0;
  adding *a = &s->adding[lane];
  if (!find_block(s, s->me, a->block, &at, &n)) return PL_OK;
  for (; a->added < s->count; a->added++) {
    if (*request_of(s, false, lane, a->added) != MPI_REQUEST_NULL || *budget < n) return PL_OK;
    *budget -= n;
    add_part(s, a, a->added, s->array + at, n);
  }
  for (size_t peer = 0; !a->back && peer < s->count; peer++)
    if (peer != s->me) PL_TRY(send(s, lane, peer, FROM_OWNER, s->array + at, n, e));
  a->back = true;
  for (size_t peer = 0; peer < s->count; peer++)
    if (*request_of(s, false, lane, peer) != MPI_REQUEST_NULL) return PL_OK;
  s->left--;
  PL_TRY(start_adding(s, lane, a->block + LANES, e));
out:
  return st;
}

/* The sum goes where the part was, so it is awaited only after the part has left. */
static pl_status move_lending(pl_sum *s, size_t lane, size_t owner, pl_err *e) {
  size_t at = 0, n = 0;
  lending *l = &s->lending[lane * s->count + owner];
  if (owner == s->me || !find_block(s, owner, l->block, &at, &n)) return PL_OK;
  if (*request_of(s, true, lane, owner) != MPI_REQUEST_NULL) return PL_OK;
  if (l->back) {
    s->left--;
    return start_lending(s, lane, owner, l->block + LANES, e);
  }
  l->back = true;
  return receive(s, lane, owner, FROM_OWNER, s->array + at, n, e);
}

static pl_status move(pl_sum *s, size_t *budget, pl_err *e) {
  pl_status st = PL_OK;
  int finished = 0;
  const pl_profile_part before = pl_profile_enter(s->device, PL_PROFILE_waiting);
  PL_TRY(
      pl_mpi_check(MPI_Testsome((int)(2 * LANES * s->count), s->requests, &finished, s->finished, MPI_STATUSES_IGNORE),
                   "summing", e));
  for (size_t lane = 0; lane < LANES; lane++) {
    PL_TRY(move_adding(s, lane, budget, e));
    for (size_t owner = 0; owner < s->count; owner++) PL_TRY(move_lending(s, lane, owner, e));
  }
out:
  pl_profile_leave(s->device, before);
  return st;
}

pl_status pl_mpi_sums_move(pl_mpi *m, pl_err *e) {
  pl_status st = PL_OK;
  size_t budget = BUDGET;
  for (pl_sum *s = m->sums; s; s = s->next)
    if (s->left > 0) PL_TRY(move(s, &budget, e));
out:
  return st;
}

static pl_status open_arrived(const pl_sum *s, adding *a, pl_err *e) {
  const size_t n = s->count * s->room;
  void *memory = NULL;
  if (s->copy) return pl_alloc(n, sizeof *a->arrived, "a sum over processes", &a->arrived, e);
  pl_status st = s->device->ops->alloc(s->device, n * sizeof *a->arrived, "a sum over processes", &memory, e);
  a->arrived = memory;
  return st;
}

static void close_arrived(const pl_sum *s, adding *a) {
  if (s->copy)
    pl_free(a->arrived);
  else if (a->arrived)
    s->device->ops->free(s->device, a->arrived);
}

static pl_status open_buffers(pl_sum *s, pl_err *e) {
  pl_status st = PL_OK;
  const size_t requests = 2 * LANES * s->count;
  s->room = s->size / s->count + 1; /* the longest slice */
  if (s->room > BLOCK) s->room = BLOCK;
  PL_TRY(pl_alloc(requests, sizeof *s->requests, "a sum", &s->requests, e));
  for (size_t i = 0; i < requests; i++) s->requests[i] = MPI_REQUEST_NULL;
  PL_TRY(pl_alloc(requests, sizeof *s->finished, "a sum", &s->finished, e));
  PL_TRY(pl_alloc(LANES * s->count, sizeof *s->lending, "a sum", &s->lending, e));
  if (!s->device->ops->on_host) PL_TRY(pl_alloc(s->size, sizeof *s->copy, "a sum over processes", &s->copy, e));
  for (size_t l = 0; l < LANES && l < slice_blocks(s, s->me); l++) PL_TRY(open_arrived(s, &s->adding[l], e));
out:
  return st;
}

pl_status pl_mpi_sum_open(pl_world *w, pl_device *device, const size_t *ranks, size_t count, size_t size, pl_sum **out,
                          pl_err *e) {
  pl_status st = PL_OK;
  pl_mpi *m = (pl_mpi *)w;
  pl_sum *s = NULL;
  *out = NULL;
  pl_mpi_enter(m);
  PL_TRY(pl_alloc(1, sizeof *s, "a sum", &s, e));
  *s = (pl_sum){.m = m, .device = device, .comm = MPI_COMM_NULL, .count = count, .size = size};
  if (count > 1) {
    for (size_t i = 0; i < count; i++)
      if (ranks[i] == m->base.rank) s->me = i;
    PL_TRY(pl_mpi_among(m, ranks, count, &s->comm, e));
    if (m->peers && !device->ops->on_host) {
      PL_TRY(pl_mpi_peer_sum_open(m, device, s->comm, size, &s->peers, e));
    } else {
      st = open_buffers(s, e);
      PL_TRY(pl_mpi_agree(m, s->comm, st, e));
    }
  }
  s->next = m->sums;
  m->sums = s;
  *out = s;
out:
  if (st != PL_OK) pl_mpi_sum_close(s);
  return pl_mpi_leave(m, st);
}

static pl_status begin(pl_sum *s, pl_real *array, pl_err *e) {
  pl_status st = PL_OK;
  if (s->peers) return pl_mpi_peer_sum_begin(s->peers, array, e);
  if (s->left > 0 || s->target) return pl_fail(e, PL_FAIL, "a sum was begun before the last one was ready");
  if (s->count == 1) return PL_OK;
  s->array = array;
  if (s->copy) {
    PL_TRY(pl_mpi_fetch(s->m, s->device, s->copy, array, s->size, e));
    s->array = s->copy;
    s->target = array;
  }
  for (size_t owner = 0; owner < s->count; owner++) s->left += slice_blocks(s, owner);
  for (size_t lane = 0; lane < LANES; lane++) {
    PL_TRY(start_adding(s, lane, lane, e));
    for (size_t owner = 0; owner < s->count; owner++) PL_TRY(start_lending(s, lane, owner, lane, e));
  }
out:
  return st;
}

pl_status pl_mpi_sum_begin(pl_sum *s, pl_real *array, pl_err *e) {
  pl_mpi_enter(s->m);
  return pl_mpi_leave(s->m, begin(s, array, e));
}

static pl_status ready(pl_sum *s, bool *out, pl_err *e) {
  if (s->peers) return pl_mpi_peer_sum_ready(s->peers, out, e);
  pl_status st = s->left > 0 ? pl_mpi_progress(s->m, e) : PL_OK;
  *out = st == PL_OK && s->left == 0;
  if (*out && s->target) {
    pl_mpi_give(s->m, s->device, s->target, s->copy, s->size);
    s->target = NULL;
  }
  return st;
}

pl_status pl_mpi_sum_ready(pl_sum *s, bool *is_ready, pl_err *e) {
  pl_mpi_enter(s->m);
  return pl_mpi_leave(s->m, ready(s, is_ready, e));
}

void pl_mpi_sum_close(pl_sum *s) {
  if (!s) return;
  pl_sum **link = &s->m->sums;
  while (*link && *link != s) link = &(*link)->next;
  if (*link) *link = s->next;
  pl_mpi_peer_sum_close(s->peers);
  bool unused = true; /* by MPI */
  for (size_t i = 0; s->requests && i < 2 * LANES * s->count; i++) unused = pl_mpi_drop(&s->requests[i]) && unused;
  for (size_t l = 0; unused && l < LANES; l++) close_arrived(s, &s->adding[l]);
  if (unused) pl_free(s->copy);
  pl_free(s->lending);
  pl_free(s->requests);
  pl_free(s->finished);
  pl_free(s);
}
