/* How the compared runs were made, as far as it can change their numbers without being part of their configuration. */
#ifndef PL_ANALYSIS_MIXED_H
#define PL_ANALYSIS_MIXED_H

#include "analysis/arms.h"

/* From the meta.json of each run with an outcome. *differences is a sentence with the values seen and their counts when
 * the runs were made by different programs, kernels, CPU models or numbers of threads, or when paired runs saw
 * different data; *resumed is one when runs lost their bitwise mark. Empty where there is nothing to say; a run without
 * a record tells nothing. Both are appended to. */
PL_MUST_CHECK pl_status pl_mixed_find(const pl_arms *arms, pl_str *differences, pl_str *resumed, pl_err *e);

#endif
