/* curves.h5 of a run and the one file of a sweep. HDF5 is not thread-safe: one thread of a process calls these. */
#ifndef PL_RESULTS_CURVES_H
#define PL_RESULTS_CURVES_H

#include "results/catalog.h"
#include "results/h5_file.h"
#include "results/journal.h"

/* Rebuilds curves.h5 from a curve by write to a temporary name, fsync, rename (its folder is not synced). Datasets
 * step, tokens, attempt (int64) and one float64 dataset per series (groups train/, val/ as in the names), attributes
 * config (JSON text), id, attempts. A group stages with step, attempt [n] and busy, communication, idle [n x stages] in
 * seconds when the curve has times. Every dataset has the attributes description and, where there is one, unit. */
PL_MUST_CHECK pl_status pl_curves_write(const char *path, const pl_curve *c, const pl_json *config, uint64_t id,
                                        pl_err *e);

/* The same into a new file of pl_h5_create that a parent made before it became several processes: that costs more than
 * to fill it. Taken, also in a failure; NULL: one is made. */
PL_MUST_CHECK pl_status pl_curves_write_into(pl_h5 *blank, const char *path, const pl_curve *c, const pl_json *config,
                                             uint64_t id, pl_err *e);

/* Packs a sweep into one file: a group per run (its id) with the datasets above, config values as attributes, state and
 * final figures; at the root the name and a table of runs. Damaged or missing curves are rebuilt from the journal,
 * reported by `say`. */
PL_MUST_CHECK pl_status pl_curves_collect(const pl_catalog *c, const char *path,
                                          void (*say)(void *self, const char *line), void *say_self, pl_err *e);

#endif
