/* The grid that a paper would draw: a row per stage, time from left to right. */
#ifndef PL_PIPELINE_DRAW_H
#define PL_PIPELINE_DRAW_H

#include "core/base/str.h"
#include "core/pipeline/timeline.h"

/* Text. F3 is the forward of microbatch 3, counted over all updates; "-" while it lasts, "." idle, "|" an update that
 * takes no time; chunks are letters behind the number. A column is the longest time of which all durations are whole
 * multiples, or half the shortest one, and times are rounded. Beyond `columns` (0: any number) it is cut, which it
 * says. PL_FAIL when memory is out. */
PL_MUST_CHECK pl_status pl_draw_text(const pl_timeline *t, size_t columns, pl_str *out, pl_err *e);

/* An SVG document: boxes with the microbatch and, below, the weight version that is read. */
void pl_draw_svg(const pl_timeline *t, pl_str *out);

/* The length of a column. */
double pl_draw_unit(const pl_timeline *t);

#endif
