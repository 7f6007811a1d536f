/* Several sweep directories, or collected files, as one catalog. */
#ifndef PL_ANALYSIS_JOIN_H
#define PL_ANALYSIS_JOIN_H

#include "analysis/notes.h"
#include "results/catalog.h"

typedef struct pl_joined {
  pl_catalog *parts; /* as opened; own what the runs of `all` point to */
  size_t count;
  pl_catalog all; /* runs in the order of the directories, indexes 0, 1, ...; released by pl_joined_free alone */
  pl_notes warnings;
} pl_joined;

/* Opens the directories (or files of `pipelag collect`) and takes a run that is in several of them once: the one with
 * an outcome, or the first when their results and curves are the same. When these differ nobody can say which is right:
 * a warning names the run, and none of them is taken. `say` as in pl_catalog_open. */
PL_MUST_CHECK pl_status pl_joined_open(const pl_registries *r, const char *const *dirs, size_t count,
                                       void (*say)(void *self, const char *line), void *say_self, pl_joined *out,
                                       pl_err *e);
void pl_joined_free(pl_joined *j);

/* Whether two records of a run have the same result: state, steps, tokens and losses. */
bool pl_same_result(const pl_catalog_run *a, const pl_catalog_run *b);

#endif
