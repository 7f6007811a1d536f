/* How a curve lies in an HDF5 file, shared by curves.h5 and the collected file of a sweep. */
#ifndef PL_RESULTS_CURVES_IMAGE_H
#define PL_RESULTS_CURVES_IMAGE_H

#include "results/h5_file.h"
#include "results/journal.h"

/* Writes the datasets step, tokens, attempt, one per series and those of the stages below `group` ("" or "runs/<id>/").
 */
PL_MUST_CHECK pl_status pl_curves_put(pl_h5 *f, const char *group, const pl_curve *c, pl_err *e);

/* The bytes of a run's curves.h5; *bytes is released by pl_free. */
PL_MUST_CHECK pl_status pl_curves_image(const pl_curve *c, const pl_json *config, uint64_t id, char **bytes,
                                        size_t *count, pl_err *e);

#endif
