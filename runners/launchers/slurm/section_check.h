/* Checks of single values of the section "slurm". Used by section.c alone. */
#ifndef PL_RUNNERS_SLURM_SECTION_CHECK_H
#define PL_RUNNERS_SLURM_SECTION_CHECK_H

#include "runners/launchers/slurm/section.h"

/* One key's value after its row took it; `where` is the key path. PL_BAD names what is allowed. */
PL_MUST_CHECK pl_status pl_slurm_check_value(const pl_param *row, const pl_slurm_config *c, const char *where,
                                             pl_err *e);

/* "env": an object of names and strings (numbers are made strings); *out is a new reference. */
PL_MUST_CHECK pl_status pl_slurm_check_env(const pl_json *value, const char *where, pl_json **out, pl_err *e);

/* Relations between the keys; messages start with the key. */
PL_MUST_CHECK pl_status pl_slurm_check_together(const pl_slurm_config *c, pl_err *e);

#endif
