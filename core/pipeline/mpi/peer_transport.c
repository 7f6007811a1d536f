#include <sched.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/pipeline/mailbox.h"
#include "core/pipeline/mpi/link.h"
#include "core/pipeline/mpi/peers.h"

/* Which message comes next is known when it is sent, not before: a stage sends as its program and the validation have
 * it. So the sender begins and writes a note, the receiver begins when it reads that, in the order of the notes, and
 * answers; until then the sender does nothing else. Both sides of every wire have one order then, whatever the schedule
 * is, and no rank computes while its GPU waits for another's host. */
enum { NONE = -1, SENDER = 0, RECEIVER = 1 };
enum { NOTE = 0, ANSWER = 1 };       /* tags */
static const double patience = 0.01; /* seconds that a sender waits for the answer before it comes back to it */

typedef struct letter {
  pl_real *data;
  bool busy; /* its exchange was begun, and in a wire that receives nobody has taken the message */
  pl_letter name;
} letter;

/* One kind of messages on a link to another rank: two GPUs, one direction. */
typedef struct wire {
  bool sends;
  size_t count; /* letters; 0: the link does not lead to another rank */
  letter *letters;
  MPI_Comm pair; /* SENDER, RECEIVER */
  pl_peers *peers;
  int64_t begun; /* the letter that waits for its answer; NONE */
  pl_letter note;
  char answer;
  MPI_Request note_request, answer_request;
} wire;

typedef struct peer_transport {
  pl_transport base;
  pl_mpi *m;
  pl_device *device;
  MPI_Comm comm;
  pl_transport *inner; /* between stages of this rank */
  size_t size, links;
  wire *wires; /* [links * PL_MESSAGE_KINDS] */
  bool open;   /* on all ranks */
} peer_transport;

static wire *wire_of(const peer_transport *t, const pl_message *m) {
  return &t->wires[m->link * PL_MESSAGE_KINDS + m->kind];
}

static pl_letter name_of(const pl_message *m) {
  return (pl_letter){.update = m->update, .microbatch = m->microbatch, .chunk = m->chunk};
}

static bool is(const pl_letter *a, const pl_letter *b) {
  return a->update == b->update && a->microbatch == b->microbatch && a->chunk == b->chunk;
}

static void swap(pl_real **a, pl_real **b) {
  pl_real *c = *a;
  *a = *b;
  *b = c;
}

static pl_status test(MPI_Request *request, bool *done, pl_err *e) {
  int flag = 0;
  pl_status st = pl_mpi_check(MPI_Test(request, &flag, MPI_STATUS_IGNORE), "moving messages between stages", e);
  *done = flag;
  return st;
}

static pl_status await_note(wire *w, pl_err *e) {
  return pl_mpi_check(MPI_Irecv(&w->note, (int)sizeof w->note, MPI_BYTE, SENDER, NOTE, w->pair, &w->note_request),
                      "waiting for a message between stages", e);
}

static pl_status begin(peer_transport *t, wire *w, size_t i, pl_real *data, pl_err *e) {
  const pl_peers_part part = {.peer = w->sends ? RECEIVER : SENDER, .sends = w->sends, .data = data, .count = t->size};
  w->letters[i].busy = true;
  return t->m->peers->exchange(w->peers, i, &part, 1, e);
}

static int64_t find_free(const wire *w) {
  for (size_t i = 0; i < w->count; i++)
    if (!w->letters[i].busy) return (int64_t)i;
  return NONE;
}

/* Begins the receive that a note announces, where there is room, and answers. */
static pl_status read_note(peer_transport *t, wire *w, pl_err *e) {
  pl_status st = PL_OK;
  bool answered = false, arrived = false;
  const int64_t i = find_free(w);
  if (i == NONE) return PL_OK;
  PL_TRY(test(&w->answer_request, &answered, e));
  if (!answered) return PL_OK;
  PL_TRY(test(&w->note_request, &arrived, e));
  if (!arrived) return PL_OK;
  w->letters[i].name = w->note;
  PL_TRY(begin(t, w, (size_t)i, w->letters[i].data, e));
  PL_TRY(await_note(w, e));
  PL_TRY(pl_mpi_check(MPI_Isend(&w->answer, 1, MPI_BYTE, SENDER, ANSWER, w->pair, &w->answer_request),
                      "answering a message between stages", e));
out:
  return st;
}

static pl_status read_notes(peer_transport *t, pl_err *e) {
  pl_status st = PL_OK;
  for (size_t i = 0; i < t->links * PL_MESSAGE_KINDS; i++)
    if (t->wires[i].count > 0 && !t->wires[i].sends) PL_TRY(read_note(t, &t->wires[i], e));
out:
  return st;
}

