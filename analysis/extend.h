/* The sweep that extends learning-rate axes at whose edge an optimum lies. */
#ifndef PL_ANALYSIS_EXTEND_H
#define PL_ANALYSIS_EXTEND_H

#include "analysis/rates.h"

/* *document (new reference): the newest frozen sweep of the directory with one more grid block for each arm at an edge:
 * the next learning rate beyond it, by the ratio of the two outermost rates, at the seeds of the arm's best rate. It
 * keeps the name, so running it into the same directory adds these runs and keeps all others; it was expanded to make
 * sure of that. *added counts the runs. PL_NOTHING when no optimum lies at an edge; PL_BAD when arms at an edge lie in
 * several directories, or when a key of the sweep (its "set", its rules) keeps the new runs out. */
PL_MUST_CHECK pl_status pl_extend(const pl_registries *r, const pl_rate_table *rates, pl_json **document, size_t *added,
                                  pl_err *e);

/* The folder from which the directory's sweep takes relative data paths; NULL when unknown; released by pl_free. */
PL_MUST_CHECK pl_status pl_extend_data_folder(const char *dir, char **out, pl_err *e);

#endif
