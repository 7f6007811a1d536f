/* How messages travel between neighbouring stages. The engine knows only this table.
 *
 * Buffers change hands instead of being copied: a send takes the caller's buffer and gives back another of the same
 * size, a receive gives the one that arrived for the caller's. All of them come from pl_transport_buffer and go back by
 * the device's free. */
#ifndef PL_PIPELINE_TRANSPORT_H
#define PL_PIPELINE_TRANSPORT_H

#include "core/device/device.h"
#include "core/pipeline/schedule.h"

typedef enum pl_message_kind {
  PL_MESSAGE_ACTIVATION, /* from stage `link` to the next one */
  PL_MESSAGE_GRADIENT,   /* the other way */
  PL_MESSAGE_VALIDATION, /* an activation of the validation */
  PL_MESSAGE_KINDS
} pl_message_kind;

/* Names a message. With chunks the last stage's next one is stage 0, and `chunk` is that of the end nearer to the
 * input. */
typedef struct pl_message {
  pl_message_kind kind;
  size_t link;
  int64_t update; /* of a validation: the updates before it */
  size_t microbatch, chunk;
} pl_message;

enum {
  PL_VALIDATION_MESSAGES = 2, /* that wait on a link at most */
  PL_MESSAGE_TRAILER = 64     /* bytes behind the elements of a buffer, for what a transport adds */
};

typedef struct pl_transport pl_transport;

typedef struct pl_transport_type {
  const char *name;
  /* *done = false: no room yet, try again; *buffer then stays as it is. */
  pl_status (*send)(pl_transport *t, const pl_message *m, pl_real **buffer, bool *done, pl_err *e);
  /* *done = false: not there yet, try again; *buffer then stays as it is. */
  pl_status (*receive)(pl_transport *t, const pl_message *m, pl_real **buffer, bool *done, pl_err *e);
  void (*destroy)(pl_transport *t); /* NULL allowed; what is on its way is lost */
} pl_transport_type;

/* Implementations start with it. */
struct pl_transport {
  const pl_transport_type *type;
};

typedef struct pl_transport_args {
  pl_device *device; /* borrowed */
  const pl_schedule *schedule;
  const pl_schedule_facts *facts; /* messages[link] wait on a link in each direction at most, 0: nobody uses
                                     it; read during creation */
  size_t size;                    /* elements of a message */
} pl_transport_args;

/* A buffer for messages of `size` elements and a trailer. */
PL_MUST_CHECK pl_status pl_transport_buffer(pl_device *device, size_t size, pl_real **out, pl_err *e);

/* All stages in this process. */
PL_MUST_CHECK pl_status pl_transport_local(const pl_transport_args *args, pl_transport **out, pl_err *e);

#endif
