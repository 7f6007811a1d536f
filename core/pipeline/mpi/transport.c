#include <limits.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/pipeline/mpi/link.h"
#include "core/pipeline/mpi/peers.h"

/* Travels behind a message's elements; the kind and the link are in the tag. */
typedef struct identity {
  int64_t update;
  uint64_t microbatch, chunk;
} identity;
_Static_assert(sizeof(identity) <= PL_MESSAGE_TRAILER, "a buffer has room for it");

/* One kind of messages on a link to another rank. A letter without a request is free in a box that sends, has arrived
 * in one that receives. */
typedef struct box {
  int peer, tag;
  bool sends;
  size_t count;   /* letters */
  pl_real **data; /* what MPI sends or fills */
  pl_real *spare; /* staged: a buffer of the device, which changes hands for the letter */
  MPI_Request *requests;
  int *finished; /* for MPI_Testsome */
} box;

typedef struct mpi_transport {
  pl_transport base;
  pl_mpi *m;
  pl_device *device;
  MPI_Comm comm;
  pl_transport *inner; /* between stages of this rank */
  size_t size, links;
  bool staged; /* MPI does not reach the device's memory: letters are copies in the host's */
  int bytes;   /* of a message */
  box *boxes;  /* [links * PL_MESSAGE_KINDS]; without letters where the other stage is on this rank */
} mpi_transport;

static box *box_of(const mpi_transport *t, const pl_message *m) {
  return &t->boxes[m->link * PL_MESSAGE_KINDS + m->kind];
}

static char *trailer(const mpi_transport *t, pl_real *data) { return (char *)(data + t->size); }

static identity identity_of(const pl_message *m) {
  return (identity){.update = m->update, .microbatch = m->microbatch, .chunk = m->chunk};
}

static void swap(pl_real **a, pl_real **b) {
  pl_real *c = *a;
  *a = *b;
  *b = c;
}

static pl_status post_receive(mpi_transport *t, box *b, size_t i, pl_err *e) {
  return pl_mpi_check(MPI_Irecv(b->data[i], t->bytes, MPI_BYTE, b->peer, b->tag, t->comm, &b->requests[i]),
                      "waiting for a message between stages", e);
}

/* A letter without a request, and with that identity unless NULL is wanted. */
static bool find(const mpi_transport *t, const box *b, const identity *wanted, size_t *out) {
  for (size_t i = 0; i < b->count; i++) {
    if (b->requests[i] != MPI_REQUEST_NULL) continue;
    if (wanted && memcmp(trailer(t, b->data[i]), wanted, sizeof *wanted) != 0) continue;
    *out = i;
    return true;
  }
  return false;
}

/* MPI is asked only when what is known already does not do. */
static pl_status look(mpi_transport *t, box *b, const identity *wanted, size_t *out, bool *found, pl_err *e) {
  pl_status st = PL_OK;
  int finished = 0;
  *found = find(t, b, wanted, out);
  if (*found) return PL_OK;
  PL_TRY(pl_mpi_check(MPI_Testsome((int)b->count, b->requests, &finished, b->finished, MPI_STATUSES_IGNORE),
                      "moving messages between stages", e));
  *found = find(t, b, wanted, out);
out:
  return st;
}

static pl_status send_letter(mpi_transport *t, const pl_message *m, pl_real **buffer, bool *done, pl_err *e) {
  pl_status st = PL_OK;
  size_t i = 0;
  box *b = box_of(t, m);
  const identity id = identity_of(m);
  PL_TRY(look(t, b, NULL, &i, done, e));
  if (!*done) return PL_OK;
  if (t->staged) PL_TRY(pl_mpi_fetch(t->m, t->device, b->data[i], *buffer, t->size, e));
  swap(buffer, t->staged ? &b->spare : &b->data[i]);
  memcpy(trailer(t, b->data[i]), &id, sizeof id);
  PL_TRY(pl_mpi_check(MPI_Isend(b->data[i], t->bytes, MPI_BYTE, b->peer, b->tag, t->comm, &b->requests[i]),
                      "sending a message between stages", e));
out:
  return st;
}

static pl_status receive_letter(mpi_transport *t, const pl_message *m, pl_real **buffer, bool *done, pl_err *e) {
  pl_status st = PL_OK;
  size_t i = 0;
  box *b = box_of(t, m);
  const identity id = identity_of(m);
  PL_TRY(look(t, b, &id, &i, done, e));
  if (!*done) return PL_OK;
  if (t->staged) pl_mpi_give(t->m, t->device, b->spare, b->data[i], t->size);
  swap(buffer, t->staged ? &b->spare : &b->data[i]);
  PL_TRY(post_receive(t, b, i, e));
out:
  return st;
}

static pl_status send(pl_transport *base, const pl_message *m, pl_real **buffer, bool *done, pl_err *e) {
  mpi_transport *t = (mpi_transport *)base;
  if (box_of(t, m)->count == 0) return t->inner->type->send(t->inner, m, buffer, done, e);
  pl_mpi_enter(t->m);
  return pl_mpi_leave(t->m, send_letter(t, m, buffer, done, e));
}

static pl_status receive(pl_transport *base, const pl_message *m, pl_real **buffer, bool *done, pl_err *e) {
  mpi_transport *t = (mpi_transport *)base;
  if (box_of(t, m)->count == 0) return t->inner->type->receive(t->inner, m, buffer, done, e);
  pl_mpi_enter(t->m);
  return pl_mpi_leave(t->m, receive_letter(t, m, buffer, done, e));
}

