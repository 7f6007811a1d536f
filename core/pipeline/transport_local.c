#include "core/base/memory.h"
#include "core/pipeline/transport.h"

typedef struct letter {
  bool used;
  pl_message message;
  pl_real *data;
} letter;

typedef struct box {
  letter *letters;
  size_t count;
} box;

typedef struct local_transport {
  pl_transport base;
  pl_device *device;
  size_t links;
  box *boxes; /* [links * PL_MESSAGE_KINDS] */
} local_transport;

pl_status pl_transport_buffer(pl_device *device, size_t size, pl_real **out, pl_err *e) {
  void *memory = NULL;
  pl_status st =
      device->ops->alloc(device, size * sizeof **out + PL_MESSAGE_TRAILER, "messages between stages", &memory, e);
  *out = memory;
  return st;
}

static box *box_of(local_transport *t, const pl_message *m) { return &t->boxes[m->link * PL_MESSAGE_KINDS + m->kind]; }

static void swap(pl_real **a, pl_real **b) {
  pl_real *c = *a;
  *a = *b;
  *b = c;
}

static pl_status send(pl_transport *base, const pl_message *m, pl_real **buffer, bool *done, pl_err *e) {
  (void)e;
  box *b = box_of((local_transport *)base, m);
  *done = false;
  for (size_t i = 0; i < b->count && !*done; i++) {
    letter *l = &b->letters[i];
    if (l->used) continue;
    swap(buffer, &l->data);
    l->message = *m;
    l->used = *done = true;
  }
  return PL_OK;
}

static pl_status receive(pl_transport *base, const pl_message *m, pl_real **buffer, bool *done, pl_err *e) {
  (void)e;
  box *b = box_of((local_transport *)base, m);
  *done = false;
  for (size_t i = 0; i < b->count && !*done; i++) {
    letter *l = &b->letters[i];
    const pl_message *found = &l->message;
    if (!l->used || found->update != m->update || found->microbatch != m->microbatch || found->chunk != m->chunk)
      continue;
    swap(buffer, &l->data);
    l->used = false;
    *done = true;
  }
  return PL_OK;
}

static void destroy(pl_transport *base) {
  local_transport *t = (local_transport *)base;
  if (!t) return;
  for (size_t b = 0; t->boxes && b < t->links * PL_MESSAGE_KINDS; b++) {
    for (size_t i = 0; t->boxes[b].letters && i < t->boxes[b].count; i++)
      if (t->boxes[b].letters[i].data) t->device->ops->free(t->device, t->boxes[b].letters[i].data);
    pl_free(t->boxes[b].letters);
  }
  pl_free(t->boxes);
  pl_free(t);
}

static const pl_transport_type local_type = {.name = "local", .send = send, .receive = receive, .destroy = destroy};

static pl_status open_box(local_transport *t, box *b, size_t count, size_t size, pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(pl_alloc(count, sizeof *b->letters, "messages between stages", &b->letters, e));
  b->count = count;
  for (size_t i = 0; i < count; i++) PL_TRY(pl_transport_buffer(t->device, size, &b->letters[i].data, e));
out:
  return st;
}

pl_status pl_transport_local(const pl_transport_args *args, pl_transport **out, pl_err *e) {
  pl_status st = PL_OK;
  const pl_schedule *s = args->schedule;
  local_transport *t = NULL;
  *out = NULL;
  PL_TRY(pl_alloc(1, sizeof *t, "the transport", &t, e));
  t->base.type = &local_type;
  t->device = args->device;
  t->links = pl_schedule_chunks(s) > 1 ? s->stages : s->stages - 1;
  PL_TRY(pl_alloc(t->links * PL_MESSAGE_KINDS, sizeof *t->boxes, "the transport", &t->boxes, e));
  for (size_t link = 0; link < t->links; link++)
    for (size_t kind = 0; kind < PL_MESSAGE_KINDS; kind++) {
      size_t count = args->facts->messages[link];
      if (count > 0 && kind == PL_MESSAGE_VALIDATION) count = PL_VALIDATION_MESSAGES;
      PL_TRY(open_box(t, &t->boxes[link * PL_MESSAGE_KINDS + kind], count, args->size, e));
    }
  *out = &t->base;
out:
  if (st != PL_OK) destroy(t ? &t->base : NULL);
  return st;
}