/* Letters that were sent and have left are free again. */
static pl_status free_letters(const peer_transport *t, wire *w, pl_err *e) {
  pl_status st = PL_OK;
  for (size_t i = 0; i < w->count; i++) {
    bool left = false;
    if (!w->letters[i].busy) continue;
    PL_TRY(t->m->peers->over(w->peers, i, &left, e));
    w->letters[i].busy = !left;
  }
out:
  return st;
}

/* Of the caller's buffer, which stays its own until there is an answer. */
static pl_status begin_send(peer_transport *t, wire *w, const pl_letter *name, pl_real *data, pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(free_letters(t, w, e));
  const int64_t i = find_free(w);
  if (i == NONE) return PL_OK;
  w->begun = i;
  w->note = w->letters[i].name = *name;
  PL_TRY(t->m->peers->mark(w->peers, (size_t)i, e));
  PL_TRY(begin(t, w, (size_t)i, data, e));
  PL_TRY(pl_mpi_check(MPI_Irecv(&w->answer, 1, MPI_BYTE, RECEIVER, ANSWER, w->pair, &w->answer_request),
                      "waiting for an answer between stages", e));
  PL_TRY(pl_mpi_check(MPI_Isend(&w->note, (int)sizeof w->note, MPI_BYTE, RECEIVER, NOTE, w->pair, &w->note_request),
                      "sending a message between stages", e));
out:
  return st;
}

static pl_status read_answer(wire *w, bool *done, pl_err *e) {
  pl_status st = PL_OK;
  bool sent = false, answered = false;
  PL_TRY(test(&w->note_request, &sent, e));
  PL_TRY(test(&w->answer_request, &answered, e));
  *done = sent && answered;
out:
  return st;
}

/* A message that is not done is asked for again before any other of its kind on its link. */
static pl_status send_letter(peer_transport *t, const pl_message *m, pl_real **buffer, bool *done, pl_err *e) {
  pl_status st = PL_OK;
  wire *w = wire_of(t, m);
  const pl_letter name = name_of(m);
  const double end = pl_clock_seconds() + patience;
  *done = false;
  if (w->begun == NONE) PL_TRY(begin_send(t, w, &name, *buffer, e));
  if (w->begun == NONE) return PL_OK;
  if (!is(&w->letters[w->begun].name, &name))
    return pl_fail(e, PL_FAIL, "a message was sent between stages before the last one was taken");
  for (;;) {
    PL_TRY(read_answer(w, done, e));
    if (*done || pl_clock_seconds() > end) break;
    PL_TRY(read_notes(t, e)); /* the other end may be waiting just so */
    sched_yield();
  }
  if (!*done) return PL_OK;
  swap(buffer, &w->letters[w->begun].data);
  w->begun = NONE;
out:
  return st;
}

static pl_status receive_letter(peer_transport *t, const pl_message *m, pl_real **buffer, bool *done, pl_err *e) {
  pl_status st = PL_OK;
  wire *w = wire_of(t, m);
  const pl_letter name = name_of(m);
  *done = false;
  PL_TRY(read_notes(t, e));
  for (size_t i = 0; i < w->count && !*done; i++) {
    letter *l = &w->letters[i];
    if (!l->busy || !is(&l->name, &name)) continue;
    PL_TRY(t->m->peers->over(w->peers, i, done, e));
    if (!*done) break;
    swap(buffer, &l->data);
    l->busy = false;
    PL_TRY(t->m->peers->mark(w->peers, i, e)); /* what reads this buffer was asked for before */
  }
out:
  return st;
}

static pl_status send(pl_transport *base, const pl_message *m, pl_real **buffer, bool *done, pl_err *e) {
  peer_transport *t = (peer_transport *)base;
  if (wire_of(t, m)->count == 0) return t->inner->type->send(t->inner, m, buffer, done, e);
  pl_mpi_enter(t->m);
  return pl_mpi_leave(t->m, send_letter(t, m, buffer, done, e));
}

static pl_status receive(pl_transport *base, const pl_message *m, pl_real **buffer, bool *done, pl_err *e) {
  peer_transport *t = (peer_transport *)base;
  if (wire_of(t, m)->count == 0) return t->inner->type->receive(t->inner, m, buffer, done, e);
  pl_mpi_enter(t->m);
  return pl_mpi_leave(t->m, receive_letter(t, m, buffer, done, e));
}

/* False: MPI may still write into it. */
static bool close_wire(const peer_transport *t, wire *w) {
  for (size_t i = 0; w->letters && i < w->count; i++)
    if (w->letters[i].data) t->device->ops->free(t->device, w->letters[i].data);
  pl_free(w->letters);
  const bool note = pl_mpi_drop(&w->note_request), answer = pl_mpi_drop(&w->answer_request);
  return note && answer;
}

