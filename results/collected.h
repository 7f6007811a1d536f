/* A sweep in the one file that pl_curves_collect writes. Used by catalog*.c alone. */
#ifndef PL_RESULTS_COLLECTED_H
#define PL_RESULTS_COLLECTED_H

#include "results/catalog.h"
#include "results/h5_file.h"

/* The columns of the file that a catalog reads. */
typedef struct pl_collected {
  pl_h5_in *file;
  char *name; /* of the sweep */
  pl_h5_texts id, label, state, config, meta, reason, error, ended;
  int64_t *current, *has_result, *attempts;
  void *figures[16]; /* of pl_figures: int64_t or double */
  size_t count;      /* runs */
} pl_collected;

/* PL_BAD when the file is none of ours, or was collected before its configurations were kept in a column. */
PL_MUST_CHECK pl_status pl_collected_open(const char *path, pl_collected **out, pl_err *e);
void pl_collected_free(pl_collected *c); /* NULL allowed */

/* The state of a run by its name; PL_FAIL for another word. */
PL_MUST_CHECK pl_status pl_collected_result(const pl_collected *c, size_t index, pl_run_state *state, bool *has_result,
                                            pl_result *out, pl_err *e);

/* The times of a run's stages; empty when it has none. */
PL_MUST_CHECK pl_status pl_collected_times(const pl_collected *c, uint64_t id, pl_times *out, pl_err *e);

PL_MUST_CHECK pl_status pl_collected_curve(const pl_collected *c, uint64_t id, pl_curve *out, pl_err *e);

#endif
