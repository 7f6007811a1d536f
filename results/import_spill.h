/* Curves that wait on the disk between reading and writing, so that any number of runs can be checked before the first
 * is written. Used by import*.c alone. */
#ifndef PL_RESULTS_IMPORT_SPILL_H
#define PL_RESULTS_IMPORT_SPILL_H

#include "results/import_table.h"

typedef struct pl_import_spill pl_import_spill;

/* A file without a name in $TMPDIR, or else in /var/tmp; made when it is first needed. Released by
 * pl_import_spill_close (NULL allowed). */
PL_MUST_CHECK pl_status pl_import_spill_open(pl_import_spill **out, pl_err *e);
void pl_import_spill_close(pl_import_spill *s);

/* Moves the rows of a settled table out, and reads them back into the table; its count stays. *at is their place. */
PL_MUST_CHECK pl_status pl_import_spill_put(pl_import_spill *s, pl_import_table *t, int64_t *at, pl_err *e);
PL_MUST_CHECK pl_status pl_import_spill_get(pl_import_spill *s, pl_import_table *t, int64_t at, pl_err *e);

#endif
