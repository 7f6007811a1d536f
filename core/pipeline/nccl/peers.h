/* GPUs that exchange arrays without the hosts: what the CUDA device's module has for the world over MPI, which knows
 * where the other ranks are and what they are about to do. By NCCL.
 *
 * The exchanges of a group run one after the other in a stream of their own, beside the device's. Each is a kernel that
 * runs on every rank until the others' have done their part, so a group that is used without care can stop a GPU for
 * good. Two rules keep that away, the first of them here, the second the caller's:
 *  - nothing on the device waits for an exchange: the host asks whether it is over. What computes always ends.
 *  - an exchange is begun only when the hosts of all its ranks have come to it, so that it is over soon: CUDA may wait
 *    for the whole GPU in any call that loads a kernel or frees memory, and two such calls would wait for each other.
 */
#ifndef PL_PIPELINE_NCCL_PEERS_H
#define PL_PIPELINE_NCCL_PEERS_H

#include "core/device/device.h"

/* Ranks with a GPU each. */
typedef struct pl_peers pl_peers;

enum { PL_PEERS_ID = 128, PL_PEERS_PLACE = 32 };

/* The name of a group. */
typedef struct pl_peers_id {
  char bytes[PL_PEERS_ID];
} pl_peers_id;

/* An array to or from another rank of the group. */
typedef struct pl_peers_part {
  size_t peer;
  bool sends;
  pl_real *data; /* device memory */
  size_t count;  /* elements, at least 1 */
} pl_peers_part;

typedef struct pl_peers_type {
  const char *name; /* "NCCL" */

  /* Loads the library; *version as NCCL counts, the same on all ranks of a group. PL_BAD says why it cannot be used. */
  pl_status (*load)(int *version, pl_err *e);
  /* Where the GPU is in its machine: "0000:17:00.0". */
  pl_status (*place)(pl_device *d, char out[PL_PEERS_PLACE], pl_err *e);
  pl_status (*make_id)(pl_peers_id *out, pl_err *e);

  /* Collective over the group's `count` ranks, each with its own `me`; blocks until they are connected. Ranks that open
   * several groups open them in the same order. `slots` exchanges may be under way. */
  pl_status (*open)(pl_device *d, const pl_peers_id *id, size_t me, size_t count, size_t slots, pl_peers **out,
                    pl_err *e);
  /* The slot's next exchanges begin after what the device was asked to do until now. */
  pl_status (*mark)(pl_peers *p, size_t slot, pl_err *e);
  /* All parts at once; of several to the same rank the first belongs to the first one there. Returns at once; the
   * arrays are borrowed until it is over. */
  pl_status (*exchange)(pl_peers *p, size_t slot, const pl_peers_part *parts, size_t count, pl_err *e);
  /* Whether the slot's latest exchange is. PL_FAIL when it never will be, as far as the library sees. */
  pl_status (*over)(pl_peers *p, size_t slot, bool *over, pl_err *e);
  /* Waits for nobody: exchanges under way, of other groups too, are cut off, since closing may wait for the GPU. */
  void (*close)(pl_peers *p); /* NULL allowed */
} pl_peers_type;

/* Of the module that the CUDA device is in. */
extern const pl_peers_type pl_cuda_peers;

#endif
