/* The grid that a paper would draw: a row per stage, time from left to right. */
#ifndef PL_PIPELINE_DRAW_H
#define PL_PIPELINE_DRAW_H

#include "core/base/str.h"
#include "core/pipeline/timeline.h"

/* Text. F3 is the forward of microbatch 3, counted over all updates; "-" while it lasts, "." idle, "|" an update that
 * takes no time, or less than a column; chunks are letters behind the number. A column is the longest time of which all
 * durations are whole multiples, or half the shortest one, and times are rounded. Beyond `columns` (0: any number) it
 * is cut, which it says. PL_FAIL when memory is out. */
PL_MUST_CHECK pl_status pl_draw_text(const pl_timeline *t, size_t columns, pl_str *out, pl_err *e);

/* The same with columns of `unit`: times are rounded to them. */
PL_MUST_CHECK pl_status pl_draw_text_in(const pl_timeline *t, double unit, size_t columns, pl_str *out, pl_err *e);

/* An SVG document: boxes with the microbatch and, below, the weight version that is read. */
void pl_draw_svg(const pl_timeline *t, pl_str *out);

/* Grids of one schedule below each other in one document, on one scale of time. */
typedef struct pl_panel {
  const char *title;           /* behind the schedule's name; NULL: its stages and microbatches */
  const pl_timeline *timeline; /* borrowed */
} pl_panel;

/* `shortest` is the duration of the narrowest box with a label, 0: the shortest of all. */
void pl_draw_svg_panels(const pl_panel *panels, size_t count, double shortest, pl_str *out);

/* The length of a column. */
double pl_draw_unit(const pl_timeline *t);

#endif
