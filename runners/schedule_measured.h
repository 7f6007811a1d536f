/* `pipelag schedule --measured DIR [RUN]`: what a run's stages did and when, beside what its schedule would do. */
#ifndef PL_RUNNERS_SCHEDULE_MEASURED_H
#define PL_RUNNERS_SCHEDULE_MEASURED_H

#include "core/pipeline/measured.h"
#include "runners/options.h"

/* Reads the traces of the run that o->args[0] names in o->schedule.measured, or of the only one that has traces;
 * prints both grids and the figures, or JSON, or writes an SVG file. PL_NOTHING when there are no traces. */
PL_MUST_CHECK pl_status pl_schedule_measured(const pl_options *o, pl_err *e);

/* The parts of it, for tests; `title` begins the text. `updates` updates in the middle are drawn. */
PL_MUST_CHECK pl_status pl_measured_text(const pl_measured *m, const char *title, int64_t updates, pl_str *out,
                                         pl_err *e);
PL_MUST_CHECK pl_status pl_measured_svg(const pl_measured *m, int64_t updates, pl_str *out, pl_err *e);
pl_json *pl_measured_json(const pl_measured *m, const char *run); /* new reference; NULL when memory is out */

#endif
