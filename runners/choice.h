/* Which runs of a result directory a command is about, and asking before it acts on many. */
#ifndef PL_RUNNERS_CHOICE_H
#define PL_RUNNERS_CHOICE_H

#include "runners/launchers/slurm/states.h"
#include "runners/options.h"

enum { PL_CHOICE_UNASKED = 20 }; /* runs that may be changed without being asked */

/* chosen[index] for the runs that o->args names from the second on; `named` is false, and nothing set, when there are
 * none. */
PL_MUST_CHECK pl_status pl_choice_named(const pl_options *o, const pl_states *s, bool *chosen, bool *named, pl_err *e);

size_t pl_choice_count(const bool *chosen, size_t count);

/* PL_OK up to PL_CHOICE_UNASKED runs, with -y, and when the answer on the terminal is yes; PL_BAD otherwise. `verb` is
 * what would be done ("cancel"). */
PL_MUST_CHECK pl_status pl_choice_confirm(const pl_options *o, const char *verb, size_t runs, pl_err *e);

#endif
