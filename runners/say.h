/* Lines for people while a command works. */
#ifndef PL_RUNNERS_SAY_H
#define PL_RUNNERS_SAY_H

#include "core/base/str.h"

/* Callbacks of the `say` kind: one line to standard error or standard output. `self` is not used. */
void pl_say_stderr(void *self, const char *line);
void pl_say_stdout(void *self, const char *line);

/* Writes the whole text to standard output; PL_FAIL when the text ran out of memory or cannot be written. Releases it.
 */
PL_MUST_CHECK pl_status pl_print(pl_str *text, pl_err *e);

#endif
