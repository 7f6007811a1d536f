/* How messages travel between neighbouring stages. The engine knows only this table. */
#ifndef PL_PIPELINE_TRANSPORT_H
#define PL_PIPELINE_TRANSPORT_H

#include "core/device/device.h"
#include "core/pipeline/schedule.h"

/* Names a message: what it is, between which stages (`link` and link + 1), for which update and microbatch. */
typedef struct pl_message {
  bool gradient; /* travels from link + 1 to link; an activation the other way */
  size_t link;
  int64_t update;
  size_t microbatch;
  size_t sequences; /* of the microbatch, for transports that send no more than needed */
} pl_message;

typedef struct pl_transport pl_transport;

typedef struct pl_transport_type {
  const char *name;
  /* `data` is device memory that may be reused when the call returns. */
  pl_status (*send)(pl_transport *t, const pl_message *m, const pl_real *data, pl_err *e);
  /* *there = false: not there yet, nothing was written. A transport whose sender is another process may wait instead.
   */
  pl_status (*receive)(pl_transport *t, const pl_message *m, pl_real *data, bool *there, pl_err *e);
  void (*destroy)(pl_transport *t); /* NULL allowed */
} pl_transport_type;

/* Implementations start with it. */
struct pl_transport {
  const pl_transport_type *type;
};

/* All stages in this process; messages are copies of `size` elements in device memory, as many as the schedule keeps
 * waiting. Borrows the device. */
PL_MUST_CHECK pl_status pl_transport_local(pl_device *device, const pl_schedule *schedule,
                                           const pl_schedule_facts *facts, size_t size, pl_transport **out, pl_err *e);

#endif
