/* What the parts of a pipeline cost: of its stages as they are, or of a model's layers, which are cut into stages. */
#ifndef PL_RUNNERS_SCHEDULE_PIECES_H
#define PL_RUNNERS_SCHEDULE_PIECES_H

#include "core/config/run_config.h"
#include "core/pipeline/timeline.h"

enum { PL_PIECES = 8192 }; /* most layers */

typedef struct pl_piece {
  pl_stage_costs time;  /* of a microbatch; update is not used */
  pl_stage_sizes sizes; /* bytes */
  size_t parameters;    /* 0 when not known */
} pl_piece;

typedef struct pl_pieces {
  pl_piece *items;
  size_t count;                     /* layers; or stages, where one stands for any number of equal ones */
  bool layers;                      /* the items are layers */
  bool sized;                       /* their sizes are known */
  bool seconds;                     /* the unit of times; else any unit */
  double update, latency, transfer; /* of a stage's update, of a message */
  double tokens;                    /* of a microbatch; NaN when not known */
  const pl_run_config *config;      /* layers are cut by pl_partition_make then; NULL: balanced; borrowed */
  size_t vocab;                     /* of the dataset of `config` */
} pl_pieces;

/* Releases the items. */
void pl_pieces_free(pl_pieces *p);

/* first_layer[stages * chunks + 1] of the virtual stages. PL_BAD for more of them than layers. */
PL_MUST_CHECK pl_status pl_pieces_split(const pl_pieces *p, size_t stages, size_t chunks, size_t *first_layer,
                                        pl_err *e);

/* What each of `stages` stages costs, all its chunks together. times, sizes: [stages]. PL_BAD for more stages than
 * layers, and for another number than the items when these are stages. */
PL_MUST_CHECK pl_status pl_pieces_cut(const pl_pieces *p, size_t stages, size_t chunks, pl_stage_costs *times,
                                      pl_stage_sizes *sizes, pl_err *e);

/* Reads a file of costs; docs/schedules.md describes it. *stages 0: becomes what the file's lists have, if they are of
 * stages. PL_BAD names the file and the key. The caller frees *out, also after a failure. */
PL_MUST_CHECK pl_status pl_pieces_read(const char *path, size_t *stages, pl_pieces *out, pl_err *e);

#endif