/* No memory of the device is freed while an exchange is under way: that would wait for it. */
static void destroy(pl_transport *base) {
  peer_transport *t = (peer_transport *)base;
  if (!t) return;
  const size_t count = t->wires ? t->links * PL_MESSAGE_KINDS : 0;
  bool unused = true;
  pl_mpi_enter(t->m);
  if (t->open) pl_mpi_part(t->m, t->comm);
  for (size_t i = 0; i < count; i++)
    if (t->wires[i].peers) t->m->peers->close(t->wires[i].peers);
  for (size_t i = 0; i < count; i++) unused = close_wire(t, &t->wires[i]) && unused;
  if (t->inner) t->inner->type->destroy(t->inner);
  if (unused) pl_free(t->wires);
  (void)pl_mpi_leave(t->m, PL_OK);
  pl_free(t);
}

static const pl_transport_type peer_type = {.name = "peers", .send = send, .receive = receive, .destroy = destroy};

static pl_status open_letters(const peer_transport *t, wire *w, size_t count, pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(pl_alloc(count, sizeof *w->letters, "messages between stages", &w->letters, e));
  w->count = count;
  for (size_t i = 0; i < count; i++) PL_TRY(pl_transport_buffer(t->device, t->size, &w->letters[i].data, e));
out:
  return st;
}

/* What this rank does by itself; *inside keeps the messages of the links that stay in it. */
static pl_status open_own(peer_transport *t, const pl_grid *g, const pl_transport_args *args, pl_schedule_facts *inside,
                          pl_err *e) {
  pl_status st = PL_OK;
  const size_t count = t->links * PL_MESSAGE_KINDS;
  PL_TRY(pl_alloc(count, sizeof *t->wires, "the transport", &t->wires, e));
  for (size_t i = 0; i < count; i++)
    t->wires[i] = (wire){.begun = NONE, .note_request = MPI_REQUEST_NULL, .answer_request = MPI_REQUEST_NULL};
  for (size_t link = 0; link < t->links; link++) {
    const pl_link l = pl_link_of(t->m, g, link);
    if (l.inside) inside->messages[link] = args->facts->messages[link];
    for (size_t kind = 0; kind < PL_MESSAGE_KINDS && l.crosses; kind++) {
      wire *w = &t->wires[link * PL_MESSAGE_KINDS + kind];
      w->sends = pl_link_sends(&l, kind);
      PL_TRY(open_letters(t, w, pl_link_messages(args->facts, link, kind), e));
    }
  }
  pl_transport_args inner = *args;
  inner.facts = inside;
  PL_TRY(pl_transport_local(&inner, &t->inner, e));
out:
  return st;
}

static pl_status connect(peer_transport *t, wire *w, size_t peer, pl_err *e) {
  pl_status st = PL_OK;
  const size_t me = t->m->base.rank, ranks[2] = {w->sends ? me : peer, w->sends ? peer : me};
  PL_TRY(pl_mpi_among(t->m, ranks, 2, &w->pair, e));
  PL_TRY(pl_mpi_open_peers(t->m, t->device, w->pair, w->count, &w->peers, e));
  for (size_t i = 0; i < w->count && !w->sends; i++) PL_TRY(t->m->peers->mark(w->peers, i, e));
  if (!w->sends) PL_TRY(await_note(w, e));
out:
  return st;
}

/* Every rank in the order of the links, so that nobody waits for somebody who waits. */
static pl_status connect_all(peer_transport *t, const pl_grid *g, pl_err *e) {
  pl_status st = PL_OK;
  for (size_t i = 0; i < t->links * PL_MESSAGE_KINDS; i++)
    if (t->wires[i].count > 0) PL_TRY(connect(t, &t->wires[i], pl_link_of(t->m, g, i / PL_MESSAGE_KINDS).peer, e));
out:
  return st;
}

pl_status pl_mpi_peer_transport(pl_mpi *m, const pl_grid *g, const pl_transport_args *args, MPI_Comm comm,
                                pl_transport **out, pl_err *e) {
  pl_status st = PL_OK;
  peer_transport *t = NULL;
  pl_schedule_facts *inside = NULL;
  *out = NULL;
  st = pl_alloc(1, sizeof *inside, "the transport", &inside, e);
  if (st == PL_OK) st = pl_alloc(1, sizeof *t, "the transport", &t, e);
  if (st == PL_OK) {
    *t = (peer_transport){.base = {&peer_type}, .m = m, .device = args->device, .comm = comm, .size = args->size};
    t->links = pl_schedule_chunks(args->schedule) > 1 ? g->stages : g->stages - 1;
    st = open_own(t, g, args, inside, e);
  }
  PL_TRY(pl_mpi_agree(m, m->control, st, e));
  PL_TRY(pl_mpi_agree(m, m->control, connect_all(t, g, e), e));
  t->open = true;
  *out = &t->base;
out:
  pl_free(inside);
  if (st != PL_OK && t) destroy(&t->base);
  return st;
}
