/* How the compared runs were made, as far as it can change their numbers without being part of their configuration. */
#ifndef PL_ANALYSIS_MIXED_H
#define PL_ANALYSIS_MIXED_H

#include "analysis/arms.h"

typedef enum pl_fact { PL_FACT_PROGRAM, PL_FACT_KERNEL, PL_FACT_CPU, PL_FACT_THREADS, PL_FACT_DATA, PL_FACTS } pl_fact;

extern const char *const pl_fact_names[PL_FACTS]; /* "program", "kernel", ... */

/* Appends to out[f] which values a fact has among the runs with an outcome: "..." (16 runs), "..." (24 runs). Nothing
 * where no run has a record. */
PL_MUST_CHECK pl_status pl_facts_list(const pl_arms *arms, pl_str out[PL_FACTS], pl_err *e);

/* From the meta.json of each run with an outcome. *differences is a sentence with the values seen and their counts when
 * the runs were made by different programs, kernels, CPU models or numbers of threads, or when paired runs saw
 * different data; *resumed is one when runs lost their bitwise mark. Empty where there is nothing to say; a run without
 * a record tells nothing. Both are appended to. */
PL_MUST_CHECK pl_status pl_mixed_find(const pl_arms *arms, pl_str *differences, pl_str *resumed, pl_err *e);

#endif
