/* A checkpoint of a run with one number of stages made into one of the same run with another number. */
#ifndef PL_TRAIN_REPARTITION_H
#define PL_TRAIN_REPARTITION_H

#include "core/train/saved.h"

typedef struct pl_repartition {
  const pl_saved *from; /* read */
  pl_saved *to;         /* open, no stage in memory; the configs differ in pipeline and delay alone */
  /* Every weight ring starts with the newest version alone, so that delays ramp anew; and the corrections of a stage
   * start from nothing where their state is another one for the new delay. Else all is kept: layers do the same as
   * before, bit for bit. */
  bool restart_ring;
} pl_repartition;

/* PL_BAD says why the checkpoint cannot be converted: without restart_ring that is wherever the delay is not one and
 * the same for all stages of both, or versions are read that were not kept. */
PL_MUST_CHECK pl_status pl_repartition_check(const pl_repartition *r, pl_err *e);

/* Whether the corrections of a stage of `to` lose state: they start from nothing, or are off at its delay. */
bool pl_repartition_drops_state(const pl_repartition *r, size_t stage);

/* Writes the files of all stages and the manifest, whose log begins at this step, to an existing folder. Checked; one
 * stage of `to` is in memory at a time. */
PL_MUST_CHECK pl_status pl_repartition_write(const pl_repartition *r, const char *folder, pl_err *e);

#endif
