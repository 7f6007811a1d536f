/* A run's checkpoint on its way to another number of stages: what is there, and the plan of what is made. */
#ifndef PL_RUNNERS_CHECKPOINT_CONVERSION_H
#define PL_RUNNERS_CHECKPOINT_CONVERSION_H

#include "core/train/repartition.h"
#include "runners/checkpoint_source.h"
#include "runners/plan.h"

typedef struct pl_conversion {
  pl_checkpoint_source from;
  pl_plan plan;
  char *dir; /* where the results will be; it does not exist */
  pl_json *document;
  pl_run_config *config;
  pl_saved *saved;
  pl_repartition work;
  bool bitwise;    /* numbers will be those of a run that always had these stages */
  const char *why; /* not, other than by restarted rings; NULL: nothing else */
} pl_conversion;

/* Reads and checks everything, writes nothing. PL_BAD when the run cannot be converted as o says. The caller closes,
 * also after a failure; *out stays where it is. */
PL_MUST_CHECK pl_status pl_conversion_plan(const pl_options *o, pl_conversion *out, pl_err *e);
void pl_conversion_close(pl_conversion *c);

/* Makes the directory with its one run, stopped at the checkpoint: whole, or not at all. */
PL_MUST_CHECK pl_status pl_conversion_write(pl_conversion *c, pl_err *e);

/* {"dir": ..., "id": ..., "step": ..., "stages": ..., "restart_ring": ...} of what it was made from (new reference;
 * NULL when memory is out). */
pl_json *pl_conversion_origin(const pl_conversion *c);

#endif
