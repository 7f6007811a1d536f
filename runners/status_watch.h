/* What `status --watch` shows again and again: in place on a terminal, as blocks of plain text elsewhere. */
#ifndef PL_RUNNERS_STATUS_WATCH_H
#define PL_RUNNERS_STATUS_WATCH_H

#include "core/base/str.h"

/* {0} is an empty one. */
typedef struct pl_watch {
  bool screen; /* standard output is a terminal, and the texts are for people */
  pl_str last; /* what stands there; owned */
} pl_watch;

/* Shows a text of whole lines and takes it over, whatever happens. A terminal is drawn over from its upper left corner,
 * with as many lines as it has room for; elsewhere the text is appended when it differs from the one before, after an
 * empty line when `apart`. PL_FAIL when the text ran out of memory or cannot be written. */
PL_MUST_CHECK pl_status pl_watch_show(pl_watch *w, pl_str *text, bool apart, pl_err *e);

/* What draws the text over a terminal of so many rows; appended. Every line is cut at the right edge, and when there
 * are too many the last row counts those that are left out. */
void pl_watch_frame(const char *text, size_t rows, pl_str *out);

void pl_watch_free(pl_watch *w);

#endif
