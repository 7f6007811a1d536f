/* The answer in words: what delay costs and what a correction wins back, in at most three sentences made of the gap
 * table. */
#ifndef PL_ANALYSIS_ANSWER_H
#define PL_ANALYSIS_ANSWER_H

#include "analysis/analysis.h"

enum { PL_ANSWER_SENTENCES = 3 };

/* One sentence for each optimizer of each group: its gap at the largest delay that has one over at least three pairs,
 * and of the corrections there the one that wins back most. Where there are more than three optimizers: the largest
 * gap, the smallest, and how many others there are. Of fewer than three pairs no number is given; the sentence says
 * what is missing. The reading is the fixed one where there is one, else each arm's best. */
PL_MUST_CHECK pl_status pl_answer_make(const pl_analysis *a, pl_notes *out, pl_err *e);

/* "At optimizer.lr = 0.008", or "Each arm at its own best learning rate". */
const char *pl_answer_reading(const pl_analysis *a);

#endif
