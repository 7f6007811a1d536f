/* A run's model as parts of a pipeline: `pipelag schedule --model RUN.json`. */
#ifndef PL_RUNNERS_SCHEDULE_MODEL_H
#define PL_RUNNERS_SCHEDULE_MODEL_H

#include "core/config/registry.h"
#include "runners/options.h"
#include "runners/schedule_pieces.h"

typedef struct pl_schedule_model {
  pl_registries registries; /* the sweep borrows them: the model stays where it was opened */
  pl_sweep *sweep;
  const pl_run_config *config; /* of the only run; borrowed from the sweep */
  char *data_root;
  size_t vocab; /* of the dataset */
} pl_schedule_model;

/* Reads o->schedule.model as `train` does, with --set; `sets`: --stages, --microbatches and --chunks replace the
 * run's. PL_BAD for a sweep of several runs. The caller closes it, also after a failure. */
PL_MUST_CHECK pl_status pl_schedule_model_open(const pl_options *o, bool sets, pl_schedule_model *out, pl_err *e);
void pl_schedule_model_close(pl_schedule_model *m);

/* Its layers, the embedding on the first and the head on the last. Times are floating-point operations of a token;
 * activations are those of one sequence; optimizer counts the displacement, but no correction. The caller frees *out,
 * also after a failure; it borrows the config. */
PL_MUST_CHECK pl_status pl_schedule_model_pieces(const pl_schedule_model *m, pl_pieces *out, pl_err *e);

/* The same for a microbatch, where an update has s->microbatches, in seconds: operations divided by flops_per_second,
 * messages by bandwidth. */
PL_MUST_CHECK pl_status pl_schedule_model_times(const pl_schedule_model *m, const pl_schedule_options *s,
                                                pl_pieces *out, pl_err *e);

/* Prints which layers each of the run's stages has and what they cost, beside another partition. */
PL_MUST_CHECK pl_status pl_schedule_partition(const pl_options *o, pl_err *e);

#endif
