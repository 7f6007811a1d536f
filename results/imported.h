/* Configurations of runs that were not made by pipelag. They state what is known and no more: components by name, also
 * ones that pipelag does not have, with any parameters. */
#ifndef PL_RESULTS_IMPORTED_H
#define PL_RESULTS_IMPORTED_H

#include "core/config/run_config.h"

typedef struct pl_imported pl_imported;

/* The key of config.json that marks an imported run; its value is an object for the readers of the run. */
#define PL_IMPORTED_KEY "imported"

/* Adds settings to a document: the members of `object`, nested or dotted, later ones win. A short name of a component
 * ("optimizer": "soap") becomes its type; lists that are no values of a run (data files) become text. `where` starts
 * messages. */
PL_MUST_CHECK pl_status pl_imported_merge(pl_json *document, const pl_json *object, const char *where, pl_err *e);

/* Reads a merged document, or the config.json of an imported run; it must outlive *out, which is released by
 * pl_imported_free. The root, train and pipeline tables hold for the keys that are there, none is required; seed and
 * delay are 0 where they are not stated. model, data, optimizer, train.lr_schedule and corrections take any name and
 * any parameter that is a number, a truth value or a text. An optimizer is required; its lr is a number above 0, and 0
 * stands for one that is not stated. */
PL_MUST_CHECK pl_status pl_imported_read(const pl_json *document, const char *where, pl_imported **out, pl_err *e);
void pl_imported_free(pl_imported *i); /* NULL allowed */

/* Lives as long as *i. */
pl_run_config *pl_imported_config(pl_imported *i);

#endif