static pl_status open_letter(const mpi_transport *t, pl_real **data, pl_err *e) {
  if (!t->staged) return pl_transport_buffer(t->device, t->size, data, e);
  return pl_alloc((size_t)t->bytes, 1, "messages between stages", data, e);
}

static void close_letter(const mpi_transport *t, pl_real *data) {
  if (t->staged)
    pl_free(data);
  else if (data)
    t->device->ops->free(t->device, data);
}

static void close_box(const mpi_transport *t, box *b) {
  for (size_t i = 0; b->requests && i < b->count; i++)
    if (pl_mpi_drop(&b->requests[i])) close_letter(t, b->data[i]);
  if (b->spare) t->device->ops->free(t->device, b->spare);
  pl_free(b->requests);
  pl_free(b->data);
  pl_free(b->finished);
}

static void destroy(pl_transport *base) {
  mpi_transport *t = (mpi_transport *)base;
  if (!t) return;
  for (size_t i = 0; t->boxes && i < t->links * PL_MESSAGE_KINDS; i++) close_box(t, &t->boxes[i]);
  if (t->inner) t->inner->type->destroy(t->inner);
  pl_free(t->boxes);
  pl_free(t);
}

static const pl_transport_type mpi_type = {.name = "mpi", .send = send, .receive = receive, .destroy = destroy};

static pl_status open_box(mpi_transport *t, box *b, size_t count, pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(pl_alloc(count, sizeof *b->data, "messages between stages", &b->data, e));
  PL_TRY(pl_alloc(count, sizeof *b->finished, "messages between stages", &b->finished, e));
  PL_TRY(pl_alloc(count, sizeof *b->requests, "messages between stages", &b->requests, e));
  for (size_t i = 0; i < count; i++) b->requests[i] = MPI_REQUEST_NULL;
  b->count = count;
  if (t->staged && count > 0) PL_TRY(pl_transport_buffer(t->device, t->size, &b->spare, e));
  for (size_t i = 0; i < count; i++) {
    PL_TRY(open_letter(t, &b->data[i], e));
    if (!b->sends) PL_TRY(post_receive(t, b, i, e));
  }
out:
  return st;
}

/* The boxes of the links that lead from this rank to others; *inside keeps the messages of those that stay in it. */
static pl_status open_boxes(mpi_transport *t, const pl_grid *g, const pl_schedule_facts *facts,
                            pl_schedule_facts *inside, pl_err *e) {
  pl_status st = PL_OK;
  for (size_t link = 0; link < t->links; link++) {
    const pl_link l = pl_link_of(t->m, g, link);
    if (l.inside) inside->messages[link] = facts->messages[link];
    for (size_t kind = 0; kind < PL_MESSAGE_KINDS && l.crosses; kind++) {
      box *b = &t->boxes[link * PL_MESSAGE_KINDS + kind];
      b->peer = (int)l.peer;
      b->tag = (int)(link * PL_MESSAGE_KINDS + kind);
      b->sends = pl_link_sends(&l, kind);
      PL_TRY(open_box(t, b, pl_link_messages(facts, link, kind), e));
    }
  }
out:
  return st;
}

static pl_status open_all(mpi_transport *t, const pl_grid *g, const pl_transport_args *args, pl_err *e) {
  pl_status st = PL_OK;
  pl_schedule_facts *inside = NULL;
  if (t->size > (INT_MAX - sizeof(identity)) / sizeof(pl_real))
    return pl_fail(e, PL_BAD, "a message between stages has %zu numbers; MPI sends at most %d bytes at once", t->size,
                   INT_MAX);
  t->bytes = (int)(t->size * sizeof(pl_real) + sizeof(identity));
  PL_TRY(pl_alloc(1, sizeof *inside, "the transport", &inside, e));
  PL_TRY(pl_alloc(t->links * PL_MESSAGE_KINDS, sizeof *t->boxes, "the transport", &t->boxes, e));
  PL_TRY(open_boxes(t, g, args->facts, inside, e));
  pl_transport_args inner = *args;
  inner.facts = inside;
  PL_TRY(pl_transport_local(&inner, &t->inner, e));
out:
  pl_free(inside);
  return st;
}

static pl_status open_transport(pl_mpi *m, const pl_grid *g, const pl_transport_args *args, MPI_Comm comm,
                                pl_transport **out, pl_err *e) {
  mpi_transport *t = NULL;
  pl_status st = pl_alloc(1, sizeof *t, "the transport", &t, e);
  if (st == PL_OK) {
    *t = (mpi_transport){.base = {&mpi_type}, .m = m, .device = args->device, .comm = comm, .size = args->size};
    t->staged = !args->device->ops->on_host;
    t->links = pl_schedule_chunks(args->schedule) > 1 ? g->stages : g->stages - 1;
    st = open_all(t, g, args, e);
  }
  st = pl_mpi_agree(m, m->control, st, e);
  if (st == PL_OK)
    *out = &t->base;
  else if (t)
    destroy(&t->base);
  return st;
}

pl_status pl_mpi_transport(pl_world *w, const pl_grid *g, const pl_transport_args *args, pl_transport **out,
                           pl_err *e) {
  pl_status st = PL_OK;
  pl_mpi *m = (pl_mpi *)w;
  MPI_Comm comm = MPI_COMM_NULL;
  *out = NULL;
  pl_mpi_enter(m);
  PL_TRY(pl_mpi_choose_peers(m, args->device, e));
  PL_TRY(pl_mpi_check(MPI_Comm_dup(m->control, &comm), "opening the transport", e));
  st = (m->peers && !args->device->ops->on_host ? pl_mpi_peer_transport : open_transport)(m, g, args, comm, out, e);
out:
  return pl_mpi_leave(m, st);
}
