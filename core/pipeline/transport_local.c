#include "core/base/memory.h"
#include "core/pipeline/transport.h"

typedef struct letter {
  bool used;
  pl_message message;
  pl_real *data;
} letter;

typedef struct local_transport {
  pl_transport base;
  pl_device *device;
  size_t size, links;
  size_t count[PL_MAX_STAGES]; /* letters of a link, for each direction */
  letter *letters[PL_MAX_STAGES][2];
} local_transport;

static pl_status send(pl_transport *base, const pl_message *m, const pl_real *data, pl_err *e) {
  local_transport *t = (local_transport *)base;
  for (size_t i = 0; i < t->count[m->link]; i++) {
    letter *l = &t->letters[m->link][m->gradient][i];
    if (l->used) continue;
    t->device->ops->copy(t->device, l->data, data, t->size * sizeof *data);
    l->message = *m;
    l->used = true;
    return PL_OK;
  }
  return pl_fail(e, PL_FAIL, "between stage %zu and %zu more than %zu messages wait; the schedule allows no more",
                 m->link, m->link + 1, t->count[m->link]);
}

static pl_status receive(pl_transport *base, const pl_message *m, pl_real *data, bool *there, pl_err *e) {
  (void)e;
  local_transport *t = (local_transport *)base;
  *there = false;
  for (size_t i = 0; i < t->count[m->link] && !*there; i++) {
    letter *l = &t->letters[m->link][m->gradient][i];
    if (!l->used || l->message.update != m->update || l->message.microbatch != m->microbatch) continue;
    t->device->ops->copy(t->device, data, l->data, t->size * sizeof *data);
    l->used = false;
    *there = true;
  }
  return PL_OK;
}

static void destroy(pl_transport *base) {
  local_transport *t = (local_transport *)base;
  if (!t) return;
  for (size_t link = 0; link < t->links; link++)
    for (size_t way = 0; way < 2; way++) {
      letter *letters = t->letters[link][way];
      for (size_t i = 0; letters && i < t->count[link]; i++)
        if (letters[i].data) t->device->ops->free(t->device, letters[i].data);
      pl_free(letters);
    }
  pl_free(t);
}

static const pl_transport_type local_type = {.name = "local", .send = send, .receive = receive, .destroy = destroy};

static pl_status add_letters(local_transport *t, size_t link, size_t way, pl_err *e) {
  pl_status st = PL_OK;
  letter **letters = &t->letters[link][way];
  PL_TRY(pl_alloc(t->count[link], sizeof **letters, "messages between stages", letters, e));
  for (size_t i = 0; i < t->count[link]; i++) {
    void *data = NULL;
    PL_TRY(t->device->ops->alloc(t->device, t->size * sizeof(pl_real), "messages between stages", &data, e));
    (*letters)[i].data = data;
  }
out:
  return st;
}

pl_status pl_transport_local(pl_device *device, const pl_schedule *schedule, const pl_schedule_facts *facts,
                             size_t size, pl_transport **out, pl_err *e) {
  pl_status st = PL_OK;
  local_transport *t = NULL;
  *out = NULL;
  PL_TRY(pl_alloc(1, sizeof *t, "the transport", &t, e));
  t->base.type = &local_type;
  t->device = device;
  t->size = size;
  t->links = schedule->stages - 1;
  for (size_t link = 0; link < t->links; link++) {
    t->count[link] = facts->messages[link];
    for (size_t way = 0; way < 2; way++) PL_TRY(add_letters(t, link, way, e));
  }
  *out = &t->base;
out:
  if (st != PL_OK) destroy(t ? &t->base : NULL);
  return st;
}
